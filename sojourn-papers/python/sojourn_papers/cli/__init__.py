"""The verbs of papers."""
