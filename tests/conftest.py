"""Settings of every test."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from live_network import live_network

__all__ = ["live_network"]


@pytest.fixture(scope="session", autouse=True)
def state_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The entries of processes (sojourn/remains.py) of the tests are not those of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


# A shared machine is slow at times; how long an example takes is no result.
settings.register_profile("sojourn", deadline=None)
settings.load_profile("sojourn")
