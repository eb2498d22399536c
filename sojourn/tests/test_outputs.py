"""The output of --json has the shape of its schema. conftest.py checks the output of every other
test as well."""

import json
from pathlib import Path
from typing import Any

import pytest
import shapes
from jsonschema import Draft202012Validator
from shortened import undrawn
from small_run import small_run

from sojourn import metrics, outputs, schemas
from sojourn.cli import status

SCENARIO = """
title = "A download, transfers and a call"
duration = "3 s"
warmup = "1 s"
seeds = [1, 2]
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
qdisc = "codel"
[[flow]]
kind = "bulk"
start = "uniform 0 s .. 1 s"
[[flow]]
kind = "transfers"
size = "100 kB"
[[flow]]
kind = "udp"
rate = "1 Mbit/s"
[[flow]]
kind = "ping"
interval = "100 ms"
"""


_undrawn = pytest.fixture(undrawn)


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    (tmp_path / "s.toml").write_text(SCENARIO)
    return str(tmp_path / "s.toml")


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert status(words) == 0
    return json.loads(capsys.readouterr().out)


def printed_words(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert status(words) == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("words", "schema"),
    [
        (["run", "--json", "-q"], "run"),
        (["check", "--json"], "check"),
    ],
)
def test_an_output_names_its_schema_and_has_its_shape(
    words: list[str], schema: str, scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *options = words
    whole = printed([verb, scenario, *options], capsys)
    assert next(iter(whole)) == "schema"
    assert whole["schema"] == outputs.identifier(schema)
    shapes.check(schema, whole)


def test_the_output_of_a_sweep_has_its_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO + '[sweep]\n"bottleneck.qdisc" = ["codel", "red"]\n')
    shapes.check("sweep", printed(["run", str(tmp_path / "s.toml"), "--json", "-q"], capsys))


@pytest.mark.usefixtures("_undrawn")
def test_the_outputs_of_a_comparison_and_a_verification_have_their_shapes(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = str(tmp_path / "kept")
    shapes.check(
        "compare",
        printed(["compare", scenario, "codel", "red", "--json", "-q", "-o", kept], capsys),
    )
    shapes.check("verify", printed(["verify", kept, "--json", "-q"], capsys))


def test_a_key_that_is_missing_or_not_described_is_noticed(tmp_path: Path) -> None:
    summary = metrics.summary(small_run(tmp_path / "run")).to_dict()
    whole = outputs.stamped("run", {**summary, "failed": []})
    shapes.check("run", json.loads(json.dumps(whole)))
    with pytest.raises(AssertionError, match="surprise"):
        shapes.check("run", whole | {"surprise": 1})
    with pytest.raises(AssertionError, match="'failed' is a required property"):
        shapes.check("run", {key: value for key, value in whole.items() if key != "failed"})


@pytest.mark.parametrize("name", schemas.names())
def test_a_schema_is_printed_by_its_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name in printed_words(["list", "schemas"], capsys)
    whole = printed(["list", "schemas", name], capsys)
    assert whole["properties"]
    Draft202012Validator.check_schema(whole)


def test_a_schema_has_the_fields_in_order_and_what_their_docstrings_say() -> None:
    whole = schemas.make("advise")
    # The verb's own field, then the fields of its base.
    assert list(whole["properties"])[:3] == ["about", "goal", "chosen"]
    assert whole["properties"]["schema"] == {"const": "sojourn/advise/1"}
    assert whole["properties"]["about"]["description"] == "The line or the scenario."
    numbers = schemas.make("run")["$defs"]["MeanAndMax_float___None_"]
    assert list(numbers["properties"]) == ["mean", "max"]


def test_other_words_of_list_take_no_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["list", "schemas", "nope"]) == 2
    assert "'nope' is not a schema" in capsys.readouterr().err
    assert status(["list", "qdiscs", "run"]) == 2
    assert "'run' is an extra word after `list qdiscs`" in capsys.readouterr().err


def test_a_run_s_tables_have_the_shape_of_their_schema(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    tables = {
        file.stem: run.table(file.stem, 1).to_dicts()
        for file in (run.path / "seed-1").glob("*.parquet")
    }
    assert set(tables) >= {"queue", "flow", "probe", "links", "flows"}
    shapes.check("tables", tables)
    spoilt = [{**row, "t_ns": None} for row in tables["queue"]]
    with pytest.raises(AssertionError, match="t_ns"):
        shapes.check("tables", tables | {"queue": spoilt})
