"""Measures, monitors and shapes real lines."""
