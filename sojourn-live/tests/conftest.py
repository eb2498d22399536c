"""The fixture of tests on a line of network namespaces."""

from live_network import live_network

__all__ = ["live_network"]
