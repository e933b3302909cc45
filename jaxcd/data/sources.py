"""What a door takes for data: a Dataset, or a table that becomes one by its domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from jaxcd.checks import a_type
from jaxcd.data.dataset import Dataset
from jaxcd.data.domain import Domain, as_domain
from jaxcd.data.frames import as_table
from jaxcd.data.missing import Missing
from jaxcd.data.readers import read_csv
from jaxcd.errors import OptionError, PrivacyError
from jaxcd.places import is_path

__all__ = ["Tabular", "as_data"]

Tabular: TypeAlias = Any
"""A data frame of pandas, polars or arrow, or the path of a data file."""


def as_data(
    data: Any,
    domain: Domain | str | Path | None,
    *,
    private: bool,
    missing: Missing | str | None = None,
) -> Any:
    """The data of a run: a frame or a file by its domain as a Dataset; anything else as it is.

    Args:
        data: What a door was given.
        domain: The declared type of every column, or the path of a domain file; only with a frame
            or a file.  None infers one, without privacy.
        private: Whether there is a budget.
        missing: How searches read missing cells; None leaves that as it is.

    Returns:
        A Dataset where ``data`` is a frame or a path; else ``data``.  Reading is that of
        :meth:`Dataset.from_frame`: by a declared domain no cell makes it fail.

    Raises:
        PrivacyError: A private run without a declared domain; before a row is read.
        OptionError: A domain with data that are neither a frame nor a path.
        DataError: As for :meth:`Dataset.from_frame` and ``read_csv``.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"a": [0, 1, 1], "b": ["x", "y", "x"]})
        >>> as_data(frame, None, private=False)
        Dataset(n_samples=3; a: ordinal(2), b: categorical(2); domain inferred, not declared)
    """
    is_file = is_path(data)
    if not (is_file or _is_frame(data)):
        if domain is not None:
            raise OptionError(_no_table(data))
        return _read_as(data, missing)
    domain = as_domain(domain)
    if domain is not None and not isinstance(domain, Domain):
        raise OptionError(
            f"domain: {a_type(domain)} is not a Domain; make one with jaxcd.Domain(...), "
            "or give the path of a domain file"
        )
    if private and (domain is None or not domain.declared):
        problem = "is missing" if domain is None else "was taken from data and is not declared"
        raise PrivacyError(
            f"domain {problem}: levels and bounds from the data would void the guarantee. Give "
            "domain=, a jaxcd.Domain or the path of a domain file (`jaxcd domain FILE` writes a "
            'draft; check every column and set "declared" to true), or use budget=NO_PRIVACY'
        )
    if is_file:
        return _read_as(read_csv(data, domain=domain), missing)
    return _read_as(Dataset.from_frame(data, domain=domain), missing)


def _no_table(data: Any) -> str:
    """What is wrong with a domain beside what is no table, and the cure."""
    kind = a_type(data)
    found = f"domain goes with a frame or the path of a file, and data is {kind}"
    if hasattr(data, "domain"):
        return f"{found}, which has a domain of its own; leave domain out"
    return (
        f"{found}; give a data frame of pandas, polars or arrow, the path of a csv or parquet "
        "file, or, without domain, what jaxcd.Dataset.from_array(values, domain=domain) makes of "
        "rows or an array"
    )


def _read_as(data: Any, missing: Missing | str | None) -> Any:
    """A Dataset or a release with its missing cells read in this way; anything else as it is."""
    if missing is None:
        return data
    found = Missing.of(missing)
    return data.reading(found) if hasattr(data, "reading") else data


def _is_frame(data: Any) -> bool:
    import narwhals as nw

    return bool(
        nw.dependencies.is_into_dataframe(as_table(data))
        or hasattr(data, "collect_schema")  # a lazy frame
    )
