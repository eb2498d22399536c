"""Settings of every test."""

from hypothesis import settings
from live_network import live_network

__all__ = ["live_network"]

# A shared machine is slow at times; how long an example takes is no result.
settings.register_profile("sojourn", deadline=None)
settings.load_profile("sojourn")
