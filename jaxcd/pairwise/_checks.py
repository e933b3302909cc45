"""Checks of the arguments that every method for two variables takes.

Without privacy the values themselves are checked too: what cannot be answered is refused.  In a
private run an error may not depend on a record, so only shapes, kinds and options are looked at,
and every method must be total on what passes.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxcd.checks import counted
from jaxcd.data.columns import without_bytes
from jaxcd.errors import DataError, OptionError, PrivacyError, SensitivityError
from jaxcd.privacy import NO_PRIVACY, Budget, NoiseSource, NoPrivacy

__all__ = [
    "Bounds",
    "bounds_json",
    "check_bounds",
    "check_not_private",
    "check_pair",
    "check_pair_arguments",
    "min_max_scaled",
    "to_unit_interval",
]

_NUMBERS = (numbers.Real, Decimal)  # a Decimal does not call itself a real number

Bounds = tuple[tuple[float, float], tuple[float, float]]
"""Public bounds of x and of y: ``((lower, upper), (lower, upper))``."""


def check_pair(
    x: ArrayLike, y: ArrayLike, *, least: int = 8, private: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns x and y as float64 vectors of the same length.

    Args:
        x: one number a record, in the same order of records.
        y: as ``x``.
        least: the smallest number of records that is accepted.
        private: look at shapes and at whether these are numbers only, never at values (they may be
            NaN or constant).

    Raises:
        DataError: not one column each, not numbers, of unequal lengths, fewer than ``least``
        records; and, unless ``private``, a value that is not finite or a column with a single
        value.
    """
    columns = _column("x", x, private), _column("y", y, private)
    lengths = len(columns[0]), len(columns[1])
    if lengths[0] != lengths[1]:
        raise DataError(
            f"x and y must have one value a record each, got lengths {lengths[0]} and "
            f"{lengths[1]}: give paired records"
        )
    if lengths[0] < least:
        raise DataError(
            f"x and y have {counted(lengths[0], 'record')}, and {least} are the least that can be "
            "compared: give more records"
        )
    if not private:
        for name, column in zip("xy", columns, strict=True):
            broken = len(column) - int(np.isfinite(column).sum())
            if broken:
                raise DataError(
                    f"{name} is NaN or infinite in {counted(broken, 'record')}: leave such records "
                    "out of both columns"
                )
            if column.min() == column.max():
                raise DataError(
                    f"{name} is constant ({float(column[0])!r} in every record): a constant has "
                    "no cause here; give a variable"
                )
    return columns


def _column(name: str, values: ArrayLike, private: bool) -> np.ndarray:
    """One column as float64.  Of a private column a cell that is no number is NaN: an error about
    it would tell of a record.
    """
    is_sequence = isinstance(values, Sequence) and not isinstance(values, (str, bytes))
    if private and is_sequence and not hasattr(values, "__array__"):
        values = _cells(values)  # numpy's choice of a type for the whole would depend on each cell
    try:
        array = _unmasked(values) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    except (TypeError, ValueError):
        raise DataError(
            f"{name} is not one column of numbers: give a one-dimensional array"
        ) from None
    if array.ndim != 1:
        raise DataError(
            f"{name} must be one column, got an array of shape {array.shape}: a pair is of two "
            "scalar variables, so give "
            "one-dimensional arrays (multivariate pairs are not handled)"
        )
    is_real = array.dtype == object and all(
        value is None or isinstance(value, _NUMBERS) for value in array
    )
    if private:
        array = without_bytes(array)
    if is_real or (private and array.dtype.kind in "cOUT"):
        # Python's whole numbers have no limit, and one beyond int64 must not change what becomes of
        # the others; nor must one text or complex number, which make the whole of their type.
        array = np.array([_number_in(value) for value in array.tolist()])
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{name} must hold numbers, got dtype {array.dtype}: convert it to float64 first"
        )
    with np.errstate(over="ignore"):  # of a long double
        return array.astype(np.float64)


def _unmasked(values: np.ma.MaskedArray) -> np.ndarray:
    """A masked value is missing, as NaN is; whether there is one must not show in a private run."""
    array, mask = without_bytes(values.data), np.ma.getmaskarray(values)
    if array.dtype.kind not in "OUT":
        return np.where(mask, np.nan, array)
    array = array.astype(object)
    array[mask] = np.nan
    return array


def _cells(values: Any) -> np.ndarray:
    cells = np.empty(len(values), dtype=object)
    for i, cell in enumerate(values):
        cells[i] = cell
    return cells


def _number_in(cell: Any) -> float:
    """The number in a cell of any kind, or NaN."""
    if isinstance(cell, (complex, np.complexfloating)) and cell.imag == 0:
        cell = cell.real
    if not isinstance(cell, (str, *_NUMBERS)):
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf  # type: ignore[operator]
    except (TypeError, ValueError):  # numpy's durations call themselves whole numbers
        return math.nan


def check_pair_arguments(budget: Any, noise: Any) -> bool:
    """Whether the run is private.

    Raises:
        OptionError: budget or noise is not of its kind.
    """
    if not isinstance(budget, (Budget, NoPrivacy)):
        raise OptionError(
            f"budget = {budget!r} is not a budget; use jaxcd.Budget(epsilon=1.0), or "
            "jaxcd.NO_PRIVACY"
        )
    if noise is not None and not isinstance(noise, NoiseSource):
        raise OptionError(
            f"noise = <{type(noise).__name__}> is not a noise source; use None (secure) or "
            "jaxcd.SimulatedNoise(key)"
        )
    return budget is not NO_PRIVACY


def bounds_json(bounds: Bounds | None) -> dict[str, Any]:
    """The bounds as the domain that a certificate names; nothing where there are none."""
    if bounds is None:
        return {}
    columns = {
        name: {"type": "numeric", "lower": float(lower), "upper": float(upper)}
        for name, (lower, upper) in zip("xy", bounds, strict=True)
    }
    return {"domain": {"columns": columns}}


def check_not_private(budget: Any, *, method: str, reason: str) -> None:
    """Refuses a finite budget for a method that has no bounded sensitivity.

    Raises:
        SensitivityError: the run is private.
        OptionError: ``budget`` is no budget.
    """
    if check_pair_arguments(budget, None):
        raise SensitivityError(
            f"budget = {budget}: {method} cannot be private ({reason}); use reci or anm with this "
            "budget, or privatise the records "
            f"first (local privacy) and run {method} on them with budget=jaxcd.NO_PRIVACY"
        )


def check_bounds(bounds: Any, *, private: bool) -> Bounds | None:
    """Returns the bounds as floats; None where there are none and the run is not private.

    Raises:
        OptionError: they are not two finite pairs (lower, upper) with lower < upper.
        PrivacyError: the run is private and there are none.
    """
    if bounds is None:
        if private:
            raise PrivacyError(
                "bounds: a private run needs public bounds of both variables, and taking them "
                "from the data would leak them; "
                "declare bounds=((x_lower, x_upper), (y_lower, y_upper)) from general knowledge"
            )
        return None
    try:
        (a, b), (c, d) = bounds
        checked = (float(a), float(b)), (float(c), float(d))
    except (TypeError, ValueError):
        raise OptionError(
            f"bounds = {bounds!r} are not ((x_lower, x_upper), (y_lower, y_upper)); give two "
            "pairs of numbers"
        ) from None
    for name, (lower, upper) in zip("xy", checked, strict=True):
        if not (math.isfinite(upper - lower) and lower < upper):
            raise OptionError(
                f"bounds of {name} = {(lower, upper)!r} are not finite with lower < upper; give "
                "the range it can have"
            )
    return checked


def to_unit_interval(values: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """(values - lower) / (upper - lower), clipped to [0, 1]; NaN becomes 1/2.

    Record by record, so that neighbours stay neighbours, and total: whatever stands in a record, a
    number in [0, 1] comes out.
    """
    inside = np.clip(
        np.where(np.isnan(values), lower + 0.5 * (upper - lower), values), lower, upper
    )
    return np.clip((inside - lower) / (upper - lower), 0.0, 1.0)


def min_max_scaled(values: np.ndarray) -> np.ndarray:
    """(values - min) / (max - min) of a column that is not constant."""
    _, exponent = np.frexp(np.abs(values).max())
    # exact, and no difference or square below can overflow
    near_one = np.ldexp(values, -int(exponent))
    lowest = near_one.min()
    return (near_one - lowest) / (near_one.max() - lowest)
