"""What the whole engine stands on: compilation, seeds, adaptation."""
