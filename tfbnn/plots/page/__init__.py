"""A report as one HTML page, which needs nothing but itself; by Matplotlib and Jinja2 (`plots`)."""
