"""Measuring lines: sessions with a server of ours, kept as Runs, and what is computed from such a
Run."""
