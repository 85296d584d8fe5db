"""Choose settings that are "auto" at a fit, and say why."""
