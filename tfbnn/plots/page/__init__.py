"""Report of a model as a self-contained HTML page; needs Matplotlib and Jinja2 (`plots`)."""
