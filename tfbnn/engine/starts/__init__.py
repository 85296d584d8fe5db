"""Starting points of the chains: pretraining, Levenberg-Marquardt and checks."""
