"""Monitoring lines: probes for days, into a database that keeps whole distributions."""
