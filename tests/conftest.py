"""Settings of every test."""

from hypothesis import settings

# A shared machine is slow at times; how long an example takes is no result.
settings.register_profile("sojourn", deadline=None)
settings.load_profile("sojourn")
