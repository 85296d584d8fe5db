"""Commands that make something else of a saved model: a smaller or weighted one, another format."""
