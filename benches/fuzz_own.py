"""Hostile user-written disciplines: any file is refused in a sentence, or computes the same as
Python.

    python benches/fuzz_own.py                    # 2000 files, one in five compiled
    python benches/fuzz_own.py --cases 50 --first 700
    python benches/fuzz_own.py --show 1975        # the file of one case

The number of a case is its seed. Three kinds take turns: a random class of the language; an example
with parts exchanged; an example with damaged text.

A case fails if reading its file takes more than 2 s of CPU, or compiling it more than 20 s. It
fails if it ends in anything but a refusal that begins with the file's name, or if numba can't
compile it. It fails if the compiled code computes something else than Python. Python runs the same
class with its arithmetic replaced (`Checked`): integers of 64 bits, no index below 0, reals where
integer and real meet. Where Python raises, the compiled code must have failed in the same line for
the same reason.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import math
import operator
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fuzz import ended

from sojourn.errors import UserError
from sojourn.own import language
from sojourn.own.bases import BASES, LINE, RNG, VIEWS, WHY, Law

ROOT = Path(__file__).parent.parent
EXAMPLES = [
    file for file in sorted((ROOT / "scenarios").glob("own_*.py")) if "class " in file.read_text()
]
FILE = "case.py"
MOST_READ_S, MOST_COMPILED_S = 2.0, 20.0
QUESTIONS = 12
"""Calls per compiled class."""
MOST_STEPS = 200_000
"""Steps that Python may take in one call."""

# -------------------------------------------------------------------------------- generated classes


class Author:
    """Writes a class whose methods are valid in the language, except for some slips."""

    def __init__(self, rng: random.Random, slips: float) -> None:
        self.rng = rng
        self.slips = slips
        self.lines: list[str] = []
        self.whole, self.real = ["f0", "f1", "f2"], ["r0", "r1"]
        self.helpers: list[tuple[str, str, str]] = []
        """The helper's name, the kinds of its arguments, and the kind of its result."""
        self.loops = 0

    def text(self) -> str:
        """Returns the file."""
        self.lines = [
            "import math",
            "from sojourn.own import DROP, MARK, MS, PASS, Discipline, Link, Packet",
            "LIMIT = 3 * MS // 7",
            "class Mine(Discipline):",
            *(f"    f{i}: int = {self.constant()}" for i in range(3)),
            *(
                f"    r{i}: float = {self.rng.choice(['0.5', '-3', '1e300', '7.25'])}"
                for i in range(2)
            ),
            f"    array: list[int] = [{self.rng.randrange(9)}] * 5",
            "    reals: list[float] = [1, -2.5, 3e9]",
        ]
        for index in range(self.rng.randrange(4)):
            arguments = "".join(self.rng.choices("wr", k=self.rng.randrange(3)))
            self.method(f"h{index}", arguments, self.rng.choice("wwrn"))
        self.method("dequeue", "", "w")
        self.method("timer", "", "w")
        return "\n".join(self.lines) + "\n"

    def method(self, name: str, arguments: str, gives: str) -> None:
        """Writes a method of one to eight statements and a return."""
        views = BASES["Discipline"].methods.get(name)
        given = views or [f"a{i}" for i in range(len(arguments))]
        self.views = {*views} if views else set()
        self.kinds = {} if views else dict(zip(given, arguments, strict=True))
        self.lines.append(f"    def {name}(self{''.join(', ' + each for each in given)}):")
        self.depth = 2
        self.block(self.rng.randint(1, 6))
        if gives != "n" and self.rng.random() >= self.slips:
            self.line(f"return {self.number(gives, 3)}")
        elif gives == "n":
            self.line("return" if self.rng.random() < 0.3 else "pass")
        if not views:
            self.helpers.append((name, arguments, gives))
        self.gives = gives

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, count: int) -> None:
        """Writes `count` statements. The names that they set are known afterwards, except in
        branches."""
        for _ in range(count):
            self.statement()

    def inner(self, count: int) -> None:
        known = dict(self.kinds)
        self.depth += 1
        self.block(count)
        self.line("pass")
        self.depth -= 1
        if self.rng.random() >= self.slips:
            self.kinds = known

    def statement(self) -> None:
        rng = self.rng
        few = rng.randint(1, 3) if self.depth < 5 else 1
        match rng.randrange(14 if self.depth < 5 else 9):
            case 0 | 1:
                kind = rng.choice("wwr")
                name = f"{'x' if kind == 'w' else 'y'}{rng.randrange(4)}"
                self.line(f"{name} = {self.number(kind, 3)}")
                self.kinds[name] = kind
            case 2:
                self.line(f"self.{rng.choice(self.whole)} = {self.number('w', 3)}")
            case 3:
                self.line(
                    f"self.{rng.choice(self.real)} {rng.choice(['=', '+=', '*='])} {self.number('r', 2)}"
                )
            case 4:
                sign = rng.choice(["=", "+=", "-=", "//=", "|=", "%="])
                self.line(f"self.array[{self.index()}] {sign} {self.number('w', 2)}")
            case 5 if names := [name for name, kind in self.kinds.items() if kind == "w"]:
                sign = rng.choice(["+=", "-=", "*=", "//=", "%=", "^=", ">>="])
                self.line(f"{rng.choice(names)} {sign} {self.number('w', 2)}")
            case 6 if len(self.kinds) > 1:
                a, b = rng.sample(sorted(self.kinds), 2)
                if self.kinds[a] == self.kinds[b]:
                    self.line(f"{a}, {b} = {b}, {a}")
            case 7 if nothing := [h for h in self.helpers if h[2] == "n"]:
                self.line(self.call(rng.choice(nothing), 2))
            case 8:
                self.line(f"assert {self.test(2)} or {self.number('w', 1)} < 1000, 'no'")
            case 9 | 10 | 11:
                self.line(f"if {self.test(2)}:")
                self.inner(few)
                if rng.random() < 0.4:
                    self.line(f"elif {self.test(2)}:")
                    self.inner(1)
                if rng.random() < 0.4:
                    self.line("else:")
                    self.inner(few)
            case 12:
                name = f"i{rng.randrange(3)}"
                bounds = rng.choice(
                    [f"{rng.randrange(5)}", f"{rng.randrange(3)}, 6, 2", "5, 0, -2"]
                )
                self.line(
                    f"for {name} in range({bounds if rng.random() < 0.7 else self.number('w', 1) + ' % 7'}):"
                )
                before = self.kinds.get(name)
                self.kinds[name] = "w"
                self.loop(few)
                if before is None and rng.random() >= self.slips:
                    del self.kinds[name]
            case 13:
                name = f"n{self.depth}"
                self.line(f"{name} = 0")
                self.kinds[name] = "w"
                self.line(f"while {self.test(1)} and {name} < {rng.randrange(9)}:")
                self.depth += 1
                self.line(f"{name} += 1")
                self.depth -= 1
                self.loop(few)
            case _:
                self.line("pass")

    def loop(self, count: int) -> None:
        self.loops += 1
        self.inner(count)
        if self.rng.random() < 0.3:
            self.depth += 1
            self.line(f"if {self.test(1)}:")
            self.depth += 1
            self.line(self.rng.choice(["break", "continue"]))
            self.depth -= 2
        self.loops -= 1

    def index(self) -> str:
        return self.rng.choice(
            ["0", "4", f"({self.number('w', 1)}) % 5", f"({self.number('w', 1)}) & 3"]
        )

    def constant(self) -> str:
        few = ["0", "1", "-1", "2", "3", "7", "-5", "10", "1000", "True"]
        many = ["9223372036854775807", "-9223372036854775808", "4294967296", "LIMIT"]
        return self.rng.choice(few if self.rng.random() < 0.93 or len(self.lines) < 5 else many)

    def number(self, kind: str, depth: int) -> str:
        """Returns an expression of this kind, or of the other kind in a slip."""
        if self.rng.random() < self.slips / 4:
            kind = "r" if kind == "w" else "w"
        return self.whole_number(depth) if kind == "w" else self.real_number(depth)

    def whole_number(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.25:
            names = [name for name, kind in self.kinds.items() if kind == "w"]
            views = [f"{view}.{each}" for view in self.views for each in VIEWS[view].numbers]
            choices = [
                self.constant(),
                f"self.{rng.choice(self.whole)}",
                f"self.array[{rng.randrange(5)}]",
            ]
            choices += names + names + ([rng.choice(views)] if views else [])
            if self.slips and rng.random() < self.slips:
                choices = ["x0", "self.f9", "packet", "unknown", "self.array"]
            return rng.choice(choices)
        a, b = (lambda: self.number("w", depth - 1)), (lambda: self.number("r", depth - 1))
        match rng.randrange(16):
            case 0 | 1 | 2 | 3:
                return f"({a()} {rng.choice('+-*')} {a()})"
            case 4:
                return f"({a()} {rng.choice(['//', '%'])} {a()})"
            case 5:
                return f"({a()} {rng.choice('&|^')} {a()})"
            case 6:
                return f"({a()} {rng.choice(['<<', '>>'])} {rng.choice(['1', '3', '(' + a() + ' & 7)'])})"
            case 7:
                return f"({rng.choice(['abs', 'int', 'bool', '-', '~', '+', 'not '])}({a()}))"
            case 8:
                return f"{rng.choice(['int', 'round', 'math.floor', 'math.ceil', 'math.isnan', 'math.isinf'])}({b()})"
            case 9:
                return f"{rng.choice(['min', 'max'])}({', '.join(a() for _ in range(rng.randint(2, 4)))})"
            case 10:
                return f"({a()} if {self.test(depth - 1)} else {a()})"
            case 11:
                return f"({self.test(depth - 1)})"
            case 12:
                return f"({a()} {rng.choice(['and', 'or'])} {a()})"
            case 13:
                return f"({a()} ** {rng.choice(['0', '1', '2', '3'])})"
            case 14 if calls := [h for h in self.helpers if h[2] == "w"]:
                return self.call(rng.choice(calls), depth - 1)
            case _:
                return f"self.array[{self.index()}]" if rng.random() < 0.8 else "len(self.array)"

    def real_number(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.25:
            names = [name for name, kind in self.kinds.items() if kind == "r"]
            choices = ["0.5", "2.0", "-1.25", "1e9", "math.pi", f"self.{rng.choice(self.real)}"]
            if rng.random() < 0.1:
                choices = ["math.inf", "1e308", "-0.0", "self.random()", "self.reals[2]"]
            return rng.choice([*choices, *names, *names])
        a, b = (lambda: self.number("w", depth - 1)), (lambda: self.number("r", depth - 1))
        match rng.randrange(12):
            case 0 | 1 | 2:
                return f"({b()} {rng.choice('+-*')} {rng.choice([a, b])()})"
            case 3:
                return f"({rng.choice([a, b])()} / {rng.choice([a, b])()})"
            case 4:
                return f"({b()} {rng.choice(['//', '%'])} {b()})"
            case 5:
                return f"float({rng.choice([a, b])()})"
            case 6:
                return f"math.{rng.choice(['sqrt', 'exp', 'log', 'log2'])}({rng.choice([a, b])()})"
            case 7:
                return f"{rng.choice(['min', 'max'])}({b()}, {b()})"
            case 8:
                return f"({b()} if {self.test(depth - 1)} else {b()})"
            case 9:
                return f"{rng.choice(['abs', '-', '+'])}({b()})"
            case 10:
                return f"({b()} ** {rng.choice(['2', '0.5', '-1', b()])})"
            case _ if calls := [h for h in self.helpers if h[2] == "r"]:
                return self.call(rng.choice(calls), depth - 1)
            case _:
                return f"self.reals[{rng.randrange(3)}]"

    def test(self, depth: int) -> str:
        rng = self.rng
        kind = rng.choice("wwr")
        signs = [
            rng.choice(["<", "<=", "==", "!=", ">", ">="]) for _ in range(rng.choice([1, 1, 1, 2]))
        ]
        text = self.number(kind, depth - 1) + "".join(
            f" {s} {self.number(kind, depth - 1)}" for s in signs
        )
        if depth > 0 and rng.random() < 0.3:
            return f"{rng.choice(['not ', ''])}({text}) {rng.choice(['and', 'or'])} {self.test(depth - 1)}"
        return text if rng.random() < 0.9 else self.number(kind, depth)

    def call(self, helper: tuple[str, str, str], depth: int) -> str:
        name, arguments, _ = helper
        return f"self.{name}({', '.join(self.number(kind, depth - 1) for kind in arguments)})"


class _Crossing(ast.NodeTransformer):
    """Exchanges some expressions and statements of a file."""

    def __init__(self, rng: random.Random, tree: ast.Module, share: float) -> None:
        self.rng, self.share = rng, share
        inside = [
            each for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for each in ast.walk(f)
        ]
        self.expressions = [each for each in inside if isinstance(each, ast.expr)]
        self.statements = [each for each in inside if isinstance(each, ast.stmt)]
        self.inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(each) for each in node.body]
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        if self.rng.random() < self.share:
            if isinstance(node, ast.expr) and isinstance(
                getattr(node, "ctx", None), ast.Load | None
            ):
                return self.rng.choice(self.expressions)
            if isinstance(node, ast.If | ast.Assign | ast.AugAssign | ast.Return):
                return self.rng.choice(self.statements)
        return node


ODD = [
    *("0", "-1", "1e400", "(1, 2)", "[1]", "None", "'x'", "9" * 30, "0x" + "f" * 400, "1j", "lambda: 0", "*x", "yield"),
    *("self", "packet", "link", "self.random", "print", "__import__('os')", "().__class__", "x := 3", "f'{1}'"),
    *("while True: pass", "raise", "return", "break", "global x", "import os", "del x", "with x: pass", "def f(): pass"),
    *("-" * 90 + "1", "(" * 90 + "1" + ")" * 90, "1+" * 90 + "1", "not " * 90 + "1"),
]  # fmt: skip


def damaged(rng: random.Random, text: str) -> str:
    """Returns an example with lines and words exchanged, removed, repeated or replaced by odd
    ones."""
    lines = text.splitlines()
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(lines))
        words = lines[at].split(" ")
        match rng.randrange(6):
            case 0:
                del lines[at]
            case 1:
                lines.insert(rng.randrange(len(lines)), lines[at])
            case 2:
                lines[at] = "    " * rng.randrange(4) + lines[at].strip()
            case 3:
                words[rng.randrange(len(words))] = rng.choice(ODD)
                lines[at] = " ".join(words)
            case 4:
                other = rng.choice(lines).split(" ")
                words[rng.randrange(len(words))] = rng.choice(other)
                lines[at] = " ".join(words)
            case _:
                indent = len(lines[at]) - len(lines[at].lstrip())
                lines.insert(at, " " * indent + rng.choice(ODD))
        lines = lines or [""]
    return "\n".join(lines) + "\n"


def case(index: int) -> tuple[str, str]:
    """Returns the file with this number, and the name of its class."""
    rng = random.Random(index)
    match index % 5:
        case 0 | 1:
            return Author(rng, 0.0).text(), "Mine"
        case 2:
            return Author(rng, rng.choice([0.02, 0.1, 0.3])).text(), "Mine"
    example = rng.choice(EXAMPLES)
    text = example.read_text(encoding="utf-8")
    name = text.split("class ")[1].split("(")[0]
    if index % 5 == 3:
        tree = ast.parse(text)
        crossed = _Crossing(rng, tree, rng.choice([0.005, 0.02, 0.1])).visit(ast.parse(text))
        return ast.unparse(ast.fix_missing_locations(crossed)) + "\n", name
    return damaged(rng, text), name


# ------------------------------------------------------------------------------- the class in Python


class FailedError(Exception):
    """The failure that the compiled code reports, by its name in `checks`."""


class TooLongError(Exception):
    """Python took more steps than it may."""


Numbers = int | float


def _whole(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise FailedError("OVERFLOW")
    return number


def _operation(name: str, a: Any, b: Any) -> Numbers:
    plain = {"Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "FloorDiv": operator.floordiv, "Mod": operator.mod}  # fmt: skip
    bits = {"BitAnd": operator.and_, "BitOr": operator.or_, "BitXor": operator.xor}
    real = isinstance(a, float) or isinstance(b, float) or name == "Div"
    if real:
        a, b = float(a), float(b)
    else:
        a, b = int(a), int(b)
    try:
        if name in plain:
            value = plain[name](a, b)
        elif name in bits:
            value = bits[name](a, b)
        elif name == "Div":
            value = a / b
        elif name == "Pow":
            if not real and b < 0:
                raise FailedError("POWER")
            if not real and b > 64 and abs(a) > 1:
                raise FailedError("OVERFLOW")
            value = a**b
        else:
            if not 0 <= b <= 63:
                raise FailedError("SHIFT")
            value = a << b if name == "LShift" else a >> b
    except ZeroDivisionError:
        raise FailedError("DIVISION") from None
    except OverflowError:
        raise FailedError("INFINITE") from None
    if isinstance(value, complex):
        raise FailedError("FRACTION")
    return value if isinstance(value, float) else _whole(value)


def _compared(name: str, a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    signs = {"Lt": operator.lt, "LtE": operator.le, "Eq": operator.eq, "NotEq": operator.ne, "Gt": operator.gt, "GtE": operator.ge}  # fmt: skip
    return bool(signs[name](a, b))


class Array:
    """An array whose index begins at 0."""

    def __init__(self, numbers: list[Numbers]) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Numbers:
        if not 0 <= index < len(self.numbers):
            raise FailedError("INDEX")
        return self.numbers[index]

    def __setitem__(self, index: int, number: Numbers) -> None:
        self[index]
        self.numbers[index] = float(number) if isinstance(self.numbers[0], float) else number


def _rounded(function: Callable[[Any], Any]) -> Callable[[Any], int]:
    def rounded(number: Any) -> int:
        if isinstance(number, float) and not abs(number) <= 9223372036854774784.0:
            raise FailedError("NOT_WHOLE")
        return int(function(number))

    return rounded


def _real(function: Callable[[Any], Any], why: str) -> Callable[[Any], Any]:
    def guarded(number: Any) -> Any:
        try:
            return function(float(number))
        except ValueError:
            raise FailedError(why) from None
        except OverflowError:
            raise FailedError("INFINITE") from None

    return guarded


class Math:
    pi, e, inf = math.pi, math.e, math.inf
    sqrt = staticmethod(_real(math.sqrt, "ROOT"))
    log = staticmethod(_real(math.log, "LOGARITHM"))
    log2 = staticmethod(_real(math.log2, "LOGARITHM"))
    exp = staticmethod(_real(math.exp, "INFINITE"))
    isnan, isinf = staticmethod(_real(math.isnan, "")), staticmethod(_real(math.isinf, ""))
    floor, ceil = staticmethod(_rounded(math.floor)), staticmethod(_rounded(math.ceil))


class Checked(ast.NodeTransformer):
    """Replaces Python's operators by `_operation` and `_compared`."""

    def call(self, node: ast.AST, name: str, *arguments: ast.expr) -> ast.Call:
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), list(arguments), []), node)

    def text(self, of: object) -> ast.Constant:
        return ast.Constant(type(of).__name__)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if isinstance(node.left, ast.List):
            return node
        return self.call(
            node, "_operation", self.text(node.op), self.visit(node.left), self.visit(node.right)
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            return self.call(
                node, "_operation", ast.Constant("Sub"), ast.Constant(0), self.visit(node.operand)
            )
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) > 1:
            return self.generic_visit(node)
        return self.call(
            node,
            "_compared",
            self.text(node.ops[0]),
            self.visit(node.left),
            self.visit(node.comparators[0]),
        )

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        before: list[ast.stmt] = []
        target = node.target
        if isinstance(target, ast.Subscript):
            place = ast.copy_location(ast.Name("place_", ast.Load()), node)
            index = self.visit(target.slice)
            before = [ast.copy_location(ast.Assign([ast.Name("place_", ast.Store())], index), node)]
            target = ast.Subscript(target.value, place, ast.Store())
        now = ast.parse(ast.unparse(target), mode="eval").body
        computed = self.call(node, "_operation", self.text(node.op), now, self.visit(node.value))
        return [*before, ast.copy_location(ast.Assign([target], computed), node)]

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        raised = ast.copy_location(ast.Expr(self.call(node, "_raised")), node)
        return ast.copy_location(
            ast.If(ast.UnaryOp(ast.Not(), self.visit(node.test)), [raised], []), node
        )

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.copy_location(ast.Expr(self.call(node, "_raised")), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [statement for each in node.body for statement in self._all(each)]
        node.returns = None
        return node

    def _all(self, node: ast.stmt) -> list[ast.stmt]:
        visited = self.visit(node)
        return visited if isinstance(visited, list) else [visited]


def _raised() -> None:
    raise FailedError("RAISED")


class Seen:
    """A view that a method receives."""


class Python:
    """The class, run by Python."""

    def __init__(self, source: str, law: Law) -> None:
        tree = Checked().visit(ast.parse(source))
        tree.body = [each for each in tree.body if not isinstance(each, ast.Import)]
        names: dict[str, Any] = {
            "_operation": _operation, "_compared": _compared, "_raised": _raised, "math": Math,
            "int": _rounded(int), "round": _rounded(round), "abs": self._abs,
        }  # fmt: skip
        exec(compile(ast.fix_missing_locations(tree), FILE, "exec"), names)
        self.own = names[law.name]()
        for name, value in law.values.items():
            if name not in law.base.shared and vars(type(self.own))[name] != value:
                raise AssertionError(f"{name} starts as {value}, unlike Python's")
            setattr(self.own, name, Array([*value]) if isinstance(value, list) else value)
        self.key = 0
        self.own.random = self._random

    def _abs(self, number: Any) -> Any:
        return abs(number) if isinstance(number, float) else _whole(abs(number))

    def _random(self) -> float:
        mask = (1 << 64) - 1
        self.key = (self.key + 0x9E3779B97F4A7C15) & mask
        mixed = ((self.key ^ (self.key >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        return ((mixed ^ (mixed >> 31)) >> 11) / 9007199254740992.0

    def call(self, name: str, views: list[dict[str, Any]]) -> tuple[Any, str, int]:
        """Returns the method's result, or the failure's reason and line."""
        shown = []
        for view in views:
            shown.append(Seen())
            vars(shown[-1]).update(
                {k: Array(v) if isinstance(v, list) else v for k, v in view.items()}
            )
        steps = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps > MOST_STEPS:
                raise TooLongError
            return trace if frame.f_code.co_filename == FILE else None

        sys.settrace(trace)
        try:
            return getattr(self.own, name)(*shown), "", 0
        except FailedError as failed:
            at, line = failed.__traceback__, 0
            while at is not None:
                line = at.tb_lineno if at.tb_frame.f_code.co_filename == FILE else line
                at = at.tb_next
            return None, str(failed), line
        finally:
            sys.settrace(None)


# --------------------------------------------------------------------------------------- comparison


def _shown(rng: random.Random, view: str) -> dict[str, Any]:
    few = [0, 1, 2, 3, 7, 40, 1500, 10**6, 10**9]
    numbers = {name: rng.choice(few) for name in VIEWS[view].numbers}
    return {**numbers, **{name: [rng.choice(few)] for name in VIEWS[view].arrays}}


def _differs(mine: Any, python: Any) -> bool:
    if math.isnan(mine) or math.isnan(float(python)):
        return math.isnan(mine) != math.isnan(float(python))
    return not (mine == python or math.isclose(mine, python, rel_tol=1e-9))


def compared(source: str, law: Law, rng: random.Random) -> str:
    """Returns how the compiled class and Python's differ, or ""."""
    from sojourn.own import checks, compiled

    built = compiled._built(compiled._Shape.of(law))
    python = Python(source, law)
    state = np.frombuffer(bytearray(compiled._state(law, built)), dtype=built.state)
    state[RNG][0] = python.key = rng.getrandbits(64)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    functions = {name: call(address) for name, address in built.addresses.items()}
    whys = {number: name for name, number in vars(checks).items() if isinstance(number, int)}
    del whys[checks.MOST_TURNS]
    for _ in range(QUESTIONS if law.methods else 0):
        name = rng.choice(law.methods)
        views = {view: _shown(rng, view) for view in law.base.methods[name]}
        given = ("packet", "link") if law.base.name == "Discipline" else (*views, *views)
        shown = {}
        for view, numbers in views.items():
            shown[view] = np.zeros(1, dtype=compiled._view(view, 1))
            for each, number in numbers.items():
                shown[view][each] = number
        pointers = [shown[view].ctypes.data if view in shown else None for view in given]
        answer = functions[name](state.ctypes.data, *pointers)
        try:
            want, why, line = python.call(name, list(views.values()))
        except TooLongError:
            return ""
        failed = answer == compiled.FAILED and state[WHY][0] != 0
        mine = (whys.get(int(state[WHY][0]), "?"), int(state[LINE][0])) if failed else ("", 0)
        if mine != (why, line):
            return f"{name} failed as {mine}, Python as {(why, line)}"
        if failed:
            return ""
        if want is not None and _differs(answer, want) and name not in compiled.SILENT:
            return f"{name} answered {answer}, Python {want}"
        for each in law.values:
            number = getattr(python.own, each)
            theirs = number.numbers if isinstance(number, Array) else [number]
            ours = np.atleast_1d(state[each][0]).tolist()
            if any(map(_differs, ours, theirs)):
                return f"{name} left {each} at {ours}, Python at {theirs}"
    return ""


@dataclass(frozen=True)
class Result:
    """The outcome of a case."""

    outcome: str
    """refused, read, ran, or failed."""
    why: str = ""


def _mixes(source: str) -> bool:
    """Whether integer and real may meet in a variable. Python then has integers where numba has
    reals, and fails elsewhere."""
    return "class Mine" not in source


def judged(index: int, compiling: bool) -> Result:
    """Returns the verdict on a case, in this process."""
    source, name = case(index)
    began = time.process_time()
    try:
        law = language.read(source, FILE, name, "")
    except UserError as error:
        message = str(error)
        spent = time.process_time() - began
        if (
            not message.startswith(FILE)
            or not error.hint
            or len(message) > 400
            or spent > MOST_READ_S
        ):
            return Result("failed", f"{spent:.1f} s: {message[:200]}")
        return Result("refused", error.problem)
    spent = time.process_time() - began
    if spent > MOST_READ_S:
        return Result("failed", f"read in {spent:.1f} s")
    if not compiling:
        return Result("read")
    try:
        differs = compared(source, law, random.Random(index))
    except UserError as error:
        return Result("failed", str(error))
    if differs and not (index % 5 > 1 and _mixes(source)):
        return Result("failed", differs)
    return Result("ran")


def run_all(indexes: Iterator[tuple[int, bool]], workers: int) -> Iterator[tuple[int, Result]]:
    """Runs each case in its own process, `workers` at a time."""
    running: dict[int, tuple[int, int, float]] = {}
    left = True
    while left or running:
        while left and len(running) < workers:
            following = next(indexes, None)
            if following is None:
                left = False
                break
            index, compiling = following
            ours, theirs = os.pipe()
            pid = os.fork()
            if pid == 0:
                signal.alarm(0)
                try:
                    result = judged(index, compiling)
                except BaseException as error:
                    result = Result("failed", f"{type(error).__name__}: {error}"[:300])
                os.write(theirs, f"{result.outcome}\n{result.why}".encode()[:4000])
                os._exit(0)
            os.close(theirs)
            running[pid] = (index, ours, time.monotonic() + 600)
        for pid, (index, ours, until) in list(running.items()):
            done, _, used = os.wait4(pid, os.WNOHANG)
            if not done and time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                done, _, used = os.wait4(pid, 0)
            if not done:
                continue
            del running[pid]
            with os.fdopen(ours) as pipe:
                outcome, _, why = pipe.read().partition("\n")
            result = Result(
                outcome or "failed", why if outcome else "ended by a signal or not at all"
            )
            cpu_s = used.ru_utime + used.ru_stime
            if cpu_s > MOST_COMPILED_S:
                result = Result("failed", f"{cpu_s:.1f} s of CPU; {result.why}")
            yield index, result
        time.sleep(0.002)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=2000, help="number of cases [2000]")
    parser.add_argument("--first", type=int, default=0, help="number of the first case [0]")
    parser.add_argument(
        "--compile", type=int, default=5, metavar="N", help="compile one case in N [5]"
    )
    parser.add_argument("--workers", type=int, default=2, help="cases at a time [2]")
    parser.add_argument(
        "--show", type=int, metavar="N", help="print the file of case N and run nothing"
    )
    options = parser.parse_args()
    if options.show is not None:
        print(case(options.show)[0], end="")
        return 0
    # The numba code that each process needs is compiled once.
    assert judged(0, True).outcome == "ran"
    numbers = range(options.first, options.first + options.cases)
    cases = ((index, index // 5 % options.compile == 0) for index in numbers)
    counts: Counter[str] = Counter()
    for index, result in run_all(iter(cases), options.workers):
        counts[result.outcome] += 1
        if result.outcome == "failed":
            print(f"case {index}: {result.why}", flush=True)
    return ended(counts)


if __name__ == "__main__":
    sys.exit(main())
