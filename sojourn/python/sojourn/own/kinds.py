"""Finds the kinds of numbers that a class's functions compute, and whether each variable has been
set.

A variable is whole or real at each place. If it is whole on one path to a place and real on
another, it is real there, as for numba. Each function is read forward from the kinds of its
arguments, so it is read and compiled once for each combination of kinds. A loop is read again as
long as a reading turns a whole variable into a real one.

This module refuses four things and names the line: a variable that some path to its use does not
set; a real number where only a whole one is allowed; a function that returns a number on one path
and nothing on another; code that numba would take too long to compile.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from sojourn.errors import UserError
from sojourn.own.bases import (
    ANSWERS,
    CHECK,
    FUNCTION,
    REAL,
    SILENT,
    STATE,
    TURNS,
    WHOLE,
    Call,
    Function,
    Law,
    refusal,
)

MOST_COMPILED = 3000
"""The most names and numbers in all code to compile; each loop or call counts as several. The limit
is about 6 s of numba's time."""
MOST_FUNCTIONS = 60
"""The most functions to compile."""
MOST_CALLS = 15
"""Nested calls."""

NOTHING, NEVER = "nothing", "never"
"""The other results of a function: it returns nothing, or does not return."""

_ALIKE = ("add", "sub", "mul", "floordiv", "mod", "power", "min", "max", "abs")
"""Functions that are real if an argument is."""
_REALS = ("div", "float", "random", "sqrt", "exp", "log", "log2")
_WHOLES = {"shl": "<<", "shr": ">>", "step": "range", "bound": "range"}
"""Functions of whole numbers only."""

_Known = dict[str, str]
"""The variables that have been set, and their kinds."""


def calls_of(law: Law) -> tuple[Call, ...]:
    """The functions to compile, each after those that it calls. Functions that would never return
    get a return, which numba needs.

    Raises:
        UserError: see above.
    """
    return _Class(law).calls()


def _join(kinds: Iterable[str]) -> str:
    return REAL if REAL in kinds else WHOLE


class _Class:
    """All functions that are called."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self.functions = {function.name: function for function in law.functions}
        self.gives: dict[Call, str] = {}
        self.inner: dict[Call, tuple[Call, ...]] = {}
        self.under_way: list[Call] = []
        self.work = 0

    def calls(self) -> tuple[Call, ...]:
        roots = [Call(each, self.law.base.methods[each]) for each in self.law.methods]
        for root in roots:
            self._check_answer(root, self.given(root))
        ordered: dict[Call, None] = {}
        for root in roots:
            for call in self._behind(root, ordered):
                ordered[call] = None
        for name in {call.name for call in ordered}:
            _finish(self.functions[name], {self.gives[c] for c in ordered if c.name == name})
        return tuple(ordered)

    def _behind(self, call: Call, done: dict[Call, None]) -> Iterator[Call]:
        for inner in self.inner[call]:
            if inner not in done:
                yield from self._behind(inner, done)
        yield call

    def refuse(self, node: object, problem: str, hint: str) -> UserError:
        return refusal(self.law.file, node, problem, hint)

    def given(self, call: Call) -> str:
        """The kind that a function returns for these arguments."""
        if call not in self.gives:
            function = self.functions[call.name]
            self._check_work(function)
            self.under_way.append(call)
            reading = _Reading(self, function, call)
            self.gives[call] = reading.given()
            self.inner[call] = tuple(reading.calls)
            self.under_way.pop()
        return self.gives[call]

    def _check_work(self, function: Function) -> None:
        self.work += function.work
        counts = (
            (self.work, MOST_COMPILED, "names and numbers to compile"),
            (len(self.gives) + 1, MOST_FUNCTIONS, "functions to compile"),
            (len(self.under_way), MOST_CALLS, "nested calls"),
        )
        for count, most, what in counts:
            if count > most:
                raise self.refuse(
                    function.node,
                    f"with {function.name} there are {count} {what}",
                    f"the most is {most}: make it shorter; a function counts again for arguments of"
                    " other kinds, and a loop or call counts as several names",
                )

    def _check_answer(self, call: Call, gives: str) -> None:
        if call.name in SILENT or gives in (WHOLE, NEVER):
            return
        function = self.functions[call.name]
        answer = f"its answer is {ANSWERS[call.name]}"
        if gives == NOTHING:
            raise self.refuse(function.node, f"{call.name} returns nothing", answer)
        at = next(
            each for each in ast.walk(function.node) if isinstance(each, ast.Return) and each.value
        )
        raise self.refuse(at, f"{call.name} returns a real number", f"write int(...): {answer}")


def _finish(function: Function, gives: set[str]) -> None:
    """Adds the returns from which numba infers what a function returns."""
    value = None if gives == {NOTHING} else ast.Constant(0)
    for node in ast.walk(function.node):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                ends = [index for index, each in enumerate(block, 1) if _raises(each)]
                for index in reversed(ends):
                    block.insert(index, ast.Return(value))
    if gives == {NEVER}:
        # numba rejects a function that never returns. The added return is reached only if the
        # number of turns is below 0, which never happens.
        turns = ast.Attribute(ast.Name(STATE, ast.Load()), TURNS, ast.Load())
        test = ast.Compare(turns, [ast.GtE()], [ast.Constant(0)])
        function.node.body[:] = [ast.If(test, function.node.body[:], []), ast.Return(value)]
    ast.fix_missing_locations(function.node)


def _raises(node: object) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and _name(node.value) == CHECK + "raised"
    )


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


class _Reading:
    """Reads a function forward."""

    def __init__(self, owner: _Class, function: Function, call: Call) -> None:
        self.owner = owner
        self.function = function
        names = [argument.arg for argument in function.node.args.args[1:]]
        given = zip(names, call.arguments, strict=True)
        self.known: _Known | None = {n: kind for n, kind in given if n not in function.views}
        """None at places that are never reached."""
        self.calls: dict[Call, None] = {}
        self.returns: set[str] = set()
        self.breaks: list[list[_Known]] = []
        self.continues: list[list[_Known]] = []
        self.heads: dict[ast.stmt, _Known] = {}
        """The known variables at the beginning of each loop when it was last read."""

    def refuse(self, node: object, problem: str, hint: str) -> UserError:
        return self.owner.refuse(node, problem, hint)

    def given(self) -> str:
        self._block(self.function.node.body)
        ends = self.known is not None or NOTHING in self.returns
        numbers = self.returns - {NOTHING}
        if not numbers:
            return NOTHING if ends else NEVER
        if ends:
            raise self.refuse(
                self.function.node,
                f"{self.function.name} returns a number on some paths, and nothing on others",
                "return a number at its end and in every return statement",
            )
        return _join(numbers)

    # --- statements

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.known is None:
                return
            self._statement(statement, self.known)

    def _statement(self, node: ast.stmt, known: _Known) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known[name] = self._number(value)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                kinds = [self._number(value) for value in values]
                known.update(
                    {n.id: k for n, k in zip(names, kinds, strict=True) if isinstance(n, ast.Name)}
                )
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value):
                self._fits(node, attr, self._number(value))
            case ast.Expr(value=ast.Call() as call):
                self._called(call)
                if _raises(node):
                    self.known = None
            case ast.If(test=test, body=body, orelse=orelse):
                self._number(test)
                self.known = dict(known)
                self._block(body)
                then, self.known = self.known, known
                self._block(orelse)
                self.known = _merged([then, self.known])
            case ast.While(test=test):
                always = isinstance(test, ast.Constant) and bool(test.value)
                self._loop(node, node.body, None if always else test, None)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=bounds)):
                for bound in bounds:
                    self._whole(bound, "range")
                self._loop(node, node.body, None, name)
            case ast.Return(value=value):
                self.returns.add(NOTHING if value is None else self._number(value))
                self.known = None
            case ast.Break() | ast.Continue():
                ends = self.breaks if isinstance(node, ast.Break) else self.continues
                ends[-1].append(known)
                self.known = None

    def _loop(
        self, node: ast.stmt, body: list[ast.stmt], test: ast.expr | None, counter: str | None
    ) -> None:
        """`counter`: the variable of a `for`. A loop with neither a counter nor a test ends only by
        `break` or `return`."""
        head = self.known
        assert head is not None
        before = self.heads.get(node, {})
        head = {name: _join((kind, before.get(name, kind))) for name, kind in head.items()}
        calls = dict(self.calls)
        while True:
            self.known = {**head, counter: WHOLE} if counter is not None else dict(head)
            if test is not None:
                self._number(test)
            self.breaks.append([])
            self.continues.append([])
            self._block(body)
            again = _merged([*self.continues.pop(), self.known]) or {}
            left = self.breaks.pop()
            wider = {name: _join((kind, again.get(name, kind))) for name, kind in head.items()}
            if wider == head:
                break
            head, self.calls = wider, dict(calls)
        self.heads[node] = head
        ends = test is not None or counter is not None
        self.known = _merged([*left, head if ends else None])

    def _fits(self, node: ast.AST, attr: str, kind: str) -> None:
        if kind == REAL and self._field(attr) == WHOLE:
            raise self.refuse(
                node,
                f"{attr} is a field of whole numbers and is given a real one",
                f"write int(...), or {attr}: float in the class",
            )

    def _field(self, attr: str) -> str:
        value = self.owner.law.values.get(attr, 0)
        first = value[0] if isinstance(value, list) else value
        return REAL if isinstance(first, float) else WHOLE

    # --- expressions

    def _number(self, node: ast.expr) -> str:
        """The kind of a number."""
        match node:
            case ast.Constant(value=value):
                return REAL if isinstance(value, float) else WHOLE
            case ast.Name(id=name):
                return self._variable(node, name)
            case ast.Attribute(value=ast.Name(id=name), attr=attr):
                return self._field(attr) if name == STATE else WHOLE
            case ast.BinOp(left=left, op=op, right=right):
                sign = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}[type(op)]
                self._whole(left, sign)
                return self._whole(right, sign)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._whole(operand, "~")
            case ast.UnaryOp(operand=operand):
                self._number(operand)
                return WHOLE
            case ast.Compare(left=left, comparators=others):
                for each in (left, *others):
                    self._number(each)
                return WHOLE
            case ast.BoolOp(values=values):
                return _join([self._number(value) for value in values])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._number(test)
                return _join((self._number(body), self._number(orelse)))
            case ast.Call():
                return self._needed(node, self._called(node))
        raise AssertionError(f"{ast.dump(node)} is not what language.py writes")

    def _variable(self, node: ast.expr, name: str) -> str:
        assert self.known is not None
        if name not in self.known:
            raise self.refuse(
                node,
                f"{name} can be unset here: not every path to this line sets it",
                f"write {name} = 0 ahead of the branches and loops",
            )
        return self.known[name]

    def _whole(self, node: ast.expr, what: str) -> str:
        if self._number(node) == REAL:
            raise self.refuse(
                node, f"{what} needs whole numbers, and this one is real", "write int(...)"
            )
        return WHOLE

    def _needed(self, node: ast.Call, kind: str) -> str:
        if kind == NOTHING:
            name = _name(node).removeprefix(FUNCTION).removeprefix(CHECK)
            raise self.refuse(node, f"{name} returns no number", "return a number at its end")
        return REAL if kind == REAL else WHOLE

    def _called(self, node: ast.Call) -> str:
        name = _name(node)
        if name.startswith(FUNCTION):
            return self._own(node, name.removeprefix(FUNCTION), node.args[1:])
        if not name.startswith(CHECK):
            return WHOLE  # len
        name, (_, _, *arguments) = name.removeprefix(CHECK), node.args
        if name in ("get", "put"):
            array, index = arguments[-2:]
            self._whole(index, "an index")
            assert isinstance(array, ast.Attribute)
            assert isinstance(array.value, ast.Name)
            if name == "put":
                self._fits(node, array.attr, self._number(arguments[0]))
                return NOTHING
            return self._field(array.attr) if array.value.id == STATE else WHOLE
        if name in _WHOLES:
            for argument in arguments:
                self._whole(argument, _WHOLES[name])
            return WHOLE
        given = [self._number(argument) for argument in arguments]
        if name in _REALS:
            return REAL
        return _join(given) if name in _ALIKE else WHOLE

    def _own(self, node: ast.Call, name: str, arguments: Sequence[ast.expr]) -> str:
        function = self.owner.functions[name]
        given: list[str] = []
        for argument, wanted in zip(arguments, function.node.args.args[1:], strict=True):
            shown = self.function.views.get(argument.id) if isinstance(argument, ast.Name) else None
            view = function.views.get(wanted.arg)
            if shown != view:
                problem = f"{wanted.arg} of {name} is {_the(view)}, and is given {_the(shown)}"
                hint = (
                    f"pass {_the(view)}, "
                    f"or write def {name}(..., {wanted.arg}: {_annotation(shown)})"
                )
                raise self.refuse(argument, problem, hint)
            given.append(view or self._number(argument))
        call = Call(name, tuple(given))
        self.calls[call] = None
        return self.owner.given(call)


def _the(view: str | None) -> str:
    return f"the {view}" if view else "a number"


def _annotation(view: str | None) -> str:
    # The view `event` is of the class Congestion.
    return {None: "int", "event": "Congestion"}.get(view, str(view).capitalize())


def _merged(ways: Iterable[_Known | None]) -> _Known | None:
    """The variables that are known where these paths meet: those known on each."""
    open_ = [way for way in ways if way is not None]
    if not open_:
        return None
    first, *others = open_
    both = [name for name in first if all(name in other for other in others)]
    return {name: _join([way[name] for way in open_]) for name in both}
