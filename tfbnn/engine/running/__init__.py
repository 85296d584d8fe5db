"""Runs all lanes to their ends: in memory, in a run folder, in worker processes."""
