"""Where chains are: which represent the same functions, and how much of the posterior is there."""
