"""Data that users pass in: labels, transforms, tables, and the checks of them."""
