"""JSON files that people write or could change: domains, knowledge, graphs, certificates, results.

What JSON readers usually settle in silence is refused: a name that is given twice (they keep the
last), NaN and infinities, whole numbers that Python does not read.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from jaxcd.errors import DataError, FormatError, JaxcdError

__all__ = ["DAMAGE", "is_utf16", "no_utf8", "parsed", "read_text"]

DAMAGE: tuple[type[Exception], ...] = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    JaxcdError,
)
"""What using the content of a file raises where the file was changed."""

_MOST_DIGITS = 4_300  # Python reads no more


def read_text(path: str | Path, what: str) -> str:
    """The text of a UTF-8 file; a byte-order mark at its start is dropped.

    Args:
        path: the file.
        what: the file in words, such as "domain file".

    Raises:
        DataError: there is no such file.
        FormatError: it cannot be read, or is not UTF-8.
    """
    try:
        content = Path(path).read_bytes()
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"{what} {str(path)!r} does not exist; check the path") from None
    except OSError as error:
        raise FormatError(
            f"{what} {str(path)!r} cannot be read: {error.strerror or type(error).__name__}"
        ) from None
    except UnicodeDecodeError:
        raise FormatError(f"{what} {str(path)!r} {no_utf8(content)}") from None


def is_utf16(start: bytes) -> bool:
    """Whether a file that begins with these bytes is UTF-16."""
    return start.startswith((b"\xff\xfe", b"\xfe\xff"))


def no_utf8(start: bytes) -> str:
    """What a file is that is no UTF-8, by the bytes with which it begins, and the cure."""
    return f"is {'UTF-16' if is_utf16(start) else 'not UTF-8'} text; save it as UTF-8"


def parsed(text: str, *, error: type[JaxcdError] = FormatError) -> Any:
    """What a JSON text holds.

    Args:
        text: of one JSON value.
        error: what is raised where the text is JSON, and what it says is refused.

    Raises:
        FormatError: it is not JSON; names the line.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=partial(_without_repeats, error),
            parse_constant=partial(_refuse_constant, error),
            parse_int=partial(_whole, error),
        )
    except json.JSONDecodeError as problem:
        raise FormatError(f"line {problem.lineno}: not valid JSON ({problem.msg})") from None
    except RecursionError:
        raise FormatError(
            "line 1: nested too deeply; write it as the documentation shows"
        ) from None


def _without_repeats(error: type[JaxcdError], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise error(f"{name!r} is given twice; give each name once")
        result[name] = value
    return result


def _refuse_constant(error: type[JaxcdError], constant: str) -> Any:
    raise error(f"{constant} is not a finite number; write finite ones")


def _whole(error: type[JaxcdError], digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise error(
            f"the whole number {digits[:12]}... has {len(digits):,} digits, and no number "
            "here has as many; correct it"
        )
    return int(digits)
