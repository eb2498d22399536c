"""Names of a package that are imported when first used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module


def attribute(package: str, homes: Mapping[str, str], name: str) -> object:
    """For a package's `__getattr__`: imports `name` from its module in `homes`, and stores it in
    the package.

    Raises:
        AttributeError: `homes` has no such name.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{package}.{homes[name]}"), name)
    setattr(sys.modules[package], name, value)
    return value
