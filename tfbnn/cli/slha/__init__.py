"""`tfbnn slha`: folders of cross-section networks, and cross sections of SLHA spectra."""
