"""What arithmetic becomes in compiled code of one's own: whole numbers of 64 bits that never wrap,
divisions that are never by zero, indexes of their arrays, loops with an end.

Each function gets the state first. What fails is noted there, by its number in `WHYS`, and raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.core import errors
from numba.extending import intrinsic, overload

from sojourn.own.language import CHECK

MOST_TURNS = 10_000_000
"""Of all loops together, for one question of the engine."""

WHYS = {
    1: "a whole number beyond 64 bits",
    2: "a division by zero",
    3: "an index that its array does not have",
    4: "a real number that is no whole number of 64 bits",
    5: f"loops that had not ended after {MOST_TURNS} turns",
    6: "a shift by less than 0 or more than 63 bits",
    7: "raised",
    8: "a power below zero of a whole number",
}
OVERFLOW, DIVISION, INDEX, NOT_WHOLE, TURNS, SHIFT, RAISED, POWER = WHYS

FUNCTIONS: dict[str, Any] = {}
"""By the names that rewritten code calls."""

_LARGEST = 9223372036854774784.0
"""The largest real below 2^63."""

_Compiled = Callable[..., Any]


def _is_whole(*kinds: Any) -> bool:
    return all(isinstance(kind, types.Integer | types.Boolean) for kind in kinds)


def _is_number(*kinds: Any) -> bool:
    known = (types.Integer, types.Boolean, types.Float)
    return all(isinstance(kind, known) for kind in kinds)


def _with_overflow(instruction: str) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def checked(typing: Any, a: Any, b: Any) -> Any:
        pair = types.Tuple((types.int64, types.boolean))

        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            done = getattr(builder, instruction)(*arguments)
            parts = [builder.extract_value(done, index) for index in (0, 1)]
            return context.make_tuple(builder, signature.return_type, parts)

        return pair(types.int64, types.int64), write

    return checked


_added = _with_overflow("sadd_with_overflow")
_subtracted = _with_overflow("ssub_with_overflow")
_multiplied = _with_overflow("smul_with_overflow")


@numba.njit(inline="never")
def _fail(state, why):  # type: ignore[no-untyped-def]
    state.why_ = why
    raise ArithmeticError


def _declared(name: str, arity: int, choose: Callable[..., _Compiled | None]) -> None:
    """A function that rewritten code calls: `choose` gives, of the arguments' types, what it does."""

    def typed(state: Any, *kinds: Any) -> _Compiled:
        if len(kinds) != arity:
            raise errors.TypingError(f"{name} takes {arity} arguments, not {len(kinds)}")
        made = choose(*kinds)
        if made is None:
            raise errors.TypingError(f"{name} is of numbers")
        return made

    def stub(*arguments: Any) -> Any:
        raise NotImplementedError

    stub.__name__ = CHECK + name
    shapes: dict[int, Callable[..., Any]] = {
        0: lambda state: typed(state),
        1: lambda state, a: typed(state, a),
        2: lambda state, a, b: typed(state, a, b),
        3: lambda state, a, b, c: typed(state, a, b, c),
    }
    overload(stub, strict=False)(shapes[arity])
    FUNCTIONS[CHECK + name] = stub


def _arithmetic(checked: Any, plain: _Compiled) -> Callable[..., _Compiled | None]:
    def whole(state, a, b):  # type: ignore[no-untyped-def]
        result, beyond = checked(numba.int64(a), numba.int64(b))
        if beyond:
            _fail(state, OVERFLOW)
        return result

    def choose(a: Any, b: Any) -> _Compiled | None:
        if not _is_number(a, b):
            return None
        return whole if _is_whole(a, b) else plain

    return choose


_declared("add", 2, _arithmetic(_added, lambda state, a, b: a + b))
_declared("sub", 2, _arithmetic(_subtracted, lambda state, a, b: a - b))
_declared("mul", 2, _arithmetic(_multiplied, lambda state, a, b: a * b))


def _dividing(whole: _Compiled, real: _Compiled) -> Callable[..., _Compiled | None]:
    def choose(a: Any, b: Any) -> _Compiled | None:
        if not _is_number(a, b):
            return None
        return whole if _is_whole(a, b) else real

    return choose


def _div(state, a, b):  # type: ignore[no-untyped-def]
    divisor = float(b)
    if divisor == 0.0:
        _fail(state, DIVISION)
    return float(a) / divisor


def _whole_floordiv(state, a, b):  # type: ignore[no-untyped-def]
    divisor = numba.int64(b)
    if divisor == 0:
        _fail(state, DIVISION)
    if divisor == -1:
        result, beyond = _subtracted(0, numba.int64(a))
        if beyond:
            _fail(state, OVERFLOW)
        return result
    return numba.int64(a) // divisor


def _whole_mod(state, a, b):  # type: ignore[no-untyped-def]
    divisor = numba.int64(b)
    if divisor == 0:
        _fail(state, DIVISION)
    if divisor == -1:
        return numba.int64(0)
    return numba.int64(a) % divisor


def _real_floordiv(state, a, b):  # type: ignore[no-untyped-def]
    if float(b) == 0.0:
        _fail(state, DIVISION)
    return float(a) // float(b)


def _real_mod(state, a, b):  # type: ignore[no-untyped-def]
    if float(b) == 0.0:
        _fail(state, DIVISION)
    return float(a) % float(b)


_declared("div", 2, _dividing(_div, _div))
_declared("floordiv", 2, _dividing(_whole_floordiv, _real_floordiv))
_declared("mod", 2, _dividing(_whole_mod, _real_mod))


def _shl(state, a, b):  # type: ignore[no-untyped-def]
    if b < 0 or b > 63:
        _fail(state, SHIFT)
    result = numba.int64(a) << numba.int64(b)
    if result >> numba.int64(b) != a:
        _fail(state, OVERFLOW)
    return result


def _shr(state, a, b):  # type: ignore[no-untyped-def]
    if b < 0 or b > 63:
        _fail(state, SHIFT)
    return numba.int64(a) >> numba.int64(b)


_declared("shl", 2, lambda a, b: _shl if _is_whole(a, b) else None)
_declared("shr", 2, lambda a, b: _shr if _is_whole(a, b) else None)


def _whole_power(state, a, b):  # type: ignore[no-untyped-def]
    if b < 0:
        _fail(state, POWER)
    result, base, left = numba.int64(1), numba.int64(a), numba.int64(b)
    while left > 0:
        if left & 1:
            result, beyond = _multiplied(result, base)
            if beyond:
                _fail(state, OVERFLOW)
        left >>= 1
        if left > 0:
            base, beyond = _multiplied(base, base)
            if beyond:
                _fail(state, OVERFLOW)
    return result


_declared(
    "power", 2, _dividing(_whole_power, lambda state, a, b: numba.float64(a) ** numba.float64(b))
)


def _real_whole(state, a):  # type: ignore[no-untyped-def]
    if not (-_LARGEST <= a <= _LARGEST):
        _fail(state, NOT_WHOLE)
    return numba.int64(a)


def _to_whole(a: Any) -> _Compiled | None:
    if not _is_number(a):
        return None
    return (lambda state, a: numba.int64(a)) if _is_whole(a) else _real_whole


_declared("whole", 1, _to_whole)


def _rounding(rounded: _Compiled) -> Callable[..., _Compiled | None]:
    compiled = numba.njit(rounded)

    def real(state, a):  # type: ignore[no-untyped-def]
        if not (-_LARGEST <= a <= _LARGEST):
            _fail(state, NOT_WHOLE)
        return numba.int64(compiled(a))

    def choose(a: Any) -> _Compiled | None:
        if not _is_number(a):
            return None
        return (lambda state, a: numba.int64(a)) if _is_whole(a) else real

    return choose


_declared("floor", 1, _rounding(lambda a: math.floor(a)))
_declared("ceil", 1, _rounding(lambda a: math.ceil(a)))
_declared("nearest", 1, _rounding(lambda a: round(a)))


def _fitting(a: Any) -> _Compiled:
    if not _is_whole(a):
        raise errors.TypingError("a field of whole numbers takes no real one: write int(...)")
    return lambda state, a: numba.int64(a)


_declared("fitting", 1, _fitting)


def _get(state, array, index):  # type: ignore[no-untyped-def]
    if index < 0 or index >= len(array):
        _fail(state, INDEX)
    return array[index]


def _put(state, array, index, value):  # type: ignore[no-untyped-def]
    if index < 0 or index >= len(array):
        _fail(state, INDEX)
    array[index] = value


def _indexing(made: _Compiled) -> Callable[..., _Compiled]:
    def choose(array: Any, index: Any, *value: Any) -> _Compiled:
        if not _is_whole(index):
            raise errors.TypingError("an index is a whole number: write int(...)")
        return made

    return choose


_declared("get", 2, _indexing(_get))
_declared("put", 3, _indexing(_put))


def _turn(state):  # type: ignore[no-untyped-def]
    state.turns_ += 1
    if state.turns_ > MOST_TURNS:
        _fail(state, TURNS)


def _raised(state):  # type: ignore[no-untyped-def]
    _fail(state, RAISED)


_declared("turn", 0, lambda: _turn)
_declared("raised", 0, lambda: _raised)


def _random(state):  # type: ignore[no-untyped-def]
    # splitmix64: 53 bits of a counter that is mixed.
    state.luck_ += numba.uint64(0x9E3779B97F4A7C15)
    mixed = numba.uint64(state.luck_)
    mixed = (mixed ^ (mixed >> numba.uint64(30))) * numba.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> numba.uint64(27))) * numba.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> numba.uint64(31))
    return numba.float64(mixed >> numba.uint64(11)) * (1.0 / 9007199254740992.0)


_declared("random", 0, lambda: _random)


def _of_reals(function: _Compiled) -> Callable[..., _Compiled | None]:
    compiled = numba.njit(function)

    def real(state, a):  # type: ignore[no-untyped-def]
        return compiled(numba.float64(a))

    return lambda a: real if _is_number(a) else None


_declared("sqrt", 1, _of_reals(lambda a: math.sqrt(a)))
_declared("exp", 1, _of_reals(lambda a: math.exp(a)))
_declared("log", 1, _of_reals(lambda a: math.log(a)))
_declared("log2", 1, _of_reals(lambda a: math.log2(a)))
_declared("isnan", 1, _of_reals(lambda a: math.isnan(a)))
_declared("isinf", 1, _of_reals(lambda a: math.isinf(a)))
