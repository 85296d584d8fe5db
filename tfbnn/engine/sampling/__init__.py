"""The compiled block, and the lanes of chains that advance in it."""
