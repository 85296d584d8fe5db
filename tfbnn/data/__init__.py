"""Data that users pass in: labels, transforms, tables and their checks."""
