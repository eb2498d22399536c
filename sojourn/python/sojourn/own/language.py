"""The language of a file of user-defined code, and its conversion to code whose failures are always
detected.

The file is parsed, never imported: imports of `math` and `sojourn.own`, constants, functions,
classes. A function computes with whole numbers of 64 bits, reals and the arrays of its class. There
is no name by which it could reach anything else, so a Run from elsewhere can be verified.

Each function is rewritten before it is compiled:

| written | becomes |
|---|---|
| `a + b`, `a - b`, `a * b`, `a << b`, `a // b`, ... | a function of `checks`: a result beyond 64 bits and a division by zero are failures |
| `self.x[i]` | a function of `checks`: an index outside the array is a failure |
| a turn of a loop, the beginning of a function | is counted: loops and trees of calls have an end |
| `f(...)`, `self.method(...)` | the compiled function, with the state as its first argument |
| `a < b`, `not a` where a number is meant | 0 or 1 |

Each of these functions gets its line, so that a failure has a place. Rewritten code has two kinds
of numbers; `kinds` distinguishes them, and refuses errors that Python would only find in the run.

A file's length, depth of nesting and numbers are checked before anything else, so that even a
hostile file takes only a moment.
"""

from __future__ import annotations

import ast
import math
import operator
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from sojourn import own
from sojourn.errors import UserError
from sojourn.own import kinds
from sojourn.own.bases import (
    BASES,
    CHECK,
    FUNCTION,
    PLAIN,
    STATE,
    VIEWS,
    Base,
    Function,
    Law,
    Number,
    refusal,
)
from sojourn.sanitize import plain
from sojourn.units import nearest

PUBLIC = {name: getattr(own, name) for name in ("PASS", "DROP", "MARK", "US", "MS", "S")}
"""The constants of `sojourn.own`."""

_TYPES = {
    "Packet": "packet",
    "Link": "link",
    "Ack": "ack",
    "Congestion": "event",
    "Delivery": "delivery",
}
"""The views, by the annotation of an argument."""


_STARTS = {"cwnd": "window", "ssthresh": "ssthresh"}

MOST_TEXT = 200_000
"""The most characters of a file."""
MOST_NODES = 20_000
"""The most names, numbers, operations and statements of a file."""
MOST_DEPTH = 60
"""The deepest nesting. Each `elif`, and each term of a sum, is a level."""
MOST_LOOPS = 10
"""Nested loops."""
MOST_COMPARED = 16
"""Arguments of `min` and `max`."""
NODES_A_TURN = 64
"""A loop or function counts one more turn for each 64 nodes."""
A_FUNCTION, A_LOOP, A_POWER, A_CALL, A_BRANCH = 30, 25, 15, 6, 4
"""The work of compiling each of these, in names and numbers (see `_work`)."""
MOST_MESSAGE = 200
"""The most characters of the message of a `raise`."""

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
_CONSTANT: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_OF_ONE = {"abs": "abs", "bool": "bool", "float": "float", "int": "whole", "round": "nearest"}
"""Python's functions with one argument, and their replacements."""
_OF_SEVERAL = ("max", "min")
_BUILTINS = (*_OF_ONE, *_OF_SEVERAL, "len")
_MATH = ("sqrt", "exp", "log", "log2", "isnan", "isinf", "floor", "ceil")
_MATH_CONSTANTS = ("pi", "e", "inf")


def read(source: str, file: str, name: str, words: str) -> Law:
    """Parses the class of a file, with the numbers that a scenario sets.

    Raises:
        UserError: the file is not of this language, or has no such class; with its line.
    """
    return _parsed(source, file).law(name, _set(words))


def base_of(source: str, file: str, name: str) -> Base:
    """The base class of a class of a file.

    Raises:
        UserError: as `read`.
    """
    return _parsed(source, file).found(name)[1]


_PARSES = threading.Lock()
"""In Python 3.11, two threads that parse at once may end in a SystemError: the depths of their
trees are counted together (gh-106905)."""


def _parsed(source: str, file: str) -> _File:
    if len(source) > MOST_TEXT:
        raise UserError(
            f"{file}: a file of {len(source)} characters",
            f"the most is {MOST_TEXT}: make it shorter",
        )
    try:
        with _PARSES:
            tree = ast.parse(source, file)
    except SyntaxError as error:
        raise UserError(
            f"{file}:{error.lineno or 1}: not Python: {error.msg}", "correct the line"
        ) from None
    except (RecursionError, MemoryError):
        raise UserError(f"{file}: nested too deep", _FLATTEN) from None
    except ValueError:
        raise UserError(f"{file}: not Python", "give a file of Python") from None
    _bounded(tree, file)
    return _File(file, tree)


_FLATTEN = "write it in several statements or functions"
_NAMELESS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


def _size(nodes: Sequence[ast.AST]) -> int:
    """The number of names, numbers, operations and statements."""
    every = (each for node in nodes for each in ast.walk(node))
    return sum(not isinstance(each, _NAMELESS) for each in every)


def _work(node: ast.AST, loops: int = 0) -> int:
    """The work of compiling a statement: the names and numbers of a plain statement that takes
    numba as long, from measurements. LLVM unrolls loops, nested ones too."""
    work = 0 if isinstance(node, _NAMELESS) else 1
    match node:
        case ast.While() | ast.For():
            work += A_LOOP << loops
            loops += 1
        case ast.BinOp(op=ast.Pow()):
            work += A_POWER
        case ast.Call():
            work += A_CALL
        case ast.BoolOp(values=values):
            work += A_BRANCH * len(values)
        case ast.IfExp() | ast.If():
            work += A_BRANCH
    return work + sum(_work(child, loops) for child in ast.iter_child_nodes(node))


def _bounded(tree: ast.Module, file: str) -> None:
    """Refuses a file that is too long, or nested too deep for recursion, and numbers beyond 64
    bits."""
    left = deque[tuple[ast.AST, ast.AST, int]]((each, each, 0) for each in tree.body)
    nodes = 0
    while left:
        node, at, depth = left.popleft()
        at = node if hasattr(node, "lineno") else at
        if isinstance(node, _NAMELESS):
            continue
        nodes += 1
        if nodes > MOST_NODES:
            hint = f"the most is {MOST_NODES} names, numbers and operations: make it shorter"
            raise refusal(file, at, "the file is too long from here", hint)
        if depth > MOST_DEPTH:
            hint = (
                f"the most is {MOST_DEPTH} levels; each elif and each term is a level: {_FLATTEN}"
            )
            raise refusal(file, at, "nested too deep", hint)
        number = node.value if isinstance(node, ast.Constant) else 0
        if isinstance(number, int) and number > 1 << 63:
            raise refusal(
                file, at, "a whole number beyond 64 bits", "write it as a real number, like 1e20"
            )
        left.extend((child, at, depth + 1) for child in ast.iter_child_nodes(node))


def _set(words: str) -> dict[str, Number]:
    parts = words.split()
    return {
        word: int(text) if text.lstrip("+-").isdigit() else float(text)
        for word, text in zip(parts[::2], parts[1::2], strict=True)
    }


class _File:
    """Reads the top level of a file."""

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
        return refusal(self.file, node, problem, hint)

    def name(self, at: ast.AST, name: str) -> None:
        """Refuses Python's own names."""
        if name.startswith("__"):
            raise self.refuse(at, f"{name} is a name of Python's own", "choose another")

    def _new(self, at: ast.AST, name: str) -> None:
        self.name(at, name)
        if name in self.constants or name in self.functions or name in self.classes:
            raise self.refuse(at, f"the file already defines {name}", "choose another name")

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
                self._new(statement, name)
                self.functions[name] = statement
            case ast.ClassDef(name=name):
                self._new(statement, name)
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
                if self.constants.get(alias.name) != PUBLIC[alias.name]:
                    self._new(statement, alias.name)
                self.constants[alias.name] = PUBLIC[alias.name]

    def _constant(self, statement: ast.stmt, name: str, value: ast.expr) -> None:
        self._new(statement, name)
        number = self.value(value, self.constants)
        if isinstance(number, list):
            raise self.refuse(statement, "a constant is one number", _FIELD)
        self.constants[name] = number

    def value(
        self, node: ast.expr, known: Mapping[str, Number], most: int = 1
    ) -> Number | list[Number]:
        """The value of an expression of constants; an array has at most `most` numbers."""
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.Constant(value=bool() | int() | float() as number):
                return self._whole(node, number)
            case ast.Name(id=name) if name in known:
                return known[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._whole(node, -self._one(operand, known))
            case ast.BinOp(left=ast.List(elts=[item]), op=ast.Mult(), right=count):
                times = self._one(count, known)
                if not isinstance(times, int) or not 0 < times <= most:
                    hint = f"write a whole number from 1 to {most}" if most > 1 else _FIELD
                    raise self.refuse(node, f"an array of {times} numbers", hint)
                return [self._one(item, known)] * times
            case ast.List(elts=items) if items:
                if len(items) > most:
                    hint = f"write at most {most}" if most > 1 else _FIELD
                    raise self.refuse(node, f"an array of {len(items)} numbers", hint)
                return [self._one(item, known) for item in items]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _CONSTANT:
                try:
                    made = _CONSTANT[type(op)](self._one(left, known), self._one(right, known))
                except ArithmeticError:
                    raise self.refuse(
                        node,
                        "division by zero, or a result that is not finite",
                        "change the constant",
                    ) from None
                return self._whole(node, made)
        raise self.refuse(
            node,
            "not a constant",
            "write a number, or an expression of numbers and constants above",
        )

    def _whole(self, node: ast.expr, number: Number) -> Number:
        if isinstance(number, int) and not -(1 << 63) <= number < 1 << 63:
            raise self.refuse(
                node, "a whole number beyond 64 bits", "write it as a real number, like 1e20"
            )
        return number

    def _one(self, node: ast.expr, known: Mapping[str, Number]) -> Number:
        value = self.value(node, known)
        if isinstance(value, list):
            raise self.refuse(node, "an array is not a number", "write a number")
        return value

    def shown(self, node: ast.AST, name: str, kind: ast.expr | None) -> str | None:
        """The view that an argument stands for, by its annotation or, without one, by its name;
        None: a number."""
        if kind is None:
            return name if name in VIEWS else None
        return _TYPES.get(_shown(kind).strip("'\""))

    def found(self, name: str) -> tuple[ast.ClassDef, Base]:
        """A class and its base."""
        found = self.classes.get(name)
        if found is None:
            there = ", ".join(self.classes) or "no class"
            raise UserError(f"{self.file} has no class {name}", f"it has {there}")
        bases = [base.id for base in found.bases if isinstance(base, ast.Name)]
        if len(bases) != 1 or bases[0] not in self.bases:
            raise self.refuse(
                found,
                f"{name} is neither a discipline nor a congestion control",
                f"write from sojourn.own import Discipline, and class {name}(Discipline)",
            )
        if found.decorator_list or found.keywords:
            raise self.refuse(
                found, f"{name} has a decorator or keywords", f"write class {name}({bases[0]})"
            )
        return found, BASES[bases[0]]

    def law(self, name: str, words: Mapping[str, Number]) -> Law:
        return _Class(self, *self.found(name), words).law()


_FIELD = "make it a field of the class"


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
        self.numbers = len(self.values)
        self.settings = {name: getattr(own.Discipline, name) for name in base.settings}
        self.paces = False
        # A scenario may also set a setting that the class does not mention.
        for word in self.words.keys() & self.settings.keys():
            self._setting(node, word, self.words[word])
        self.methods: dict[str, ast.FunctionDef] = {}
        self.messages: dict[int, str] = {}
        for statement in node.body:
            self._member(statement)
        self._check_words()

    def _member(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.FunctionDef(name=name):
                self._method(statement, name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self.base.settings:
                self._field(statement, name, "int", value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                if value is None:
                    raise self.file.refuse(
                        statement, f"{name} has no first value", f"write {name}: int = 0"
                    )
                self._field(statement, name, _shown(kind), value)
            case _:
                raise self.file.refuse(
                    statement, "not a field or a method", "write a field like target: int = 5 * MS"
                )

    def _method(self, statement: ast.FunctionDef, name: str) -> None:
        if name.startswith("__"):
            hint = "give fields their first values in the class" if name == "__init__" else ""
            raise self.file.refuse(statement, f"{name} is never called", hint or "leave it out")
        if name == "random":
            raise self.file.refuse(
                statement, "the engine provides self.random()", "choose another name"
            )
        self._new(statement, name)
        if name in self.file.functions:
            raise self.file.refuse(
                statement, f"{name} is a function of the file, too", "choose another name"
            )
        self.methods[name] = statement

    def _new(self, at: ast.AST, name: str) -> None:
        self.file.name(at, name)
        if name in self.methods or (name in self.values and name not in self.base.shared):
            raise self.file.refuse(
                at, f"{self.node.name} has a {name} already", "choose another name"
            )

    def _field(self, statement: ast.stmt, name: str, kind: str, node: ast.expr) -> None:
        self._new(statement, name)
        known = {**self.file.constants, **self.settings}
        known.update({k: v for k, v in self.values.items() if not isinstance(v, list)})
        most = self.base.most_numbers
        if self.numbers >= most:
            raise self.file.refuse(
                statement, f"a state of more than {most} numbers", f"the most is {most}"
            )
        value = self.file.value(node, known, most - self.numbers)
        self.numbers += len(value) if isinstance(value, list) else 1
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
                f"{name}: {kind} is neither a number nor an array of numbers",
                "write int, float, bool, list[int] or list[float], and a first value of that",
            )
        items = value if isinstance(value, list) else [value]
        if one == "float":
            reals: list[Number] = [float(item) for item in items]
            return reals if array else reals[0]
        for item in dict.fromkeys(items):
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
        methods = tuple(name for name in self.base.methods if name in self.methods)
        if self.settings.get("queues", 1) > 1 and "choose" not in methods:
            raise self.file.refuse(
                self.node,
                f"{self.node.name} has {self.settings['queues']} queues and no method choose",
                "write def choose(self, link): the number of the queue to serve",
            )
        for name in methods:
            self._check_parameters(name)
        functions = {
            name: _Function(self, node, None).made() for name, node in self.file.functions.items()
        }
        for name, node in self.methods.items():
            functions[name] = _Function(self, node, _self(self.file, node)).made()
        law = Law(
            self.file.file,
            self.node.name,
            self.base,
            self.values,
            self.settings,
            self._ordered(functions),
            methods,
            self.paces,
            self.messages,
        )
        return replace(law, calls=kinds.calls_of(law))

    def _check_parameters(self, name: str) -> None:
        wanted = self.base.methods[name]
        method = self.methods[name]
        given = method.args.args
        written = f"write def {name}({', '.join(('self', *wanted))})"
        if len(given) != 1 + len(wanted):
            raise self.file.refuse(method, f"{name} takes {len(given)} arguments", written)
        for argument, view in zip(given[1:], wanted, strict=True):
            shown = self.file.shown(argument, argument.arg, argument.annotation)
            if shown is not None and shown != view:
                problem = f"{argument.arg} of {name} is the {view}, not the {shown}"
                raise self.file.refuse(argument, problem, written)

    def _ordered(self, functions: Mapping[str, Function]) -> tuple[Function, ...]:
        """The functions in an order in which each follows those that it calls."""
        calls = {name: tuple(_called(made.node)) for name, made in functions.items()}
        done: dict[str, Function] = {}
        for first in functions:
            under_way = {first: iter(calls[first])}
            while under_way:
                name, left = next(reversed(under_way.items()))
                other = next((other for other in left if other not in done), None)
                if other is None:
                    del under_way[name]
                    done[name] = functions[name]
                elif other in under_way:
                    raise self.file.refuse(
                        functions[other].node,
                        f"{other} calls itself",
                        "write a loop: recursion is not allowed",
                    )
                else:
                    under_way[other] = iter(calls[other])
        return tuple(done.values())


def _self(file: _File, node: ast.FunctionDef) -> str:
    if not node.args.args:
        raise file.refuse(node, f"{node.name} has no self", f"write def {node.name}(self, ...)")
    return node.args.args[0].arg


def _called(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id.startswith(FUNCTION):
            yield node.id.removeprefix(FUNCTION)


class _Function:
    """Rewrites one function, and refuses code that is not of the language."""

    def __init__(self, owner: _Class, node: ast.FunctionDef, own_name: str | None) -> None:
        self.owner = owner
        self.file = owner.file
        self.node = node
        self.own_name = own_name
        arguments = node.args
        others = (arguments.posonlyargs, arguments.kwonlyargs, arguments.kw_defaults)
        odd = arguments.vararg or arguments.kwarg or any(others) or arguments.defaults
        if odd or node.decorator_list:
            raise self.file.refuse(
                node, "only plain arguments are allowed, and no decorator", "write def f(a, b)"
            )
        names = [argument.arg for argument in arguments.args]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise self.file.refuse(
                    node, f"{node.name} has two arguments {name}", "give each a name of its own"
                )
        self.arguments = names if own_name is None else names[1:]
        self.views = self._views()
        self.locals = {*self.arguments}
        for stored in _stored(node):
            if stored.id in self.views or stored.id == own_name:
                hint = "choose another name for the variable"
                raise self.file.refuse(
                    stored, f"{stored.id} is an argument that can't be assigned", hint
                )
            self.locals.add(stored.id)
        for name in self.locals:
            self.file.name(node, name)
        self.counter = 0
        self.loops = 0

    def _views(self) -> dict[str, str]:
        """Arguments that are views (the packet, the link and so on), and which views."""
        methods = self.owner.base.methods
        if self.own_name is not None and self.node.name in methods:
            return dict(zip(self.arguments, methods[self.node.name], strict=False))
        own = self.node.args.args[len(self.node.args.args) - len(self.arguments) :]
        shown = ((each.arg, self.file.shown(each, each.arg, each.annotation)) for each in own)
        return {name: view for name, view in shown if view is not None}

    def refuse(self, node: ast.AST, problem: str, hint: str) -> UserError:
        return self.file.refuse(node, problem, hint)

    def made(self) -> Function:
        arguments = [ast.arg(STATE), *(ast.arg(name) for name in self.arguments)]
        made = ast.FunctionDef(
            name=FUNCTION + self.node.name,
            args=ast.arguments([], arguments, None, [], [], None, []),
            body=self._turn(self.node, self.node.body),
            decorator_list=[],
            returns=None,
        )
        if "type_params" in ast.FunctionDef._fields:
            made.type_params = []  # type: ignore[attr-defined]
        rewritten = ast.fix_missing_locations(ast.copy_location(made, self.node))
        return Function(
            self.node.name,
            self.node.lineno,
            rewritten,
            self.views,
            A_FUNCTION + sum(map(_work, self.node.body)),
            frozenset(self.locals),
        )

    # --- statements

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        written: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            made = self._statement(statement)
            written += [ast.copy_location(each, statement) for each in made]
        return written or [ast.Pass()]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Pass():
                return [node]
            case ast.Break() | ast.Continue():
                if self.loops == 0:
                    word = type(node).__name__.lower()
                    raise self.refuse(node, f"{word} outside of a loop", "leave it out")
                return [node]
            case ast.Return(value=None | ast.Constant(value=None)):
                return [ast.Return(None)]
            case ast.Return(value=ast.expr() as value):
                return [ast.Return(self.visit(value))]
            case ast.Expr(value=ast.Call()):
                return [ast.Expr(self.visit(node.value))]
            case ast.Expr(value=value):
                raise self.refuse(
                    node, f"the value of {_shown(value)} is not used", "assign it: x = ..."
                )
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                return self._together(node, names, value)
            case ast.Assign(targets=[target], value=value):
                return self._assigned(target, self.visit(value))
            case ast.Assign():
                raise self.refuse(node, "a line has two assignments", "write each on its own line")
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._assigned(target, self.visit(value))
            case ast.AnnAssign(target=target):
                name = _shown(target)
                raise self.refuse(node, f"{name} gets no value", f"write {name} = 0")
            case ast.AugAssign(target=target, op=op, value=value):
                return self._augmented(node, target, op, value)
            case ast.If(test=test, body=body, orelse=orelse):
                return [ast.If(self._test(test), self._block(body), self._else(orelse))]
            case ast.While(test=test, body=body, orelse=[]):
                always = self.visit(test)
                condition = always if isinstance(always, ast.Constant) else self._test(test)
                return [ast.While(condition, self._loop(node, body), [])]
            case ast.For(
                target=ast.Name(),
                iter=ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]),
                orelse=[],
            ):
                if not 1 <= len(bounds) <= 3:
                    hint = "write range(count), range(from, to) or range(from, to, step)"
                    raise self.refuse(node, f"range takes 1 to 3 numbers, not {len(bounds)}", hint)
                numbers: list[ast.expr] = [self.visit(each) for each in bounds]
                if len(bounds) > 1:
                    numbers = [self._check(node, "bound", each) for each in numbers]
                if len(bounds) == 3:
                    numbers[2] = self._check(node, "step", numbers[2])
                turns = ast.Call(ast.Name("range", ast.Load()), numbers, [])
                return [ast.For(node.target, turns, self._loop(node, node.body), [])]
            case ast.Raise(exc=exc):
                return self._failure(node, exc)
            case ast.Assert(test=test, msg=message):
                failing = self._failure(node, message)
                return [ast.If(ast.UnaryOp(ast.Not(), self._test(test)), failing, [])]
        raise self.refuse(
            node,
            f"{type(node).__name__} is not of this language",
            "write assignments, if, while, for in range(...), return, raise and assert",
        )

    def _else(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        return self._block(statements) if statements else []

    def _loop(self, node: ast.stmt, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        self.loops += 1
        if self.loops > MOST_LOOPS:
            raise self.refuse(node, f"{self.loops} nested loops", f"the most is {MOST_LOOPS}")
        made = self._turn(node, body)
        self.loops -= 1
        return made

    def _turn(self, node: ast.AST, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        turns = ast.Constant(1 + _size(body) // NODES_A_TURN)
        count = ast.copy_location(ast.Expr(self._check(node, "turn", turns)), node)
        return [count, *self._block(body)]

    def _failure(self, node: ast.stmt, message: ast.expr | None) -> list[ast.stmt]:
        for each in ast.walk(message) if message is not None else ():
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                self.owner.messages[node.lineno] = each.value[:MOST_MESSAGE]
        return [ast.copy_location(ast.Expr(self._check(node, "raised")), node)]

    def _together(
        self, node: ast.stmt, targets: Sequence[ast.expr], value: ast.expr
    ) -> list[ast.stmt]:
        """`a, b = b, a`."""
        names = [target for target in targets if isinstance(target, ast.Name)]
        if len(names) != len(targets):
            raise self.refuse(node, "only variables can be set together", "write a line for each")
        if not isinstance(value, ast.Tuple) or len(value.elts) != len(names):
            raise self.refuse(
                node,
                f"{_shown(value)} is not {len(names)} numbers",
                "write as many on the right, as in a, b = b, a; a function returns one number",
            )
        values: list[ast.expr] = [self.visit(each) for each in value.elts]
        pair = ast.copy_location(ast.Tuple(values, ast.Load()), value)
        return [ast.Assign([ast.Tuple(list(names), ast.Store())], pair)]

    def _assigned(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        match target:
            case ast.Name():
                return [ast.Assign([target], value)]
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.own_name:
                if isinstance(self._field(target, attr), list):
                    raise self.refuse(target, f"{attr} is an array", f"set {attr}[i]")
                return [ast.Assign([_state(attr, ast.Store())], value)]
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr=attr), slice=index
            ) if name == self.own_name:
                self._array(target, attr)
                return [
                    ast.Expr(self._check(target, "put", value, _state(attr), self.visit(index)))
                ]
        raise self.refuse(
            target,
            f"{_shown(target)} can't be set",
            "a method sets its own variables, and fields of self",
        )

    def _augmented(
        self, node: ast.stmt, target: ast.expr, op: ast.operator, value: ast.expr
    ) -> list[ast.stmt]:
        if isinstance(target, ast.Subscript):
            self.counter += 1
            place = f"__place{self.counter}"
            first = ast.Assign([ast.Name(place, ast.Store())], self.visit(target.slice))
            target = ast.Subscript(target.value, _Made(place), target.ctx)
            ast.copy_location(target, node)
            ast.copy_location(target.slice, node)
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
        """A number."""
        return ast.copy_location(self._expression(node), node)

    def _test(self, node: ast.expr) -> ast.expr:
        """A condition. A test of constants is hidden from numba: numba would remove a branch and
        might then find that the function never returns."""
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                made: ast.expr = self._comparison(node, left, ops, others)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                made = ast.UnaryOp(ast.Not(), self._test(operand))
            case ast.BoolOp(op=op, values=values):
                made = ast.BoolOp(op, [self._test(value) for value in values])
            case _:
                made = self.visit(node)
                if isinstance(made, ast.Constant):
                    made = self._check(node, "bool", made)
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
                return self._check(node, "get", self._array_of(array), self.visit(index))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._check(node, _BINARY[type(op)], self.visit(left), self.visit(right))
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, PLAIN):
                return ast.BinOp(self.visit(left), op, self.visit(right))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return self._constant(ast.copy_location(ast.Constant(-number), node))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._check(node, "sub", ast.Constant(0), self.visit(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.visit(operand)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return self._check(node, "bool", self._test(node))
            case ast.UnaryOp(op=op, operand=operand):
                return ast.UnaryOp(op, self.visit(operand))
            case ast.BoolOp(op=op, values=values):
                return ast.BoolOp(op, [self.visit(value) for value in values])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return ast.IfExp(self._test(test), self.visit(body), self.visit(orelse))
            case ast.Tuple():
                raise self.refuse(
                    node,
                    f"{_shown(node)} is a tuple, not one number",
                    "keep the numbers in fields of self",
                )
            case ast.Call(func=func, args=arguments, keywords=[]):
                return self._call(node, func, arguments)
        raise self.refuse(
            node,
            f"{_shown(node)} is not of this language",
            "use numbers, fields of self, and fields of the arguments",
        )

    def _comparison(
        self, node: ast.AST, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]
    ) -> ast.expr:
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops):
            raise self.refuse(node, "only numbers are compared", "write == or <")
        numbers = [self.visit(each) for each in (left, *others)]
        for index, (one, other) in enumerate(pairwise(numbers)):
            if isinstance(one, ast.Constant) and isinstance(other, ast.Constant):
                hidden = "float" if isinstance(one.value, float) else "whole"
                numbers[index] = ast.copy_location(self._check(node, hidden, one), one)
        return ast.Compare(numbers[0], ops, numbers[1:])

    def _constant(self, node: ast.Constant) -> ast.expr:
        number = node.value
        if isinstance(number, int) and not -(1 << 63) <= number < 1 << 63:
            raise self.refuse(node, f"{number} is beyond 64 bits", "write a smaller number")
        # True is 1, as in a field.
        return ast.Constant(int(number)) if isinstance(number, bool) else node

    def _name(self, node: ast.AST, name: str) -> ast.expr:
        if name in self.views:
            fields = VIEWS[self.views[name]].numbers
            raise self.refuse(
                node,
                f"{name} is not a number",
                f"write one of its fields, such as {name}.{fields[0]}",
            )
        if name in self.locals:
            return ast.Name(name, ast.Load())
        if name in self.file.constants:
            return self._constant(ast.copy_location(ast.Constant(self.file.constants[name]), node))
        raise self.refuse(
            node, f"there is no {plain(name)} here", "use constants, arguments and fields of self"
        )

    def _attribute(self, node: ast.AST, name: str, attr: str) -> ast.expr:
        if name == self.own_name:
            if attr in self.owner.settings and attr not in self.owner.values:
                return ast.Constant(self.owner.settings[attr])
            self._field(node, attr)
            if isinstance(self.owner.values[attr], list):
                raise self.refuse(node, f"{attr} is an array", f"write {attr}[i]")
            return _state(attr)
        if name in self.views:
            view = VIEWS[self.views[name]]
            known = (*view.numbers, *view.arrays)
            if attr not in known:
                raise self.refuse(node, f"{name} has no {attr}", f"it has {', '.join(known)}")
            if attr in view.arrays:
                raise self.refuse(node, f"{attr} is an array", f"write {attr}[i]")
            return ast.Attribute(ast.Name(name, ast.Load()), attr, ast.Load())
        if name == "math" and self.file.imports_math and attr in _MATH_CONSTANTS:
            return ast.Constant(getattr(math, attr))
        raise self.refuse(
            node,
            f"there is no {name}.{attr} here",
            "use fields of self, and those of the method's arguments",
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
            node, f"{_shown(node)} is not an array", "arrays are fields of self, or of the link"
        )

    def _call(self, node: ast.AST, func: ast.expr, arguments: Sequence[ast.expr]) -> ast.expr:
        match func:
            case ast.Attribute(value=ast.Name(id=name), attr="random") if (
                name == self.own_name and not arguments
            ):
                return self._check(node, "random")
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.own_name:
                return self._own_call(node, attr, self.owner.methods, arguments, 1)
            case ast.Attribute(value=ast.Name(id="math"), attr=attr) if (
                self.file.imports_math and attr in _MATH
            ):
                return self._of_one(node, f"math.{attr}", attr, arguments)
            case ast.Name(id=name) if name in self.file.functions:
                return self._own_call(node, name, self.file.functions, arguments, 0)
            case ast.Name(id="len"):
                if len(arguments) != 1 or not isinstance(arguments[0], ast.Attribute):
                    raise self.refuse(
                        node, f"{_shown(node)}: len needs one array", "write len(self.x)"
                    )
                array = self._array_of(arguments[0])
                return ast.Call(ast.Name("len", ast.Load()), [array], [])
            case ast.Name(id=name) if name in _OF_ONE:
                return self._of_one(node, name, _OF_ONE[name], arguments)
            case ast.Name(id=name) if name in _OF_SEVERAL:
                if not 2 <= len(arguments) <= MOST_COMPARED:
                    raise self.refuse(
                        node,
                        f"{name} takes 2 to {MOST_COMPARED} arguments, not {len(arguments)}",
                        f"write {name}(a, b)",
                    )
                first, *others = map(self.visit, arguments)
                for other in others:
                    first = ast.copy_location(self._check(node, name, first, other), node)
                return first
        raise self.refuse(
            node,
            f"there is no function {_shown(func)} here",
            f"functions of Python: {', '.join(_BUILTINS)}; of math: {', '.join(_MATH)}",
        )

    def _of_one(
        self, node: ast.AST, name: str, check: str, arguments: Sequence[ast.expr]
    ) -> ast.expr:
        if len(arguments) != 1:
            raise self.refuse(
                node, f"{name} takes 1 argument, not {len(arguments)}", f"write {name}(x)"
            )
        return self._check(node, check, self.visit(arguments[0]))

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

    def _check(self, node: ast.AST, name: str, *arguments: ast.expr) -> ast.Call:
        state, line = ast.Name(STATE, ast.Load()), ast.Constant(getattr(node, "lineno", 1))
        return ast.Call(ast.Name(CHECK + name, ast.Load()), [state, line, *arguments], [])


class _Made(ast.expr):
    """A variable that this module added to code that is still to be rewritten."""

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


def _stored(function: ast.FunctionDef) -> Iterator[ast.Name]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node


def _shown(node: ast.AST) -> str:
    try:
        text = ast.unparse(node)
    except Exception:
        text = type(node).__name__
    return plain(text if len(text) <= 40 else text[:38] + "…")
