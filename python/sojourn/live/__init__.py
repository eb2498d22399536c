"""Measuring a real link: a session with a server of ours, and what is made of it."""
