"""Execution of a run: all chain groups advance to their ends, in memory or in a run folder."""
