"""Constants of the format, shared by import and export."""

VERSION = 4
STEP_S = 0.2
DELAY_S = 5.0
"""Flent's idle time on either side of the load."""
MSS = 1448
"""Bytes in a packet of flent's cwnd."""
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
S = 1e9
