"""Ground of the engine: compilation, seeds, adaptation."""
