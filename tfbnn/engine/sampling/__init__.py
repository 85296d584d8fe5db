"""The compiled block, and the chain groups of chains that advance in it."""
