"""Runs all chain groups to their ends, in memory or in a run folder."""
