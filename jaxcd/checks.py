"""Checks of arguments.  One policy for all: Python's and NumPy's numbers are numbers, truth values
are not, and NaN passes no check.  (Budgets and mechanisms read a number that is written as text,
too: :func:`check_positive`, :func:`check_nonnegative`, :func:`check_share`.)
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np

from jaxcd.errors import JaxcdError, OptionError

__all__ = [
    "a_type",
    "check_choice",
    "check_count",
    "check_flag",
    "check_key",
    "check_key_or_none",
    "check_listed",
    "check_nonnegative",
    "check_number",
    "check_positive",
    "check_progress",
    "check_share",
    "check_weights",
    "check_whole",
    "choice_of",
    "counted",
    "has",
    "hold_python_numbers",
    "is_iterable",
    "is_number",
    "is_whole",
    "said_of_columns",
    "shown_list",
    "printable",
    "shown_count",
    "shown_size",
    "with_article",
]

E = TypeVar("E", bound=enum.Enum)


def check_key(key: Any, *, cure: str = "use jax.random.key(seed)") -> None:
    """Raises OptionError unless it is one typed key.

    Args:
        key: what was given.
        cure: how to give one.
    """
    import jax  # here, so that the checks of numbers load nothing

    if isinstance(key, jax.Array) and jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.shape == ():
            return
        given = f"{math.prod(key.shape)} keys of the shape {key.shape}"
    else:
        given = f"a value of type {type(key).__name__}"
    raise OptionError(f"key must be one typed key, not {given}; {cure}")


def check_key_or_none(key: Any) -> None:
    """Raises OptionError unless it is one typed key, or None."""
    if key is not None:
        check_key(key, cure="use jax.random.key(seed), or None")


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether its things can be gone through: not those of an array without dimensions, which is an
    Iterable by its class.

    >>> is_iterable([1]), is_iterable(np.array([1])), is_iterable(np.array(1)), is_iterable(1)
    (True, True, False, False)
    """
    try:
        iter(value)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def check_listed(
    name: str, value: Any, *, of: str = "names", error: type[JaxcdError] = OptionError
) -> tuple[Any, ...]:
    """Returns the things of a collection (a generator is read here, once) as a tuple, else raises
    the error.

    >>> check_listed("given", (name for name in ("a", "b")))
    ('a', 'b')
    """
    if isinstance(value, (str, bytes)):
        what, cure = f"the single string {value!r}", f"write [{value!r}]"
    elif is_iterable(value):
        return tuple(value)
    else:
        what, cure = repr(value), "write [] for none" if value is None else f"write [{value!r}]"
    raise error(f"{name} is a collection of {of}, got {what}; {cure}")


def is_whole(value: Any, least: int | None = None, most: int | None = None) -> bool:
    """Whether it is a whole number, from ``least`` to ``most`` where they are given.

    >>> is_whole(3, 1), is_whole(np.int64(3), 1, 3), is_whole(True), is_whole(3.0), is_whole(0, 1)
    (True, True, False, False, False)
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        return False
    return (least is None or bool(value >= least)) and (most is None or bool(value <= most))


def is_number(value: Any, low: float = -math.inf, high: float = math.inf, ends: str = "[]") -> bool:
    """Whether it is a finite real number between ``low`` and ``high``; ``ends`` says which of them
    are among the numbers.

    >>> is_number(0.5), is_number(np.float32(1)), is_number(True), is_number(math.nan)
    (True, True, False, False)
    >>> is_number(0, 0, 1), is_number(0, 0, 1, "(]"), is_number(1, 0, 1, "[)")
    (True, False, False)
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        return False
    try:
        finite = math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False
    above = low < value if ends[0] == "(" else low <= value
    below = value < high if ends[1] == ")" else value <= high
    return finite and bool(above and below)


def hold_python_numbers(options: Any) -> None:
    """Makes NumPy's numbers among the fields of a frozen dataclass, and in its tuples, Python's.
    In 32 bits noise would be computed less exactly than its proof says; whole numbers of 64 bits
    overflow; and files of JSON know neither.

    >>> import dataclasses
    >>> @dataclasses.dataclass(frozen=True)
    ... class Options:
    ...     share: float
    ...     sizes: tuple[int, ...]
    >>> options = Options(np.float32(0.5), (np.int64(3), 4))
    >>> hold_python_numbers(options)
    >>> options
    Options(share=0.5, sizes=(3, 4))
    """
    for name, value in tuple(vars(options).items()):
        held = tuple(map(_python_number, value)) if type(value) is tuple else _python_number(value)
        object.__setattr__(options, name, held)


def _python_number(value: Any) -> Any:
    if isinstance(value, np.floating):
        return float(value)
    return int(value) if isinstance(value, np.integer) else value


def shown_count(number: int) -> str:
    """A whole number as a message shows it; of a very large one not every digit.

    >>> shown_count(4_096), shown_count(2**100), shown_count(10**400)
    ('4,096', 'about 1.3e30', 'about 1.0e400')
    """
    if number <= 10**15:
        return f"{number:,}"
    share, digits = math.modf(math.log10(number))
    return f"about {10**share:.1f}e{digits:.0f}"


def shown_size(value: float, digits: int = 3) -> str:
    """A number to so many digits, as people write large ones.

    >>> shown_size(0.41666), shown_size(2.8284), shown_size(49_951.0), shown_size(1e20)
    ('0.417', '2.83', '50,000', '1e+20')
    """
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if 10**digits <= rounded < 1e15 else f"{value:.{digits}g}"


def printable(words: str) -> str:
    r"""A line for a terminal: characters that it would obey, a line break among them, as escapes.

    >>> printable("the name of a column\n\x1b[2J")
    'the name of a column\\n\\x1b[2J'
    """
    return "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in words)


def counted(number: int, word: str) -> str:
    """So many of what the word names one of.

    >>> counted(1, "row"), counted(4_096, "row")
    ('1 row', '4,096 rows')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def with_article(name: str) -> str:
    """The name of one thing of a kind.

    >>> with_article("interval"), with_article("list")
    ('an interval', 'a list')
    """
    return f"{'an' if name[:1] in set('aeioAEIO') else 'a'} {name}"


def a_type(value: Any) -> str:
    """What kind of thing was given, for a message.

    >>> a_type("x"), a_type(3), a_type(None)
    ('a str', 'an int', 'None')
    """
    if value is None:
        return "None"
    return with_article(type(value).__name__)


def has(number: int) -> str:
    """The verb after so many of something."""
    return "has" if number == 1 else "have"


def said_of_columns(names: Sequence[str], one: str, several: str) -> str:
    """The columns, with the verb for one of them or for several.

    >>> said_of_columns(["a"], "is", "are"), said_of_columns(["a", "b"], "is", "are")
    ("the column 'a' is", "the columns ['a', 'b'] are")
    """
    if len(names) == 1:
        return f"the column {names[0]!r} {one}"
    return f"the columns {list(names)} {several}"


def shown_list(words: Sequence[str], *, most: int = 20) -> str:
    """Words for a message, each printable, of very many the first ones; "none" where there are
    none.

    >>> shown_list(["a", "b"]), shown_list(list("abcdef"), most=2), shown_list([])
    ('a, b', 'a, b and 4 more', 'none')
    """
    shown = ", ".join(map(printable, words[:most])) or "none"
    return f"{shown} and {len(words) - most:,} more" if len(words) > most else shown


def check_flag(name: str, value: Any) -> None:
    """Raises OptionError unless the value is True or False."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} = {value!r} is not True or False; say which")


def check_progress(value: Any, *, of: str) -> None:
    """Raises OptionError unless the value is True, False or a function of what is named."""
    if not isinstance(value, bool) and not callable(value):
        raise OptionError(
            f"progress = {value!r} is neither True, False nor a function of {of}; use True to "
            "print lines, or False"
        )


def check_choice(name: str, value: Any, choices: type[enum.Enum]) -> None:
    """Raises OptionError unless the value is a member of the enumeration."""
    if not isinstance(value, choices):
        *others, last = map(str, choices)
        raise OptionError(
            f"{name} = {value!r} is no {choices.__name__}; use {', '.join(others)} or {last}"
        )


def choice_of(name: str, value: Any, choices: type[E]) -> E:
    """Returns the member of the enumeration, which may be given as text, its value; else raises
    OptionError.
    """
    if isinstance(value, str) and value in [member.value for member in choices]:
        return choices(value)
    check_choice(name, value, choices)
    return cast(E, value)


def check_weights(name: str, value: Any, *, cure: str) -> None:
    """Raises OptionError unless the value is a tuple of positive numbers, at least one."""
    if not (isinstance(value, tuple) and value and all(is_number(w, 0, ends="(]") for w in value)):
        raise OptionError(f"{name} = {value!r} are not positive weights; {cure}")


def check_count(
    name: str, value: Any, *, minimum: int = 0, cure: str = "give a whole number"
) -> int:
    """Returns the whole number, which is not below ``minimum``, else raises OptionError."""
    if not is_whole(value, minimum):
        raise OptionError(
            f"{name} must be a whole number, at least {minimum}, got {value!r}: {cure}"
        )
    return int(value)


def check_whole(
    name: str, value: Any, least: int, most: int | None = None, *, cure: str | None = None
) -> int:
    """Returns the whole number from ``least`` to ``most``, else raises OptionError.

    >>> check_whole("bins", 1, 2, 32)
    Traceback (most recent call last):
    jaxcd.errors.OptionError: bins = 1 is not a whole number from 2 to 32; give one such as 3
    """
    if not is_whole(value, least, most):
        words = f"from {least}" if most is None else f"from {least} to {most}"
        cure = cure or f"give one such as {max(least, 3)}"
        raise OptionError(f"{name} = {value!r} is not a whole number {words}; {cure}")
    return int(value)


def check_number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    ends: str = "[]",
    *,
    cure: str,
) -> float:
    """Returns the finite number between ``low`` and ``high`` as a float, else raises OptionError;
    ``ends`` as for :func:`is_number`.

    >>> check_number("share", 1.5, 0, 1, "()", cure="0.1 is usual")
    Traceback (most recent call last):
    jaxcd.errors.OptionError: share = 1.5 is not a number in (0, 1); 0.1 is usual
    """
    if not is_number(value, low, high, ends):
        words = f"a number in {ends[0]}{low:g}, {high:g}{ends[1]}"
        if math.isinf(high):
            words = f"a finite number {'above' if ends[0] == '(' else 'from'} {low:g}"
        raise OptionError(f"{name} = {value!r} is not {words}; {cure}")
    return float(value)


def check_positive(
    name: str, value: Any, *, allow_infinity: bool = False, cure: str = "give a positive number"
) -> float:
    """Returns the number as a float if it is positive (and finite unless ``allow_infinity``), else
    raises OptionError.
    """
    number = _as_float(name, value, cure)
    if not number > 0 or (math.isinf(number) and not allow_infinity):
        finite = "" if allow_infinity else " and finite"
        raise OptionError(f"{name} must be positive{finite}, got {value!r}: {cure}")
    return number


def check_nonnegative(
    name: str, value: Any, *, cure: str = "give zero or a positive number"
) -> float:
    """Returns the number as a float if it is finite and not negative, else raises OptionError."""
    number = _as_float(name, value, cure)
    if not (number >= 0 and math.isfinite(number)):
        raise OptionError(f"{name} must be finite and not negative, got {value!r}: {cure}")
    return number


def check_share(
    name: str, value: Any, *, closed: bool = False, cure: str = "give a fraction"
) -> float:
    """Returns the number as a float if it lies in (0, 1), or (0, 1] when ``closed``, else raises
    OptionError.
    """
    number = _as_float(name, value, cure)
    if not (0 < number < 1 or (closed and number == 1)):
        raise OptionError(f"{name} must be in (0, 1{']' if closed else ')'}, got {value!r}: {cure}")
    return number


def _as_float(name: str, value: Any, cure: str) -> float:
    if isinstance(value, (bool, np.bool_)):
        raise OptionError(f"{name} must be a number, got {value!r}: {cure}")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"{name} must be a number, got {value!r}: {cure}") from error
