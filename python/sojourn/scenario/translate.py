"""pydantic's errors as a scenario's problems: in the words of the language, at their place in the text, with what to write instead."""

import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from sojourn.scenario import linux
from sojourn.scenario.errors import CheckError, Key, Problem, Source
from sojourn.units import UnitError, nearest, quoted

_EXAMPLES = {
    "duration": 'duration = "60 s"',
    "rate": 'rate = "20 Mbit/s"',
    "delay": 'delay = "10 ms"',
    "size": 'size = "50 kB"',
    "from": 'from = "server"',
    "to": 'to = "home"',
    "kind": 'kind = "bulk"',
}
_MEANT = {
    **dict.fromkeys(("bandwidth", "speed", "bw", "capacity"), "rate"),
    **dict.fromkeys(("latency", "propagation"), "delay"),
    **dict.fromkeys(("aqm", "queue_discipline", "buffer", "discipline"), "qdisc"),
    **dict.fromkeys(("cc", "tcp_cc", "congestion_control"), "congestion"),
    **dict.fromkeys(("type", "traffic"), "kind"),
    **dict.fromkeys(("base_rtt",), "rtt"),
    **dict.fromkeys(("tos", "ds", "dsfield", "diffserv", "ipqos", "priority", "prio"), "dscp"),
    **dict.fromkeys(("overhead", "linklayer", "framing"), "link_layer"),
    **dict.fromkeys(("tx_ring", "txring", "ring_buffer", "descriptors", "tx"), "ring"),
    **dict.fromkeys(("byte_queue_limits", "dql"), "bql"),
    **dict.fromkeys(("tx_usecs", "coalescing", "interrupts"), "coalesce"),
    **dict.fromkeys(("htb", "tbf", "shape", "shaping"), "shaper"),
    **dict.fromkeys(("flows",), "flow"),
    **dict.fromkeys(("links",), "link"),
    **dict.fromkeys(("warm_up",), "warmup"),
    **dict.fromkeys(("time", "length", "stop_time"), "duration"),
    **dict.fromkeys(("number", "n"), "count"),
}
"""Other programs' words for ours."""
_BELOW = {"bottleneck": "bottleneck", "link": "link.*", "flow": "flow.*", "record": "record"}
"""The tables of a scenario, and how a dotted key names what lies in them."""
_NOT_OF_A_LINK = {
    "jitter": 'jitter is of a [[flow]]: jitter = "1 ms"',
    **dict.fromkeys(
        ("mtu", "mss", "packet"), 'sizes are of a [[flow]]: tcp = { mss = 1400 }, or packet = "1400 B"'
    ),
    **dict.fromkeys(("policer", "police"), 'no engine has a policer; nearest: shaper = "htb rate 10mbit"'),
    **dict.fromkeys(
        ("reorder", "reordering", "duplicate", "duplication", "corrupt"),
        "no engine reorders, doubles or damages packets; loss loses them",
    ),
}
"""What others' links have and ours don't."""
_KINDS = {
    "bool_type": ("true or false", "write true or false, without quotes"),
    "int_type": ("a whole number", "write a whole number, without quotes and without a point"),
    "int_from_float": ("a whole number", "write a whole number, without a point"),
    "float_type": ("a number", "write a number, without quotes"),
    "finite_number": ("a finite number", "write a number"),
    "string_type": ("text", "write it in quotes"),
    "tuple_type": ("a list", "write it in brackets; tables of a list take two: [[flow]]"),
    "list_type": ("a list", "write it in brackets"),
    "dict_type": ("a table", "write it as a table: [sweep]"),
    "model_type": ("a table", "write it as a table, not as a value"),
    "model_attributes_type": ("a table", "write it as a table, not as a value"),
}


MOST = 1000
"""Errors looked into: beyond that it is not a scenario with mistakes but something else."""


def problems_of(
    error: ValidationError, root: type[BaseModel], document: Mapping[str, Any], source: Source
) -> list[Problem]:
    """Every problem (of the first thousand), in the order of the text."""
    problems = [
        problem for each in error.errors()[:MOST] for problem in _problems(each, root, document, source)
    ]
    return sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))


def _problems(
    error: Any, root: type[BaseModel], document: Mapping[str, Any], source: Source
) -> Iterator[Problem]:
    key = _key(error["loc"], document)
    context = error.get("ctx", {})
    kind = error["type"]
    cause = context.get("error")
    if isinstance(cause, CheckError):
        for problem in cause.problems:
            inner = Problem(problem.message, problem.hint, _written(problem.key, document))
            yield source.locate(inner)
    elif isinstance(cause, UnitError):
        yield source.locate(Problem(cause.problem, cause.hint, key), cause.offset)
    elif kind == "missing":
        name = str(key[-1])
        example = _EXAMPLES.get(name, f"{name} = ...")
        yield source.locate(Problem(f"{name} is missing", f"write {example}", key))
    elif kind == "extra_forbidden":
        yield source.at_name(Problem("unknown key", _hint_for_key(key, root, document), key))
    elif kind in ("union_tag_not_found", "union_tag_invalid"):
        yield source.locate(_kind_problem(key, error["input"], str(context.get("expected_tags", ""))))
    elif kind == "literal_error":
        yield source.locate(_literal_problem(key, error["input"], str(context["expected"])))
    elif kind in _KINDS:
        what, hint = _KINDS[kind]
        yield source.locate(Problem(f"{quoted(error['input'])} is not {what}", hint, key))
    else:
        message = str(error["msg"]).removeprefix("Input should be ")
        message = f"{quoted(error['input'])} is out of range: it should be {message}"
        yield source.locate(Problem(message, "write a number within that range", key))


def _key(loc: tuple[str | int, ...], document: Mapping[str, Any]) -> Key:
    """pydantic's location without the names of the union's branches."""
    key: list[str | int] = []
    skipped = False
    here: Any = document
    for part in loc:
        in_flow = len(key) == 2 and key[0] == "flow" and isinstance(here, Mapping)
        if in_flow and not skipped and part == here.get("kind"):
            skipped = True
            continue
        key.append(part)
        here = _inside(here, part)
    return _written(tuple(key), document)


def _written(key: Key, document: Mapping[str, Any]) -> Key:
    """`seed = 7` is kept as `seeds`."""
    return ("seed",) if key[:1] == ("seeds",) and "seed" in document else key


def _inside(here: Any, part: str | int) -> Any:
    if isinstance(here, Mapping):
        return here.get(part)
    if isinstance(here, list | tuple) and isinstance(part, int) and part < len(here):
        return here[part]
    return None


def _hint_for_key(key: Key, root: type[BaseModel], document: Mapping[str, Any]) -> str:
    name = str(key[-1])
    table = _table_at(root, key[:-1], document)
    if table is None:
        return "leave it out"
    known = [field.alias or each for each, field in table.model_fields.items()]
    # The loader turns these into what the model knows.
    known += ["seed"] if "seeds" in known else []
    known += ["trace"] if "schedule" in known or "frames" in known else []
    if table.__name__ == "TcpSettings" and name in ("congestion", "ecn", "profile"):
        return f"{name} belongs to the flow itself, beside tcp"
    if len(key) == 1 and (below := _below(name, root, document)):
        return f"did you mean {below}?"
    if {"rate", "qdisc"} <= set(known) and (elsewhere := _NOT_OF_A_LINK.get(name.lower())):
        return elsewhere
    guess = _MEANT.get(name.lower(), "")
    if guess not in known:
        guess = nearest(name, known) or ""
    listed = f"known keys: {', '.join(each for each in known if each != 'label')}"
    return f"did you mean {guess}? {listed}" if guess else listed


def _below(name: str, root: type[BaseModel], document: Mapping[str, Any]) -> str:
    """The dotted key that a key of the whole file was probably meant to be; empty if no table has it."""
    for table, dotted in _BELOW.items():
        if (table == "bottleneck" and "link" in document) or (table == "link" and "link" not in document):
            continue
        models = _models(root.model_fields[_field(root, table)].annotation)
        if any(
            name == (field.alias or each) for model in models for each, field in model.model_fields.items()
        ):
            value = document.get(name)
            inner = f".{next(iter(value))}" if isinstance(value, Mapping) and len(value) == 1 else ""
            return f"{dotted}.{name}{inner}"
    return ""


def dotted_key(word: str) -> str:
    """The key of a scenario with a [bottleneck] that a word, ours or another program's, means; empty if there is none."""
    from sojourn.scenario.model import Scenario

    name = _MEANT.get(word.lower(), word.lower())
    return name if name in Scenario.model_fields else _below(name, Scenario, {})


def _field(table: type[BaseModel], key: str) -> str:
    """The field that a key is read into."""
    return next(name for name, field in table.model_fields.items() if (field.alias or name) == key)


def _table_at(root: type[BaseModel], key: Key, document: Mapping[str, Any]) -> type[BaseModel] | None:
    """The class of the table at a key."""
    table: type[BaseModel] | None = root
    here: Any = document
    for part in key:
        here = _inside(here, part)
        if isinstance(part, int):
            continue
        if table is None:
            return None
        fields = {field.alias or name: field for name, field in table.model_fields.items()}
        if part not in fields:
            return None
        models = list(_models(fields[part].annotation))
        table = models[0] if models else None
        if len(models) > 1:
            entry = _inside(here, int(key[1])) if len(key) > 1 else here
            table = next((model for model in models if _tag(model) == _inside(entry, "kind")), None)
    return table


def _tag(model: type[BaseModel]) -> object:
    return typing.get_args(model.model_fields["kind"].annotation)[0] if "kind" in model.model_fields else None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models(inner)


def _kind_problem(key: Key, table: object, expected: str) -> Problem:
    kinds = [tag.strip().strip("'") for tag in expected.split(",")] if expected else []
    if not isinstance(table, Mapping):
        return Problem(f"{quoted(table)} is not a table", 'write [[flow]] with kind = "bulk"', key)
    given = table.get("kind")
    if given is None:
        return Problem("kind is missing", f"write {_EXAMPLES['kind']}", (*key, "kind"))
    meant = {
        "tcp": "bulk",
        "ftp": "bulk",
        "greedy": "bulk",
        "cbr": "udp",
        "web": "transfers",
        "http": "transfers",
    }
    guess = meant.get(str(given).lower()) or nearest(str(given), kinds)
    known = f"known kinds: {', '.join(kinds)}"
    hint = f"did you mean {guess}? {known}" if guess else known
    return Problem(f"{quoted(given)} is not a kind of flow", hint, (*key, "kind"))


def _literal_problem(key: Key, value: object, expected: str) -> Problem:
    words = [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",")]
    guess = nearest(value, words) if isinstance(value, str) else None
    known = f"one of {', '.join(words)}"
    if key[-1] == "congestion" and (instead := linux.CONGESTION_ELSEWHERE.get(str(value).lower())):
        where = f"neither in the simulator nor in Linux {linux.LINUX_RELEASE}, the guest's"
        return Problem(f"{quoted(value)} is {where}", instead, key)
    if key[-1] == "direction" and str(value).lower() in (
        "both",
        "bidirectional",
        "duplex",
        "updown",
        "up down",
    ):
        hint = 'write two [[flow]], one with direction = "down" and one with direction = "up"'
        return Problem(f"{quoted(value)} is not {known}", hint, key)
    return Problem(
        f"{quoted(value)} is not {known}", f"did you mean {guess}?" if guess else f'write "{words[0]}"', key
    )
