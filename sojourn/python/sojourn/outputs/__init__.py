"""The shapes of the output of `--json`, and their versions. Other packages add theirs
(`Extra.outputs`).

The first key of an output, `schema`, is `sojourn/NAME/VERSION`. A new key needs no new version;
removing a key or changing its meaning does. `sojourn.schemas` makes the JSON Schema (2020-12) of
each output, and `python docs/generate.py` makes docs/json.md.

An unknown number is null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sojourn import extras

OUTPUTS: dict[str, tuple[int, str]] = {
    "run": (1, "sojourn.outputs.output_shapes:RunOutput"),
    "sweep": (1, "sojourn.outputs.output_shapes:SweepOutput"),
    "cells": (1, "sojourn.outputs.output_shapes:CellsOutput"),
    "compare": (1, "sojourn.outputs.output_shapes:CompareOutput"),
    "advise": (1, "sojourn.outputs.output_shapes:AdviseOutput"),
    "evaluate": (1, "sojourn.outputs.output_shapes:EvaluateOutput"),
    "check": (1, "sojourn.outputs.output_shapes:CheckOutput"),
    "verify": (1, "sojourn.outputs.output_shapes:VerifyOutput"),
    "show": (1, "sojourn.outputs.output_shapes:ShowOutput"),
    "agree": (1, "sojourn.outputs.output_shapes:AgreeOutput"),
    "replay": (1, "sojourn.outputs.output_shapes:ReplayOutput"),
    "clean": (1, "sojourn.outputs.output_shapes:CleanOutput"),
    "cache": (1, "sojourn.outputs.output_shapes:CacheOutput"),
}
"""The outputs of this package by name: the version, and the place of the shape."""


def installed() -> dict[str, tuple[int, str]]:
    """The outputs of all installed packages."""
    return OUTPUTS | {
        name: output for package in extras.installed() for name, output in package.outputs.items()
    }


def stamped(name: str, whole: Mapping[str, Any]) -> dict[str, Any]:
    """An output with its `schema` as the first key."""
    return {"schema": identifier(name), **whole}


def as_json(name: str, whole: Mapping[str, Any]) -> str:
    """The text of `--json`: one indented object, `schema` first, without NaN."""
    return json.dumps(stamped(name, whole), indent=2, ensure_ascii=False, allow_nan=False)


def identifier(name: str) -> str:
    """The value of an output's key `schema`."""
    version, _ = OUTPUTS[name] if name in OUTPUTS else installed()[name]
    return f"sojourn/{name}/{version}"
