"""The guests that tests run scenarios in, where they are ready."""

import pytest

from sojourn.engine.kernel.guest import ready


@pytest.fixture(scope="session")
def kernel_uml() -> str:
    """The engine's name."""
    if why_not := ready("uml").why_not:
        pytest.skip(f"no guest to try: {why_not}")
    return "kernel-uml"


@pytest.fixture(scope="session")
def kernel_73() -> str:
    """The engine's name. CI makes no such guest: `sojourn kernel setup --linux 7.3` does."""
    if why_not := ready("uml-7.3").why_not:
        pytest.skip(f"no guest of Linux 7.3 to try: {why_not}")
    return "kernel-7.3"
