"""Checked arithmetic for compiled user-defined code: whole numbers of 64 bits that never wrap,
divisions that are never by zero, valid array indexes, loops with an end.

The first arguments of each function are the state and the line number in the user's file. A failure
stores its number in `WHYS` and the line number in the state, and raises ArithmeticError. `kinds`
refuses arguments that these functions can't handle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic, overload

from sojourn.own.bases import CHECK

MOST_TURNS = 10_000_000
"""Most loop iterations and function calls, in total, while the engine calls a method once."""

WHYS = {
    1: "a whole number beyond 64 bits",
    2: "a division by zero",
    3: "an index that its array does not have",
    4: "a real number that does not fit a whole number of 64 bits",
    5: f"loops that had not ended after {MOST_TURNS} turns and calls",
    6: "a shift by less than 0 or more than 63 bits",
    7: "raised",
    8: "a whole number raised to a negative power",
    9: "a logarithm of a number that is not above 0",
    10: "a square root of a negative number",
    11: "a negative number raised to a fractional power",
    12: "a real number beyond 64 bits",
    13: "a range with a step of 0",
    14: "a range from, to or by a number beyond 2^61",
}
(
    OVERFLOW,
    DIVISION,
    INDEX,
    NOT_WHOLE,
    TURNS,
    SHIFT,
    RAISED,
    POWER,
    LOGARITHM,
    ROOT,
    FRACTION,
    INFINITE,
    STEP,
    RANGE,
) = WHYS

FUNCTIONS: dict[str, Any] = {}
"""The checked operations, by the names that rewritten code calls."""

_LARGEST = 9223372036854774784.0
"""The largest real below 2^63."""

_Compiled = Callable[..., Any]


def _is_whole(*kinds: Any) -> bool:
    return all(isinstance(kind, types.Integer | types.Boolean) for kind in kinds)


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
def _fail(state, line, why):  # type: ignore[no-untyped-def]
    state.__why = why
    state.__line = line
    raise ArithmeticError


def _declared(name: str, arity: int, choose: Callable[..., _Compiled]) -> None:
    """Declares a function that rewritten code calls. `choose` returns its implementation for the
    arguments' types."""

    def stub(*arguments: Any) -> Any:
        raise NotImplementedError

    stub.__name__ = CHECK + name
    shapes: dict[int, Callable[..., Any]] = {
        0: lambda state, line: choose(),
        1: lambda state, line, a: choose(a),
        2: lambda state, line, a, b: choose(a, b),
        3: lambda state, line, a, b, c: choose(a, b, c),
    }
    overload(stub, strict=False)(shapes[arity])
    FUNCTIONS[CHECK + name] = stub


def _of(whole: _Compiled, real: _Compiled) -> Callable[..., _Compiled]:
    """Chooses one function if all arguments are whole, and another if one is real."""
    return lambda *kinds: whole if _is_whole(*kinds) else real


def _arithmetic(checked: Any) -> _Compiled:
    def whole(state, line, a, b):  # type: ignore[no-untyped-def]
        result, beyond = checked(numba.int64(a), numba.int64(b))
        if beyond:
            _fail(state, line, OVERFLOW)
        return result

    return whole


_declared("add", 2, _of(_arithmetic(_added), lambda state, line, a, b: a + b))
_declared("sub", 2, _of(_arithmetic(_subtracted), lambda state, line, a, b: a - b))
_declared("mul", 2, _of(_arithmetic(_multiplied), lambda state, line, a, b: a * b))


def _div(state, line, a, b):  # type: ignore[no-untyped-def]
    divisor = float(b)
    if divisor == 0.0:
        _fail(state, line, DIVISION)
    return float(a) / divisor


def _whole_floordiv(state, line, a, b):  # type: ignore[no-untyped-def]
    divisor = numba.int64(b)
    if divisor == 0:
        _fail(state, line, DIVISION)
    if divisor == -1:
        result, beyond = _subtracted(0, numba.int64(a))
        if beyond:
            _fail(state, line, OVERFLOW)
        return result
    return numba.int64(a) // divisor


def _whole_mod(state, line, a, b):  # type: ignore[no-untyped-def]
    divisor = numba.int64(b)
    if divisor == 0:
        _fail(state, line, DIVISION)
    if divisor == -1:
        return numba.int64(0)
    return numba.int64(a) % divisor


def _real_floordiv(state, line, a, b):  # type: ignore[no-untyped-def]
    if float(b) == 0.0:
        _fail(state, line, DIVISION)
    return float(a) // float(b)


def _real_mod(state, line, a, b):  # type: ignore[no-untyped-def]
    if float(b) == 0.0:
        _fail(state, line, DIVISION)
    return float(a) % float(b)


_declared("div", 2, lambda *_: _div)
_declared("floordiv", 2, _of(_whole_floordiv, _real_floordiv))
_declared("mod", 2, _of(_whole_mod, _real_mod))


def _shl(state, line, a, b):  # type: ignore[no-untyped-def]
    if b < 0 or b > 63:
        _fail(state, line, SHIFT)
    result = numba.int64(a) << numba.int64(b)
    if result >> numba.int64(b) != a:
        _fail(state, line, OVERFLOW)
    return result


def _shr(state, line, a, b):  # type: ignore[no-untyped-def]
    if b < 0 or b > 63:
        _fail(state, line, SHIFT)
    return numba.int64(a) >> numba.int64(b)


_declared("shl", 2, lambda *_: _shl)
_declared("shr", 2, lambda *_: _shr)


def _whole_power(state, line, a, b):  # type: ignore[no-untyped-def]
    if b < 0:
        _fail(state, line, POWER)
    result, base, left = numba.int64(1), numba.int64(a), numba.int64(b)
    while left > 0:
        if left & 1:
            result, beyond = _multiplied(result, base)
            if beyond:
                _fail(state, line, OVERFLOW)
        left >>= 1
        if left > 0:
            base, beyond = _multiplied(base, base)
            if beyond:
                _fail(state, line, OVERFLOW)
    return result


def _real_power(state, line, a, b):  # type: ignore[no-untyped-def]
    base, exponent = numba.float64(a), numba.float64(b)
    if base == 0.0 and exponent < 0.0:
        _fail(state, line, DIVISION)
    finite = math.isfinite(base) and math.isfinite(exponent)
    if finite and base < 0.0 and exponent != math.floor(exponent):
        _fail(state, line, FRACTION)
    result = base**exponent
    if finite and math.isinf(result):
        _fail(state, line, INFINITE)
    return result


_declared("power", 2, _of(_whole_power, _real_power))


def _whole_abs(state, line, a):  # type: ignore[no-untyped-def]
    if a >= 0:
        return numba.int64(a)
    result, beyond = _subtracted(0, numba.int64(a))
    if beyond:
        _fail(state, line, OVERFLOW)
    return result


_declared("abs", 1, _of(_whole_abs, lambda state, line, a: abs(a)))


def _min(state, line, a, b):  # type: ignore[no-untyped-def]
    return b if b < a else a


def _max(state, line, a, b):  # type: ignore[no-untyped-def]
    return b if b > a else a


_declared("min", 2, lambda *_: _min)
_declared("max", 2, lambda *_: _max)


def _same(state, line, a):  # type: ignore[no-untyped-def]
    return numba.int64(a)


def _real_whole(state, line, a):  # type: ignore[no-untyped-def]
    if not (-_LARGEST <= a <= _LARGEST):
        _fail(state, line, NOT_WHOLE)
    return numba.int64(a)


_declared("whole", 1, _of(_same, _real_whole))
_declared("float", 1, lambda *_: lambda state, line, a: numba.float64(a))
_declared("bool", 1, lambda *_: lambda state, line, a: numba.int64(a != 0))


def _rounding(rounded: _Compiled) -> Callable[..., _Compiled]:
    compiled = numba.njit(rounded)

    def real(state, line, a):  # type: ignore[no-untyped-def]
        if not (-_LARGEST <= a <= _LARGEST):
            _fail(state, line, NOT_WHOLE)
        return numba.int64(compiled(a))

    return _of(_same, real)


_declared("floor", 1, _rounding(lambda a: math.floor(a)))
_declared("ceil", 1, _rounding(lambda a: math.ceil(a)))
_declared("nearest", 1, _rounding(lambda a: round(a)))


def _get(state, line, array, index):  # type: ignore[no-untyped-def]
    if index < 0 or index >= len(array):
        _fail(state, line, INDEX)
    return array[index]


def _put(state, line, value, array, index):  # type: ignore[no-untyped-def]
    if index < 0 or index >= len(array):
        _fail(state, line, INDEX)
    array[index] = value


_declared("get", 2, lambda *_: _get)
_declared("put", 3, lambda *_: _put)


def _turn(state, line, turns):  # type: ignore[no-untyped-def]
    state.__turns += turns
    if state.__turns > MOST_TURNS:
        _fail(state, line, TURNS)


def _raised(state, line):  # type: ignore[no-untyped-def]
    _fail(state, line, RAISED)


def _step(state, line, a):  # type: ignore[no-untyped-def]
    if a == 0:
        _fail(state, line, STEP)
    return numba.int64(a)


_declared("turn", 1, lambda *_: _turn)
_declared("raised", 0, lambda: _raised)
_declared("step", 1, lambda *_: _step)


def _bound(state, line, a):  # type: ignore[no-untyped-def]
    # numba counts a range's iterations in 64 bits. If that number wraps, the loop never runs.
    if a > 1 << 61 or a < -(1 << 61):
        _fail(state, line, RANGE)
    return numba.int64(a)


_declared("bound", 1, lambda *_: _bound)


def _random(state, line):  # type: ignore[no-untyped-def]
    # splitmix64: 53 bits of a counter that is mixed.
    state.__rng += numba.uint64(0x9E3779B97F4A7C15)
    mixed = numba.uint64(state.__rng)
    mixed = (mixed ^ (mixed >> numba.uint64(30))) * numba.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> numba.uint64(27))) * numba.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> numba.uint64(31))
    return numba.float64(mixed >> numba.uint64(11)) * (1.0 / 9007199254740992.0)


_declared("random", 0, lambda: _random)


def _sqrt(state, line, a):  # type: ignore[no-untyped-def]
    if a < 0:
        _fail(state, line, ROOT)
    return math.sqrt(numba.float64(a))


def _exp(state, line, a):  # type: ignore[no-untyped-def]
    result = math.exp(numba.float64(a))
    if math.isinf(result) and not math.isinf(numba.float64(a)):
        _fail(state, line, INFINITE)
    return result


def _log(state, line, a):  # type: ignore[no-untyped-def]
    if a <= 0:
        _fail(state, line, LOGARITHM)
    return math.log(numba.float64(a))


def _log2(state, line, a):  # type: ignore[no-untyped-def]
    if a <= 0:
        _fail(state, line, LOGARITHM)
    return math.log2(numba.float64(a))


_declared("sqrt", 1, lambda *_: _sqrt)
_declared("exp", 1, lambda *_: _exp)
_declared("log", 1, lambda *_: _log)
_declared("log2", 1, lambda *_: _log2)
_declared("isnan", 1, lambda *_: lambda state, line, a: numba.int64(math.isnan(numba.float64(a))))
_declared("isinf", 1, lambda *_: lambda state, line, a: numba.int64(math.isinf(numba.float64(a))))
