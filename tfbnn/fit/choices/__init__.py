"""What settings that are "auto" come to at a fit, and why; never by the clock."""
