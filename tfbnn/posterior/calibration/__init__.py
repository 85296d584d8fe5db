"""Calibration of error bars, by rows that the fit has not seen or that are left out of it."""
