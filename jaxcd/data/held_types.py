"""What the type of a frame's column says that its cells are; no cell is looked at."""

from __future__ import annotations

from typing import Any

from jaxcd.errors import DataError

__all__ = ["check_held", "held_type", "holds_nothing", "is_read"]


def held_type(series: Any) -> Any:
    """The type of the cells of narwhals's series, in its words: of a dictionary that of the levels.
    The frame's own type where narwhals has no word for it.
    """
    import narwhals as nw

    native = series.to_native()
    own = native.dtype if hasattr(native, "dtype") else native.type
    if str(own) == "object":  # of pandas; narwhals would look at the cells whether they are text
        return nw.Object()
    try:
        found = series.dtype
    except ValueError:  # of an arrow decimal with a negative scale
        return own
    # The levels of polars are text.
    if found in (nw.Categorical, nw.Enum) and not series.implementation.is_polars():
        return held_type(nw.from_native(_levels_of(own), series_only=True))
    return own if found == nw.Unknown else found


def _levels_of(own: Any) -> Any:
    """A series of the type of the levels of arrow's dictionaries and pandas' categoricals."""
    own = getattr(own, "pyarrow_dtype", own)
    if hasattr(own, "value_type"):
        import pyarrow as pa

        return pa.chunked_array([], type=own.value_type)
    # Of objects that all are text pandas makes texts, unless it is told the type.
    return own.categories.to_series().astype(own.categories.dtype)


def holds_nothing(held: Any) -> bool:
    """Whether it is the type that has nothing but missing cells (polars' Null, arrow's null): what
    a column becomes where no cell of it is filled.
    """
    return str(held).casefold().removesuffix("[pyarrow]") == "null"


def is_read(held: Any) -> bool:
    """Whether cells of this type are text, numbers, truth values, or objects of any kind."""
    import narwhals as nw

    if not isinstance(held, nw.dtypes.DType):  # such as pandas' sparse numbers and periods
        return getattr(held, "kind", "V") in "biufc"
    texts = (nw.String, nw.Categorical, nw.Enum)
    return bool(held.is_numeric() or held in (nw.Boolean, nw.Object, *texts))


def check_held(name: str, held: Any) -> None:
    """Raises DataError where the type of a column says that no cell is text or a number."""
    if not (holds_nothing(held) or is_read(held)):
        raise DataError(
            f"column {name!r} holds values of type {held}; turn the column into text or numbers, "
            'or declare it with "ignore": true'
        )
