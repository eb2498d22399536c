"""Shaping lines: two rates to operations, carried out with a way back, and the search for the
rates."""

from sojourn import linux_only as linux_only
