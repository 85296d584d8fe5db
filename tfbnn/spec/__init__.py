"""What a model is: layers, priors, likelihoods, the layout of parameters, settings as JSON."""
