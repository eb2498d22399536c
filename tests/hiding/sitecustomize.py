"""Hides packages in a test's subprocess: each Python imports this file first."""

import os

if names := os.environ.get("SOJOURN_TESTS_HIDE"):
    import hidden

    hidden.hide(names.split())
