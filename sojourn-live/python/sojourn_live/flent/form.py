"""What both ways agree on: the format's numbers and words."""

VERSION = 4
STEP_S = 0.2
DELAY_S = 5.0
"""Flent's idle time on either side of the load."""
MSS = 1448
"""Bytes to one of flent's packets of cwnd."""
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
S = 1e9
