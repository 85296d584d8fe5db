"""Basic parts of the engine: compilation, seeds and adaptation."""
