"""What users pass in: rows, labels, transforms, tables, and the checks of them."""
