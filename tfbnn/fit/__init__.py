"""Fits of models: from rows and settings to an ensemble and the record of its run."""
