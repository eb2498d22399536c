"""An output of --json against its schema, which it may not exceed either: a key nobody described is
one too many."""

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from sojourn import schemas


def closed(schema: Any) -> Any:
    """The same, with no other properties than those that are named."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {key: closed(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        whole.setdefault("additionalProperties", False)
    return whole


@cache
def validator(name: str) -> Draft202012Validator:
    schema = schemas.make(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(closed(schema))


def check(name: str, whole: Any) -> None:
    """Raises AssertionError, with the place, if it has another shape."""
    found = sorted(validator(name).iter_errors(whole), key=lambda error: list(error.absolute_path))
    assert not found, "\n".join(
        f"{name}: {error.json_path}: {error.message[:300]}" for error in found[:5]
    )
