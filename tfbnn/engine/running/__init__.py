"""Runs all lanes to their ends, in memory or in a run folder."""
