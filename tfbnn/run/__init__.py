"""Arguments, configuration, plan, store, progress, result and report of a run."""
