"""Choose the settings that are "auto" when a model is fitted, and give the reasons."""
