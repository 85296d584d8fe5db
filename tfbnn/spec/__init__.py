"""Models: layers, priors, likelihoods, the layout of parameters, its rows, settings as JSON."""
