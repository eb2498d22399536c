"""Monitors lines: probes them for days, into a database that keeps whole distributions."""
