"""A run: its arguments, configuration, plan, store, progress, result and report."""
