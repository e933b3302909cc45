"""The arrays that a Dataset holds: read-only, of their type and shape, and within the domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxcd.data.column_types import reading
from jaxcd.data.columns import all_within, factorise, without_bytes
from jaxcd.data.domain import Domain, Numeric
from jaxcd.errors import DataError

__all__ = [
    "caught_codes",
    "check_codes",
    "check_numbers",
    "checked_mask",
    "checked_people",
    "frozen_block",
]


def frozen_block(block: Any, dtype: Any) -> NDArray:
    """A read-only column-major array that nobody else can write to."""
    array = np.asarray(block)
    if array.ndim != 2:
        raise DataError(f"discrete and numeric must be two-dimensional, not of shape {array.shape}")
    if dtype == np.int32 and array.dtype != np.int32:
        if array.dtype.kind not in "iu":
            raise DataError(f"codes must be integers, not {array.dtype}; use from_array for levels")
        # the cast would wrap around
        if array.size and not (array.min() >= -1 and array.max() < 2**31):
            raise DataError(
                "codes must fit a 32-bit integer and not be negative; count levels from 0"
            )
    result = np.asarray(array, dtype=dtype, order="F")
    if _is_writable(result) and np.shares_memory(result, array):
        result = result.copy(order="F")
    result.setflags(write=False)
    return result


def _is_writable(array: Any) -> bool:
    """Whether the array, or one that it is a view of, can be written to."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


def checked_mask(mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which numbers are missing, read-only."""
    array = np.array(mask)
    if array.dtype != np.bool_ or array.shape != shape:
        raise DataError(f"absent must be a mask of the shape {shape}, one place for each number")
    array.setflags(write=False)
    return array


def checked_people(people: Any, n_rows: int) -> NDArray[np.int64]:
    """The person of each row as numbers from 0 without gaps, read-only."""
    array = np.array(people)
    if array.dtype.kind not in "iu" or array.shape != (n_rows,):
        raise DataError(f"people must be {n_rows} whole numbers, one for each row")
    array = np.unique(array, return_inverse=True)[1].reshape(-1).astype(np.int64)
    array.setflags(write=False)
    return array


def caught_codes(codes: NDArray, masked: NDArray | None, domain: Domain) -> NDArray:
    """The codes, with the catch-all in the place of those outside their range; the same array where
    there are none.  Of a type that one cell can bring about for the whole, each cell is read.
    """
    codes = without_bytes(codes)
    if codes.dtype.kind in "bfcOUT":
        uniques, inverse = factorise(codes.ravel().tolist())
        read = np.array([_code_in(cell) for cell in uniques], dtype=np.int64)
        codes = read.take(inverse).reshape(codes.shape)
    elif codes.dtype.kind not in "iu":
        return codes
    limits = np.array(domain.cardinalities)
    wrong = (
        (codes < 0) | (codes >= limits)
        if masked is None
        else (codes < 0) | (codes >= limits) | masked
    )
    if not wrong.any():
        return codes
    catch_alls = np.array([domain[name].catch_all for name in domain.names])
    caught = np.where(wrong, catch_alls, codes).astype(np.int32)
    if masked is not None:
        missing = [domain[name].missing_code for name in domain.names]
        for j, code in enumerate(missing):
            if code is not None:
                caught[masked[:, j], j] = code
    return caught


def _code_in(cell: object) -> int:
    """The code that a cell holds or spells; -1 where there is none."""
    number = reading(cell)
    return int(number) if number is not None and 0 <= number < 2**31 and number % 1 == 0 else -1


def check_codes(name: str, codes: NDArray, cardinality: int) -> None:
    """Raises DataError, naming the row, for a code outside the levels."""
    if codes.size and not (codes.min() >= 0 and codes.max() < cardinality):
        row = int(((codes < 0) | (codes >= cardinality)).argmax())
        raise DataError(
            f"column {name!r}, row {row + 1}: the code {int(codes[row])} is outside 0 to "
            f"{cardinality - 1}; "
            "correct the code or declare more levels"
        )


def check_numbers(name: str, values: NDArray, column: Numeric) -> None:
    """Raises DataError, naming the row, for a number that is not finite and inside the bounds."""
    lower = -np.inf if column.lower is None else column.lower
    upper = np.inf if column.upper is None else column.upper
    if not all_within(values, lower, upper):
        right = np.isfinite(values) & (values >= lower) & (values <= upper)
        row = int((~right).argmax())
        raise DataError(
            f"column {name!r}, row {row + 1}: the value {float(values[row])!r} is not finite and "
            "inside the bounds; "
            "widen the bounds in the domain or read with clip=True"
        )
