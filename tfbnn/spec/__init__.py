"""What a model is: layers, priors, likelihoods, the layout of its parameters, its settings as JSON."""
