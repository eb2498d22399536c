"""Lists of names that are kept apart from the declaration of these names. Each list contains every
member that it has to.

A new member of a declaration fails here until it is in the list, or among the deliberate
exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest

import sojourn
import sojourn_papers
from sojourn import _core, extras
from sojourn.advice.choice import GOALS as WANTED
from sojourn.cli import advise, cli, contest_text, usage
from sojourn.cli import list as listed
from sojourn.defaults import ENGINES, GOALS
from sojourn.engine import estimate, registry
from sojourn.engine.kernel.guest import guests
from sojourn.engine.kernel.releases import RELEASES
from sojourn.evaluation import claim_results, phrases
from sojourn.figures import comparison, distribution, series, style
from sojourn.judgement import likeness, quantities
from sojourn.numbers import GroupNumbers
from sojourn.own.language import BASES
from sojourn.records import schema
from sojourn.report import QUEUE, USERS
from sojourn.sweeps import grid
from sojourn_papers import NAMES

ROOT = Path(sojourn.__file__).parent
PAPERS = Path(sojourn_papers.__file__).parent


def every(role: str | None = None) -> set[str]:
    """Returns the heads of all quantities, or of those with this role."""
    group: Any = {key: {} for key in GroupNumbers.__annotations__} | {"name": "x", "kind": "bulk"}
    other: Any = {**group, "name": "y"}
    asked: Any = {**group, "kind": "requests"}
    declared = [
        *quantities.QUANTITY.values(),
        *quantities._of_group(group),
        *quantities._of_group(asked),
        *quantities._own_goodputs([group, other]),
    ]
    return {head(one.key) for one in declared if role in (None, one.role)}


def head(key: str) -> str:
    return key.partition(":")[0]


def heads(keys: Iterable[str]) -> set[str]:
    return set(map(head, keys))


# ----------------------------------------------------------------------------- quantities of Runs


def test_a_sweep_has_a_column_for_each_quantity() -> None:
    assert set(grid.ORDER) == every()


def test_the_page_has_each_quantity_that_counts() -> None:
    assert every("felt") - heads(USERS) == {"ping_mean"}, "the page shows the median"
    assert every("queue") <= heads(QUEUE)
    assert every("cost") <= heads(USERS)
    counted = {"drops", "marks", "utilisation", "ping_idle", "own_goodput"}
    assert every("context") - heads([*USERS, *QUEUE]) <= counted


def test_the_terminal_s_table_of_the_queue_has_each_quantity_of_one() -> None:
    at_link = {
        one.key
        for one in quantities._fixed("up", quantities.NOWHERE)
        if one.of == "up" and one.role != "cost"
    }
    assert at_link == {*contest_text.QUEUE, "drop_rate"}
    assert set(contest_text.LEFT_OUT) <= every()


def test_the_bars_have_each_quantity_that_is_felt() -> None:
    left_out = {"ping_mean", "completion_p95", "ping_loss"}
    assert every("felt") - heads(comparison.SHOWN) == left_out


def test_each_goal_considers_calls_and_transfers() -> None:
    assert set(WANTED) == set(GOALS)
    felt = every("felt") - {"ping_mean", "completion_mean"}
    assert felt == heads([*WANTED["delay"].keys, *WANTED["calls"].keys]) & every("felt")
    assert {"mos", "late"} <= heads(WANTED["calls"].keys)
    deciding = {head(key) for goal in WANTED.values() for key in goal.keys}
    assert deciding - {"completion_p95", "ping_loss"} == set(advise.SHOWN)


# ------------------------------------------------------------------------- what a scenario can say


CONDITIONS = {
    *("bottleneck", "link", "flow", "up", "down", "duplex", "name", "from", "to", "via"),
    *("duration", "warmup", "rate", "delay", "link_layer", "loss", "jitter", "reorder"),
    *("duplicate", "slot", "overtake", "delay_schedule", "delay_repeat", "schedule", "repeat"),
    *("loss_schedule", "loss_repeat"),
    *("police", "replay_window", "kind", "count", "direction", "rtt", "start", "stop", "access"),
    *("hosts", "hosts_at", "dscp", "tunnel", "packets", "ladder", "segment", "ahead", "size"),
    *("interval", "packet", "fps", "gop", "i_ratio", "cv", "payload", "frames", "pause"),
    *("objects", "on", "off", "sender", "request"),
}
"""Keys of a scenario that are conditions rather than choices: they describe the line and its
users."""


def test_each_key_of_a_scenario_is_a_choice_a_condition_or_without_meaning_for_a_judgement() -> (
    None
):
    choices, silent = likeness.CHOICES, likeness.SILENT
    assert not CONDITIONS & (choices | silent)
    tables = {name: set(keys) for name, keys in _core.scenario_keys().items()}
    # Keys in these tables have the kind of the table itself.
    below = set().union(
        *(tables.pop(name) for name in ("tcp", "record", "[[program]]", "programs"))
    )
    keys = set().union(*tables.values())
    assert keys - choices - silent - CONDITIONS == set()
    assert (choices | CONDITIONS) - keys == set(), "no such key"
    assert {"tcp", "record", "program", "programs"} <= choices | silent
    assert below


# ----------------------------------------------------------------------- disciplines, causes, links


def test_each_discipline_and_each_cause_of_a_drop_has_a_colour() -> None:
    assert set(style.QDISCS) == {*_core.QDISCS, "own"}
    assert set(style.CAUSES) == set(_core.CAUSES)


def test_each_number_of_a_discipline_s_state_has_a_word_in_the_figures() -> None:
    columns = [column.name for column in _core.TABLES["queue"].columns]
    state = set(columns[columns.index("marked_packets") + 1 :])
    # These have axes of their own: the two queues of dualpi2, and the stages below the discipline.
    apart = {"l4s_delay_ns", "classic_delay_ns", "ring_packets", "ring_bytes", "bql_limit_bytes"}
    assert state - set(series._STATE_WORDS) == apart
    assert set(series._STATE_WORDS) <= state


# --------------------------------------------------------------------------- engines and the guests


def test_each_engine_has_a_guest_and_a_pace() -> None:
    alone = {"sim", "netns"}
    assert set(registry.GUESTS) | alone == set(ENGINES)
    assert set(estimate.TAKES) | {"kernel"} == set(ENGINES), "kernel stands for one of its guests"
    assert set(estimate._KERNELS) | {"sim", "kernel-uml", "kernel-qemu"} == set(ENGINES)


def test_each_guest_has_a_name_and_a_description() -> None:
    names = set(get_args(guests.Name))
    assert names == set(guests.NAMES) == set(guests.WHAT)
    assert {release.guest for release in RELEASES} <= names


# --------------------------------------------------------------------------- verdicts, words, lists


def test_each_verdict_of_a_claim_has_a_sign_and_a_rank() -> None:
    standings = set(get_args(claim_results.Standing))
    assert standings == set(claim_results.WORST) == set(phrases.SIGNS)


def test_each_distribution_has_an_axis() -> None:
    assert set(distribution.WORDS) == set(get_args(distribution.What))


def test_each_table_on_request_is_a_key_of_the_record() -> None:
    assert set(schema.ON_REQUEST) <= set(_core.scenario_keys()["record"])
    assert set(_core.scenario_keys()["record"]) - set(schema.ON_REQUEST) <= set(_core.TABLES)


def test_the_lists_in_the_help_are_those_that_list_accepts() -> None:
    argument = listed.list_.params[0]
    assert set(getattr(argument.type, "choices", ())) == {*listed._LISTS, *listed.OTHERS}
    assert set(listed.NAMES) == set(listed._LISTS)


def test_each_hint_for_another_program_s_word_names_a_command_of_ours() -> None:
    said = [*usage._VERBS.values(), *usage._MOVED.values()]
    assert {each.split()[1] for each in said} <= set(cli.commands)


def test_each_method_of_own_code_has_a_hint() -> None:
    pytest.importorskip("numba", reason="pip install sojourn[own]")
    from sojourn.own import bases, compiled

    assert set(bases.ANSWERS) == set(BASES["Discipline"].methods)
    assert set(compiled._BOUNDS) == set(BASES["CongestionControl"].shared)


def test_each_paper_s_folder_is_named() -> None:
    folders = {file.parent.name for file in PAPERS.glob("*/published.toml")}
    assert {name.replace("-", "_") for name in NAMES} == folders


def test_each_package_adds_the_verbs_that_the_core_names() -> None:
    brought = {
        extra.name: {verb for verbs in extra.verbs.values() for verb in verbs}
        for extra in extras.installed()
    }
    assert brought == {f"sojourn-{name}": {*verbs} for name, verbs in extras.VERBS.items()}
    lists = {extra.name: {*extra.lists} for extra in extras.installed() if extra.lists}
    assert lists == {f"sojourn-{name}": {*names} for name, names in extras.LISTS.items()}
    for extra in extras.installed():
        for place in [
            *(p for verbs in extra.verbs.values() for p in verbs.values()),
            *extra.lists.values(),
        ]:
            assert callable(extras.load(place)), place
