"""Fewer draws that predict the same."""
