"""Checks an output of --json against its schema. A key that the schema doesn't describe is an
error too."""

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from sojourn import schemas


def closed(schema: Any) -> Any:
    """Returns the schema without properties that it doesn't name."""
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
    """Raises AssertionError, with the place, if the output does not match the schema."""
    found = sorted(validator(name).iter_errors(whole), key=lambda error: list(error.absolute_path))
    assert not found, "\n".join(
        f"{name}: {error.json_path}: {error.message[:300]}" for error in found[:5]
    )
