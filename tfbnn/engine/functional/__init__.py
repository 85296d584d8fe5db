"""The engine without a network: samples of any log density."""
