"""The guest that tests run scenarios in, where one is ready."""

import pytest

from sojourn.engine.kernel.guest import ready


@pytest.fixture(scope="session")
def kernel_uml() -> str:
    """The engine's name."""
    if why_not := ready("uml").why_not:
        pytest.skip(f"no guest to try: {why_not}")
    return "kernel-uml"
