"""The compiled block, and the chain groups that advance in it."""
