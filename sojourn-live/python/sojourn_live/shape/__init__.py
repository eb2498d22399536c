"""Shapes lines: applies a shaper of two rates so that it can be rolled back, and searches for the
rates."""

from sojourn import linux_only as linux_only
