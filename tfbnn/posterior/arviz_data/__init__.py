"""What `model.posterior.to_arviz` makes of the draws: named variables, and what they say of rows."""
