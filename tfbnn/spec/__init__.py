"""Descriptions of models: layers, priors, likelihoods, parameter layout, rows, settings as JSON."""
