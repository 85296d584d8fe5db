"""The compiled block of transitions, and the chain groups that advance by it."""
