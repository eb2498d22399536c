"""What a file of one's own may contain, and how it becomes code that can't go wrong unnoticed.

The file is read, never imported: imports of `math` and `sojourn.own`, constants, functions, classes.
A function computes with whole numbers of 64 bits, reals and the arrays of its class. There is no name
by which it could reach anything else, so a Run from elsewhere can be verified.

Each function is rewritten before it is compiled:

| written | becomes |
|---|---|
| `a + b`, `a - b`, `a * b`, `a << b`, `a // b`, ... | a function of `checks`: a result beyond 64 bits and a division by zero are failures |
| `self.x[i]` | the same: an index is one of the array |
| a turn of a loop | is counted: a loop has an end |
| a statement | notes its line first, so that a failure has a place |
| `f(...)`, `self.method(...)` | the compiled function, with the state as its first argument |
"""

from __future__ import annotations

import ast
import math
import operator
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sojourn import own
from sojourn.errors import UserError
from sojourn.units import nearest

PUBLIC = {name: getattr(own, name) for name in ("PASS", "DROP", "MARK", "US", "MS", "S")}
"""Constants of `sojourn.own`."""

Number = int | float


@dataclass(frozen=True)
class View:
    """What a method is shown: whole numbers under names, and arrays of them, one for each queue."""

    numbers: tuple[str, ...]
    arrays: tuple[str, ...] = ()


VIEWS = {
    "packet": View(("bytes", "flow", "hash", "ecn", "ce", "dscp", "enqueued", "sojourn")),
    "link": View(("now", "packets", "bytes", "mtu", "rate"), ("queue_packets", "queue_bytes")),
    "ack": View(
        ("now", "acked", "rtt", "srtt", "una", "nxt", "cwnd_limited", "open", "mss"),
    ),
    "event": View(("now", "inflight", "mss")),
    "delivery": View(
        (
            "now",
            "delivered",
            "interval",
            "rate",
            "prior_delivered",
            "total_delivered",
            "app_limited",
            "acked",
            "losses",
            "prior_inflight",
            "inflight",
            "rtt",
            "repair",
            "cwnd_limited",
            "mss",
        ),
    ),
}
"""By the name of an argument, in the engine's order (crates/qdisc, own.rs; crates/tcp, own.rs)."""
_TYPES = {
    "Packet": "packet",
    "Link": "link",
    "Ack": "ack",
    "Congestion": "event",
    "Delivery": "delivery",
}
"""By the annotation of an argument."""


@dataclass(frozen=True)
class Base:
    """What a class may begin from."""

    name: str
    word: str
    asked: Mapping[str, tuple[str, ...]]
    """What the engine asks, and of what."""
    settings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Fields that the engine reads, each with its bounds."""
    shared: Mapping[str, Number] = field(default_factory=dict)
    """Fields that the engine reads and sets, ahead of the class's own."""


BASES = {
    base.name: base
    for base in (
        Base(
            "Discipline",
            "discipline",
            {
                "enqueue": ("packet", "link"),
                "overflow": ("link",),
                "choose": ("link",),
                "dequeue": ("packet", "link"),
                "idle": ("link",),
                "timer": ("link",),
            },
            {
                "queues": (1, 1 << 16),
                "limit": (0, 1 << 32),
                "timer_start": (0, 1 << 62),
                "bypass": (0, 1),
            },
        ),
        Base(
            "CongestionControl",
            "congestion control",
            {
                "on_ack": ("ack",),
                "on_loss": ("event",),
                "on_ecn": ("event",),
                "on_timeout": ("event",),
                "on_delivery": ("delivery",),
            },
            shared={"cwnd": 10.0, "ssthresh": math.inf, "pacing_rate": 0},
        ),
    )
}
SILENT = ("idle", "on_ack", "on_loss", "on_ecn", "on_timeout", "on_delivery")
"""Methods that answer nothing."""
_STARTS = {"cwnd": "window", "ssthresh": "ssthresh"}
MOST_NUMBERS = 1 << 22
"""Of a state."""

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.Pow: "power",
}
_PLAIN = (ast.BitAnd, ast.BitOr, ast.BitXor)
_CONSTANT: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_BUILTINS = ("abs", "bool", "float", "len", "max", "min")
_CHECKED_BUILTINS = {"int": "whole", "round": "nearest"}
_MATH = ("sqrt", "exp", "log", "log2", "isnan", "isinf")
_CHECKED_MATH = {"floor": "floor", "ceil": "ceil"}
_MATH_CONSTANTS = ("pi", "e", "inf")


@dataclass(frozen=True)
class Law:
    """A class, read."""

    file: str
    name: str
    base: Base
    values: Mapping[str, Number | list[Number]]
    """Its fields at their start."""
    settings: Mapping[str, int]
    functions: tuple[ast.FunctionDef, ...]
    """Rewritten, each ahead of those that call it."""
    asked: tuple[str, ...]
    """What of `base.asked` it has: functions of the same names."""
    paces: bool = False
    """A congestion control that sets a pacing rate."""
    said: Mapping[int, str] = field(default_factory=dict)
    """By line: what a `raise` or `assert` says."""


def read(source: str, file: str, name: str, words: str) -> Law:
    """The class of a file, with the numbers that a scenario sets.

    Raises:
        UserError: the file is not of this language, or has no such class; with its line.
    """
    return _parsed(source, file).law(name, _set(words))


def base_of(source: str, file: str, name: str) -> Base:
    """What a class of a file begins from.

    Raises:
        UserError: as `read`.
    """
    return _parsed(source, file).found(name)[1]


_PARSES = threading.Lock()
"""Of Python 3.11 two threads that parse at once may end in a SystemError: the depths of their trees
are counted together (gh-106905)."""


def _parsed(source: str, file: str) -> _File:
    try:
        with _PARSES:
            tree = ast.parse(source, file)
    except SyntaxError as error:
        raise UserError(
            f"{file}:{error.lineno or 1}: not Python: {error.msg}", "correct the line"
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise UserError(f"{file}: not Python", "give a file of Python") from None
    return _File(file, tree)


def _set(words: str) -> dict[str, Number]:
    said = words.split()
    return {
        word: int(text) if text.lstrip("+-").isdigit() else float(text)
        for word, text in zip(said[::2], said[1::2], strict=True)
    }


class _File:
    """Reads the top of a file."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file = file
        self.constants: dict[str, Number] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.bases: set[str] = set()
        self.imports_math = False
        for statement in tree.body:
            self._top(statement)

    def refuse(self, node: ast.AST, problem: str, hint: str) -> UserError:
        line = getattr(node, "lineno", 1)
        return UserError(f"{self.file}:{line}: {problem}", hint)

    def _top(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.ImportFrom(module="__future__"):
                pass
            case ast.ImportFrom(module="sojourn.own", names=names, level=0):
                self._take(statement, names)
            case ast.Import(names=[ast.alias(name="math", asname=None)]):
                self.imports_math = True
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._constant(statement, name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._constant(statement, name, value)
            case ast.FunctionDef(name=name):
                self.functions[name] = statement
            case ast.ClassDef(name=name):
                self.classes[name] = statement
            case ast.Import() | ast.ImportFrom():
                raise self.refuse(
                    statement,
                    "only math and sojourn.own can be imported",
                    "the text of this file is all that a Run keeps and a worker gets",
                )
            case _:
                raise self.refuse(
                    statement,
                    "not a constant, a function or a class",
                    "a file has imports, constants, functions and classes",
                )

    def _take(self, statement: ast.stmt, names: Sequence[ast.alias]) -> None:
        for alias in names:
            if alias.asname is not None or alias.name not in own.__all__:
                raise self.refuse(
                    statement,
                    f"sojourn.own has no {alias.asname or alias.name}",
                    f"it has {', '.join(own.__all__)}",
                )
            if alias.name in BASES:
                self.bases.add(alias.name)
            if alias.name in PUBLIC:
                self.constants[alias.name] = PUBLIC[alias.name]

    def _constant(self, statement: ast.stmt, name: str, value: ast.expr) -> None:
        number = self.value(value, self.constants)
        if isinstance(number, list):
            raise self.refuse(statement, "a constant is one number", "make it a field of the class")
        self.constants[name] = number

    def value(self, node: ast.expr, known: Mapping[str, Number]) -> Number | list[Number]:
        """What an expression of constants is."""
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return number
            case ast.Name(id=name) if name in known:
                return known[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._one(operand, known)
            case ast.BinOp(left=ast.List(elts=[item]), op=ast.Mult(), right=count):
                times = self._one(count, known)
                if not isinstance(times, int) or not 0 < times <= MOST_NUMBERS:
                    raise self.refuse(
                        node, f"an array of {times} numbers", f"from 1 to {MOST_NUMBERS}"
                    )
                return [self._one(item, known)] * times
            case ast.List(elts=items) if items:
                return [self._one(item, known) for item in items]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _CONSTANT:
                try:
                    return _CONSTANT[type(op)](self._one(left, known), self._one(right, known))
                except ArithmeticError:
                    raise self.refuse(node, "not a number", "divide by another one") from None
        raise self.refuse(
            node, "not a constant", "write a number, or what is computed of constants above"
        )

    def _one(self, node: ast.expr, known: Mapping[str, Number]) -> Number:
        value = self.value(node, known)
        if isinstance(value, list):
            raise self.refuse(node, "an array is not a number", "write a number")
        return value

    def found(self, name: str) -> tuple[ast.ClassDef, Base]:
        """A class and what it begins from."""
        found = self.classes.get(name)
        if found is None:
            there = ", ".join(self.classes) or "no class"
            raise UserError(f"{self.file} has no class {name}", f"it has {there}")
        bases = [base.id for base in found.bases if isinstance(base, ast.Name)]
        if len(bases) != 1 or bases[0] not in self.bases:
            raise self.refuse(
                found,
                f"{name} is no discipline and no congestion control",
                f"write from sojourn.own import Discipline, and class {name}(Discipline)",
            )
        return found, BASES[bases[0]]

    def law(self, name: str, words: Mapping[str, Number]) -> Law:
        return _Class(self, *self.found(name), words).law()


class _Class:
    """Reads a class."""

    def __init__(
        self, file: _File, node: ast.ClassDef, base: Base, words: Mapping[str, Number]
    ) -> None:
        self.file = file
        self.node = node
        self.base = base
        self.words = words
        self.values: dict[str, Number | list[Number]] = dict(base.shared)
        self.settings = {name: getattr(own.Discipline, name) for name in base.settings}
        self.paces = False
        # A setting that no line of the class has can be set as well.
        for word in self.words.keys() & self.settings.keys():
            self._setting(node, word, self.words[word])
        self.methods: dict[str, ast.FunctionDef] = {}
        self.said: dict[int, str] = {}
        for statement in node.body:
            self._member(statement)
        self._check_words()

    def _member(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.FunctionDef(name=name):
                self.methods[name] = statement
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self.base.settings:
                self._field(statement, name, "int", value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                if value is None:
                    raise self.file.refuse(
                        statement, f"{name} has no first value", f"write {name}: int = 0"
                    )
                self._field(statement, name, ast.unparse(kind), value)
            case _:
                raise self.file.refuse(
                    statement, "not a field or a method", "write a field like target: int = 5 * MS"
                )

    def _field(self, statement: ast.stmt, name: str, kind: str, node: ast.expr) -> None:
        known = {**self.file.constants, **self.settings}
        known.update({k: v for k, v in self.values.items() if not isinstance(v, list)})
        value = self.file.value(node, known)
        if name.startswith("_") and name[1:2] == "_":
            raise self.file.refuse(statement, f"{name} is a name of Python's own", "choose another")
        if name in self.base.shared:
            self._shared(statement, name, value)
            return
        if name in self.words and not isinstance(value, list):
            value = self.words[name]
        if name in self.base.settings:
            self._setting(statement, name, value)
            return
        self.values[name] = self._typed(statement, name, kind, value)

    def _shared(self, at: ast.AST, name: str, value: Number | list[Number]) -> None:
        if name != "pacing_rate":
            raise self.file.refuse(
                at,
                f"{name} is set by the connection at its start",
                f"leave the line out; a scenario says tcp = {{ initial_{_STARTS[name]} = ... }}",
            )
        if value != 0:
            raise self.file.refuse(at, "pacing_rate begins at 0", "set it in on_ack")
        self.paces = True

    def _setting(self, at: ast.AST, name: str, value: object) -> None:
        least, most = self.base.settings[name]
        if not isinstance(value, int) or not least <= value <= most:
            raise self.file.refuse(
                at, f"{name} is a whole number, not {value}", f"from {least} to {most}"
            )
        self.settings[name] = value

    def _typed(
        self, statement: ast.stmt, name: str, kind: str, value: Number | list[Number]
    ) -> Number | list[Number]:
        array, one = kind.startswith("list["), kind.removeprefix("list[").removesuffix("]")
        if one not in ("int", "float", "bool") or array != isinstance(value, list):
            raise self.file.refuse(
                statement,
                f"{name}: {kind} is no number and no array of them",
                "write int, float, bool, list[int] or list[float], and a first value of that",
            )
        items = value if isinstance(value, list) else [value]
        if one == "float":
            reals: list[Number] = [float(item) for item in items]
            return reals if array else reals[0]
        for item in items:
            if item % 1 != 0 or not -(1 << 63) <= item < 1 << 63:
                raise self.file.refuse(
                    statement, f"{name} is a whole number of 64 bits, not {item}", "or a float"
                )
        wholes: list[Number] = [int(item) for item in items]
        return wholes if array else wholes[0]

    def _check_words(self) -> None:
        settable = [
            name
            for name, value in self.values.items()
            if not isinstance(value, list) and name not in self.base.shared
        ]
        settable += list(self.base.settings)
        for word in self.words:
            if word not in settable:
                guess = nearest(word, settable)
                raise UserError(
                    f"{self.file.file}:{self.node.name} has no number {word}",
                    (f"did you mean {guess}? " if guess else "")
                    + f"it has {', '.join(settable) or 'none'}",
                )

    def law(self) -> Law:
        many = sum(len(v) if isinstance(v, list) else 1 for v in self.values.values())
        if many > MOST_NUMBERS:
            raise self.file.refuse(
                self.node, f"a state of {many} numbers", f"the most is {MOST_NUMBERS}"
            )
        asked = tuple(name for name in self.base.asked if name in self.methods)
        if self.settings.get("queues", 1) > 1 and "choose" not in asked:
            raise self.file.refuse(
                self.node,
                f"{self.node.name} has {self.settings['queues']} queues and no method choose",
                "write def choose(self, link): the number of the queue to serve",
            )
        for name in asked:
            self._check_parameters(name)
        for name in self.methods.keys() & self.file.functions.keys():
            raise self.file.refuse(
                self.methods[name], f"{name} is a function of the file, too", "choose another name"
            )
        functions = {
            **{
                name: _Function(self, node, None).made()
                for name, node in self.file.functions.items()
            },
            **{
                name: _Function(self, node, _self(self.file, node)).made()
                for name, node in self.methods.items()
            },
        }
        ordered = self._ordered(functions)
        return Law(
            self.file.file,
            self.node.name,
            self.base,
            self.values,
            self.settings,
            ordered,
            asked,
            self.paces,
            self.said,
        )

    def _check_parameters(self, name: str) -> None:
        wanted = ("self", *self.base.asked[name])
        given = self.methods[name].args.args
        if len(given) != len(wanted):
            raise self.file.refuse(
                self.methods[name],
                f"{name} takes {len(given)} arguments",
                f"write def {name}({', '.join(wanted)})",
            )

    def _ordered(self, functions: Mapping[str, ast.FunctionDef]) -> tuple[ast.FunctionDef, ...]:
        """Each behind those that it calls."""
        done: dict[str, ast.FunctionDef] = {}
        under_way: list[str] = []

        def visit(name: str) -> None:
            if name in done:
                return
            if name in under_way:
                raise self.file.refuse(
                    functions[name], f"{name} calls itself", "write a loop: calls have no end"
                )
            under_way.append(name)
            for other in _called(functions[name], functions):
                visit(other)
            under_way.pop()
            done[name] = functions[name]

        for name in functions:
            visit(name)
        return tuple(done.values())


def _self(file: _File, node: ast.FunctionDef) -> str:
    if not node.args.args:
        raise file.refuse(node, f"{node.name} has no self", f"write def {node.name}(self, ...)")
    return node.args.args[0].arg


def _called(function: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef]) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id.removeprefix(FUNCTION)
            if node.func.id.startswith(FUNCTION) and name in functions:
                yield name


FUNCTION = "own_"
"""Ahead of the names of the file's functions, so that none hides one of ours."""
CHECK = "check_"
"""Ahead of those of `checks`."""
STATE = "state_"
"""The first argument of each function."""
LUCK, WHY, LINE, TURNS = "luck_", "why_", "line_", "turns_"
"""Ahead of the fields of a state."""


class _Function(ast.NodeTransformer):
    """Rewrites one function, and refuses what is not of the language."""

    def __init__(self, owner: _Class, node: ast.FunctionDef, own_name: str | None) -> None:
        self.owner = owner
        self.file = owner.file
        self.node = node
        self.own_name = own_name
        arguments = node.args
        others = (arguments.posonlyargs, arguments.kwonlyargs, arguments.kw_defaults)
        odd = arguments.vararg or arguments.kwarg or any(others) or arguments.defaults
        if odd or node.decorator_list:
            raise self.file.refuse(node, "more than plain arguments", "write def f(a, b)")
        names = [argument.arg for argument in arguments.args]
        self.arguments = names if own_name is None else names[1:]
        self.views = self._views()
        self.locals = {*self.arguments, *_assigned(node)}
        for name in self.locals:
            if name.endswith("_") or name.startswith((FUNCTION, CHECK)):
                raise self.file.refuse(node, f"the name {name} is taken", "choose another")
        self.counter = 0

    def _views(self) -> dict[str, str]:
        """Arguments that are the packet, the link and their like, by what they are."""
        asked = self.owner.base.asked
        if self.own_name is not None and self.node.name in asked:
            return dict(zip(self.arguments, asked[self.node.name], strict=False))
        kinds: dict[str, str] = {}
        for argument in self.node.args.args:
            kind = ast.unparse(argument.annotation) if argument.annotation else ""
            shown = _TYPES.get(kind.strip("'\""), argument.arg)
            if shown in VIEWS:
                kinds[argument.arg] = shown
        return kinds

    def refuse(self, node: ast.AST, problem: str, hint: str) -> UserError:
        return self.file.refuse(node, problem, hint)

    def made(self) -> ast.FunctionDef:
        arguments = [ast.arg(STATE), *(ast.arg(name) for name in self.arguments)]
        made = ast.FunctionDef(
            name=FUNCTION + self.node.name,
            args=ast.arguments([], arguments, None, [], [], None, []),
            body=self._block(self.node.body),
            decorator_list=[],
            returns=None,
        )
        if "type_params" in ast.FunctionDef._fields:
            made.type_params = []  # type: ignore[attr-defined]
        return ast.fix_missing_locations(ast.copy_location(made, self.node))

    # --- statements

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        written: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            note = ast.Assign([_state(LINE, ast.Store())], ast.Constant(statement.lineno))
            made = self._statement(statement)
            written += [ast.copy_location(each, statement) for each in (note, *made)]
        return written or [ast.Pass()]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Pass() | ast.Break() | ast.Continue():
                return [node]
            case ast.Return(value=value):
                return [ast.Return(None if value is None else self.visit(value))]
            case ast.Expr(value=ast.Call()):
                return [ast.Expr(self.visit(node.value))]
            case ast.Assign(targets=[target], value=value):
                return self._assigned(target, self.visit(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._assigned(target, self.visit(value))
            case ast.AugAssign(target=target, op=op, value=value):
                return self._augmented(node, target, op, value)
            case ast.If(test=test, body=body, orelse=orelse):
                return [ast.If(self.visit(test), self._block(body), self._else(orelse))]
            case ast.While(test=test, body=body, orelse=[]):
                return [ast.While(self.visit(test), self._turn(body), [])]
            case ast.For(target=ast.Name(), iter=ast.Call(func=ast.Name(id="range")), orelse=[]):
                assert isinstance(node.iter, ast.Call)
                numbers: list[ast.expr] = [
                    self._check("whole", self.visit(each)) for each in node.iter.args
                ]
                turns = ast.Call(ast.Name("range", ast.Load()), numbers, [])
                return [ast.For(node.target, turns, self._turn(node.body), [])]
            case ast.Raise(exc=exc):
                return self._failure(node, exc)
            case ast.Assert(test=test, msg=said):
                failing = self._failure(node, said)
                return [ast.If(ast.UnaryOp(ast.Not(), self.visit(test)), failing, [])]
        raise self.refuse(
            node,
            f"{type(node).__name__} is not of this language",
            "write assignments, if, while, for in range(...), return, raise and assert",
        )

    def _else(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        return self._block(statements) if statements else []

    def _turn(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [ast.Expr(self._check("turn")), *self._block(body)]

    def _failure(self, node: ast.stmt, said: ast.expr | None) -> list[ast.stmt]:
        for each in ast.walk(said) if said is not None else ():
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                self.owner.said[node.lineno] = each.value
        return [ast.Expr(self._check("raised"))]

    def _assigned(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        match target:
            case ast.Name():
                return [ast.Assign([target], value)]
            case ast.Tuple(elts=parts) if all(isinstance(part, ast.Name) for part in parts):
                return [ast.Assign([target], value)]
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.own_name:
                kind = self._field(target, attr)
                if isinstance(kind, list):
                    raise self.refuse(target, f"{attr} is an array", f"set {attr}[i]")
                return [ast.Assign([_state(attr, ast.Store())], self._fitting(attr, kind, value))]
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr=attr), slice=index
            ) if name == self.own_name:
                array = self._array(target, attr)
                fitting = self._fitting(attr, array[0], value)
                place = self.visit(index)
                return [ast.Expr(self._check("put", _state(attr), place, fitting))]
        raise self.refuse(
            target,
            f"{ast.unparse(target)} can't be set",
            "a method sets its own variables, and fields of self",
        )

    def _fitting(self, name: str, kind: Number, value: ast.expr) -> ast.expr:
        if isinstance(kind, float):
            return ast.Call(ast.Name("float", ast.Load()), [value], [])
        return self._check("fitting", value)

    def _augmented(
        self, node: ast.stmt, target: ast.expr, op: ast.operator, value: ast.expr
    ) -> list[ast.stmt]:
        if isinstance(target, ast.Subscript):
            self.counter += 1
            place = f"place{self.counter}_"
            first = ast.Assign([ast.Name(place, ast.Store())], self.visit(target.slice))
            target = ast.Subscript(target.value, _Made(place), target.ctx)
            ast.copy_location(target, node)
            rest = self._augmented_at(node, target, op, value)
            return [first, *rest]
        return self._augmented_at(node, target, op, value)

    def _augmented_at(
        self, node: ast.stmt, target: ast.expr, op: ast.operator, value: ast.expr
    ) -> list[ast.stmt]:
        now = ast.copy_location(_loaded(target), node)
        changed = ast.copy_location(ast.BinOp(now, op, value), node)
        return self._assigned(target, self.visit(changed))

    # --- expressions

    def visit(self, node: ast.AST) -> ast.expr:
        made = self._expression(node)
        return ast.copy_location(made, node)

    def _expression(self, node: ast.AST) -> ast.expr:
        match node:
            case _Made():
                return ast.Name(node.id, ast.Load())
            case ast.Constant(value=bool() | int() | float()):
                return self._constant(node)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute(value=ast.Name(id=name), attr=attr):
                return self._attribute(node, name, attr)
            case ast.Subscript(value=ast.Attribute() as array, slice=index):
                return self._check("get", self._array_of(array), self.visit(index))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._check(_BINARY[type(op)], self.visit(left), self.visit(right))
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _PLAIN):
                return ast.BinOp(self.visit(left), op, self.visit(right))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return self._constant(ast.copy_location(ast.Constant(-number), node))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._check("sub", ast.Constant(0), self.visit(operand))
            case ast.UnaryOp(op=op, operand=operand):
                return ast.UnaryOp(op, self.visit(operand))
            case ast.BoolOp(op=op, values=values):
                return ast.BoolOp(op, [self.visit(value) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._comparison(node, left, ops, others)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return ast.IfExp(self.visit(test), self.visit(body), self.visit(orelse))
            case ast.Tuple(elts=parts):
                return ast.Tuple([self.visit(part) for part in parts], ast.Load())
            case ast.Call(func=func, args=arguments, keywords=[]):
                return self._call(node, func, arguments)
        raise self.refuse(
            node,
            f"{_shown(node)} is not of this language",
            "it computes with numbers, fields of self, and what the method is shown",
        )

    def _comparison(
        self, node: ast.AST, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]
    ) -> ast.expr:
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops):
            raise self.refuse(node, "only numbers are compared", "write == or <")
        return ast.Compare(self.visit(left), ops, [self.visit(other) for other in others])

    def _constant(self, node: ast.Constant) -> ast.expr:
        number = node.value
        if isinstance(number, int) and not -(1 << 63) <= number < 1 << 63:
            raise self.refuse(node, f"{number} is beyond 64 bits", "write a smaller number")
        return node

    def _name(self, node: ast.AST, name: str) -> ast.expr:
        if name in self.locals:
            return ast.Name(name, ast.Load())
        if name in self.file.constants:
            return self._constant(ast.copy_location(ast.Constant(self.file.constants[name]), node))
        raise self.refuse(
            node, f"there is no {name} here", "use constants, arguments and fields of self"
        )

    def _attribute(self, node: ast.AST, name: str, attr: str) -> ast.expr:
        if name == self.own_name:
            if attr in self.owner.settings and attr not in self.owner.values:
                return ast.Constant(self.owner.settings[attr])
            self._field(node, attr)
            return _state(attr)
        if name in self.views:
            view = VIEWS[self.views[name]]
            known = (*view.numbers, *view.arrays)
            if attr not in known:
                raise self.refuse(node, f"{name} has no {attr}", f"it has {', '.join(known)}")
            return ast.Attribute(ast.Name(name, ast.Load()), attr, ast.Load())
        if name == "math" and self.file.imports_math and attr in _MATH_CONSTANTS:
            return ast.Constant(getattr(math, attr))
        raise self.refuse(
            node,
            f"there is no {name}.{attr} here",
            "use fields of self, and what the method is shown",
        )

    def _field(self, node: ast.AST, attr: str) -> Number | list[Number]:
        if attr == "pacing_rate" and attr in self.owner.values and not self.owner.paces:
            raise self.refuse(
                node,
                f"{self.owner.node.name} has no field pacing_rate",
                "write pacing_rate: int = 0 in the class: its connections are paced then",
            )
        if attr not in self.owner.values:
            guess = nearest(attr, self.owner.values)
            meant = f"did you mean {guess}?" if guess else f"write {attr}: int = 0 in the class"
            raise self.refuse(node, f"{self.owner.node.name} has no field {attr}", meant)
        return self.owner.values[attr]

    def _array(self, node: ast.AST, attr: str) -> list[Number]:
        array = self._field(node, attr)
        if not isinstance(array, list):
            raise self.refuse(node, f"{attr} is one number", f"write {attr}: list[int] = [0] * 8")
        return array

    def _array_of(self, node: ast.Attribute) -> ast.expr:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.own_name:
                self._array(node, attr)
                return _state(attr)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in self.views:
                if attr in VIEWS[self.views[name]].arrays:
                    return ast.Attribute(ast.Name(name, ast.Load()), attr, ast.Load())
        raise self.refuse(
            node, f"{ast.unparse(node)} is no array", "arrays are fields of self, or of the link"
        )

    def _call(self, node: ast.AST, func: ast.expr, arguments: Sequence[ast.expr]) -> ast.expr:
        match func:
            case ast.Attribute(value=ast.Name(id=name), attr="random") if (
                name == self.own_name and not arguments
            ):
                return self._check("random")
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.own_name:
                return self._own_call(node, attr, self.owner.methods, arguments, 1)
            case ast.Attribute(value=ast.Name(id="math"), attr=attr) if self.file.imports_math:
                if attr in _CHECKED_MATH:
                    return self._check(_CHECKED_MATH[attr], *map(self.visit, arguments))
                if attr in _MATH:
                    return self._check(attr, *map(self.visit, arguments))
            case ast.Name(id="len") if len(arguments) == 1:
                array = arguments[0]
                if isinstance(array, ast.Attribute):
                    return ast.Call(ast.Name("len", ast.Load()), [self._array_of(array)], [])
            case ast.Name(id=name) if name in self.file.functions:
                return self._own_call(node, name, self.file.functions, arguments, 0)
            case ast.Name(id=name) if name in _CHECKED_BUILTINS:
                return self._check(_CHECKED_BUILTINS[name], *map(self.visit, arguments))
            case ast.Name(id=name) if name in _BUILTINS:
                given = [self.visit(argument) for argument in arguments]
                return ast.Call(ast.Name(name, ast.Load()), given, [])
        raise self.refuse(
            node,
            f"there is no function {ast.unparse(func)} here",
            f"of Python there are {', '.join((*_BUILTINS, *_CHECKED_BUILTINS))};"
            f" of math {', '.join((*_MATH, *_CHECKED_MATH))}",
        )

    def _own_call(
        self,
        node: ast.AST,
        name: str,
        known: Mapping[str, ast.FunctionDef],
        arguments: Sequence[ast.expr],
        before: int,
    ) -> ast.expr:
        found = known.get(name)
        if found is None:
            raise self.refuse(
                node, f"{self.owner.node.name} has no method {name}", "write it in the class"
            )
        wanted = len(found.args.args) - before
        if len(arguments) != wanted:
            raise self.refuse(
                node, f"{name} takes {wanted} arguments, not {len(arguments)}", "give as many"
            )
        given = [self._passed(argument) for argument in arguments]
        state = ast.Name(STATE, ast.Load())
        return ast.Call(ast.Name(FUNCTION + name, ast.Load()), [state, *given], [])

    def _passed(self, argument: ast.expr) -> ast.expr:
        if isinstance(argument, ast.Name) and argument.id in self.views:
            return ast.Name(argument.id, ast.Load())
        return self.visit(argument)

    def _check(self, name: str, *arguments: ast.expr) -> ast.Call:
        state = ast.Name(STATE, ast.Load())
        return ast.Call(ast.Name(CHECK + name, ast.Load()), [state, *arguments], [])


class _Made(ast.expr):
    """A variable of ours in what is still to be rewritten."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.id = name


def _state(name: str, context: ast.expr_context | None = None) -> ast.Attribute:
    return ast.Attribute(ast.Name(STATE, ast.Load()), name, context or ast.Load())


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
    return target


def _assigned(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _shown(node: ast.AST) -> str:
    try:
        text = ast.unparse(node)
    except Exception:
        text = type(node).__name__
    return text if len(text) <= 40 else text[:38] + "…"
