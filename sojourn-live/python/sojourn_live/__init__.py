"""Real lines: measured, watched, shaped."""
