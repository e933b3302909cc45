"""The one representation of data: int32 codes for discrete columns, float64 for numeric ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxcd.checks import check_flag, counted
from jaxcd.data.checked_arrays import (
    caught_codes,
    check_codes,
    check_numbers,
    checked_mask,
    checked_people,
    frozen_block,
)
from jaxcd.data.column_types import Binned
from jaxcd.data.columns import RawColumn, check_has_rows, encode, infer_columns, is_missing
from jaxcd.data.domain import Domain, Numeric, as_domain, declared_domain, describe, observed_domain
from jaxcd.data.missing import Missing
from jaxcd.data.rows import Block, Codes, Columns, Rows, by_kind, discrete_places
from jaxcd.data.shards import Shards
from jaxcd.errors import DataError, DomainError
from jaxcd.ops.people import person_weights, weighted_sets

_ROWS_OF_A_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Rows):
    """Rows of a declared domain; made by :meth:`from_frame`, :meth:`from_array`, :meth:`from_codes`
    or ``read_csv``.

    The columns stand in the domain's order.  All arrays are read-only, and no value ever shows in
    the ``repr``.

    Args:
        domain: The type of every column, in order.
        discrete: int32 codes of the discrete columns, n_samples x (number of discrete columns),
            column-major.
        numeric: float64 values of the numeric columns, n_samples x (number of numeric columns),
            column-major.
        absent: Which numeric cells are missing, bool, of the shape of ``numeric``; their value is
            the column's ``other``.  None: none of them.
        people: Which rows belong to one person: whole numbers from 0, (n_samples,).  None: every
            row is a person.
        missing: How searches without privacy read missing cells; see :meth:`reading`.

    Raises:
        DataError: If there is no row, or there are fewer than 2 columns, or a value does not fit
            the domain.

    Example:
        >>> import jaxcd, pandas
        >>> domain = jaxcd.Domain(
        ...     {"smoker": jaxcd.Categorical(("no", "yes")), "age": jaxcd.Numeric(0, 120)}
        ... )
        >>> frame = pandas.DataFrame({"smoker": ["yes", "no", "no"], "age": [61, 45, 33]})
        >>> data = jaxcd.Dataset.from_frame(frame, domain=domain)
        >>> data
        Dataset(n_samples=3; smoker: categorical(2), age: numeric)
        >>> data.column("smoker").tolist()
        [1, 0, 0]
    """

    domain: Domain
    discrete: NDArray[np.int32]
    numeric: NDArray[np.float64]
    absent: NDArray[np.bool_] | None = None
    people: NDArray[np.int64] | None = None
    missing: Missing = Missing.IGNORE

    def __post_init__(self) -> None:
        kinds = [column.is_discrete for column in self.domain.columns.values()]
        discrete, numeric = (
            frozen_block(self.discrete, np.int32),
            frozen_block(self.numeric, np.float64),
        )
        object.__setattr__(self, "discrete", discrete)
        object.__setattr__(self, "numeric", numeric)
        if discrete.shape[1] != sum(kinds) or numeric.shape[1] != len(kinds) - sum(kinds):
            raise DataError(
                f"discrete and numeric have {discrete.shape[1]} and {numeric.shape[1]} columns, "
                "but the domain has "
                f"{sum(kinds)} and {len(kinds) - sum(kinds)}; give one column for each in the "
                "domain"
            )
        if discrete.shape[0] != numeric.shape[0]:
            raise DataError(
                f"discrete has {counted(discrete.shape[0], 'row')} and numeric {numeric.shape[0]}; "
                "give the same rows"
            )
        if self.absent is not None:
            object.__setattr__(self, "absent", checked_mask(self.absent, numeric.shape))
        if self.people is not None:
            object.__setattr__(self, "people", checked_people(self.people, discrete.shape[0]))
        if len(kinds) < 2:
            raise DataError(
                f"the data must have at least 2 columns, not {len(kinds)}; add a column"
            )
        check_has_rows(self.n_samples)
        positions = {True: 0, False: 0}
        for name, column in self.domain.columns.items():
            block = discrete if column.is_discrete else numeric
            cells = block[:, positions[column.is_discrete]]
            positions[column.is_discrete] += 1
            if isinstance(column, Numeric):
                check_numbers(name, cells, column)
            else:
                check_codes(name, cells, column.cardinality)

    # Reading
    # ----------------------------------------------------------------------------------------------

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        domain: Domain | str | Path | None = None,
        strict: bool | None = None,
        clip: bool = False,
    ) -> Dataset:
        """Take a data frame of pandas, polars, arrow or any other eager frame that narwhals
        understands.

        Args:
            frame: n_samples rows, one column for each in the domain, in any order.
            domain: The declared type of every column, or the path of a domain file; None infers
                one (``declared=False``), for use without privacy.
            strict: Whether a cell that fits no declaration is an error.  None: not where the domain
                is declared.  Then a missing cell, an undeclared level or a text in a column of
                numbers counts as the column's ``other``, and a number beyond a bound as the bound:
                a private analysis must not fail or succeed because of one record.  ``jaxcd check``
                lists such cells.
            clip: Of strict reading: move numbers outside the declared bounds onto the bounds,
                rather than raise.

        Returns:
            The data with its columns in the domain's order.

        Raises:
            DataError: Too few rows or columns, a repeated name, a column that is only in the domain
                or only in the frame.  With ``strict`` also, naming column, row (data rows count
                from 1), value and cure: a missing value, an undeclared level, a value out of
                bounds, infinite or not a number.
            OptionError: ``strict`` or ``clip`` is no truth value.
        """
        from jaxcd.data.frames import raw_columns_of_frame

        declared = as_domain(domain)
        return from_raw_columns(
            raw_columns_of_frame(frame), domain=declared, strict=strict, clip=clip
        )

    @classmethod
    def from_array(
        cls,
        values: ArrayLike | Sequence[Sequence[object]],
        *,
        names: Sequence[str] | None = None,
        domain: Domain | str | Path | None = None,
        strict: bool | None = None,
        clip: bool = False,
    ) -> Dataset:
        """Take a two-dimensional array (or rows as lists); cells are levels and numbers, not codes.

        Args:
            values: n_samples x n_columns.
            names: One name a column; None takes the domain's names, or x1, x2, ... without a
                domain.
            domain: As for :meth:`from_frame`.  Without ``strict``, rows given as lists are filled
                up or cut to the names.
            strict: As ``domain``.
            clip: As ``domain``.

        Returns:
            The data with its columns in the domain's order.

        Raises:
            DataError: As for :meth:`from_frame`, or if ``values`` is not two-dimensional.
            DomainError: ``domain`` is none.
            OptionError: As for :meth:`from_frame`.
        """
        from jaxcd.data.frames import raw_columns_of_array

        declared = None if domain is None else declared_domain(domain)
        if names is None and declared is not None:
            names = declared.names
        raws = raw_columns_of_array(values, names=names, strict=reads_strictly(declared, strict))
        return from_raw_columns(raws, domain=declared, strict=strict, clip=clip)

    @classmethod
    def from_codes(
        cls,
        codes: ArrayLike | Sequence[Sequence[int]],
        *,
        domain: Domain | str | Path,
        strict: bool | None = None,
    ) -> Dataset:
        """Take level codes as they are: the fast way for data made by a program.

        A read-only, column-major int32 array is kept without a copy.

        Args:
            codes: Integers, n_samples x n_columns; 0 <= codes[i, j] < the number of levels of
                column j.
            domain: A domain of discrete columns only, or the path of a domain file.  Without
                ``strict``, rows given as lists are filled up or cut to its columns.
            strict: As for :meth:`from_frame`: whether a code outside its range (such as -1 for a
                missing value), a masked one, or an array that is not of integers is an error; else
                a cell that holds no code counts as the column's ``other``.

        Returns:
            The data.

        Raises:
            DomainError: If a column of the domain is numeric.
            DataError: If the shape or type is wrong, or, with ``strict``, a code is outside its
                range.
        """
        from jaxcd.data.frames import array_of_rows

        domain = declared_domain(domain)
        if not domain.is_discrete:
            raise DomainError(
                "from_codes needs a domain of discrete columns; use from_frame for numeric columns"
            )
        strictly = reads_strictly(domain, strict)
        masked = np.ma.getmaskarray(codes) if isinstance(codes, np.ma.MaskedArray) else None
        if strictly and masked is not None and masked.any():
            raise DataError(
                "codes holds masked values, which says that they are missing; declare missing=True "
                "for their columns and read with strict=False, which gives them a code of their own"
            )
        plain = array_of_rows(codes, None if strictly else domain.n_columns)
        if plain.ndim != 2 or plain.shape[1] != domain.n_columns:
            raise DataError(
                f"codes must have the shape (n_samples, {domain.n_columns}), one column for each "
                "in the domain, "
                f"not {plain.shape}"
            )
        if not strictly:
            plain = caught_codes(plain, masked, domain)
        return cls(domain, plain, np.empty((plain.shape[0], 0)))

    # Looking
    # ----------------------------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return int(self.discrete.shape[0])

    @property
    def has_people(self) -> bool:
        return self.people is not None

    @property
    def n_people(self) -> int:
        """The number of people: of rows, where the domain declares no person column."""
        return self.n_samples if self.people is None else int(self.people.max()) + 1

    @property
    def codes(self) -> NDArray[np.int32]:
        """Level codes, int32, n_samples x n_columns, column-major, read-only; codes[:, j] belongs
        to names[j].

        Raises:
            DomainError: If a column is numeric; ``column(name)`` and ``select(names)`` give a part.
        """
        for name, column in self.domain.columns.items():
            if not column.is_discrete:
                raise DomainError(
                    f"column {name!r} is numeric and has no codes; select the discrete columns "
                    "first"
                )
        return self.discrete

    def column(self, name: str) -> NDArray:
        """One column, shape (n_samples,): int32 codes if it is discrete, float64 values if it is
        numeric.
        """
        is_discrete = self.domain[name].is_discrete
        position = [n for n in self.names if self.domain[n].is_discrete == is_discrete].index(name)
        return (self.discrete if is_discrete else self.numeric)[:, position]

    def values(self, name: str) -> NDArray[np.float64]:
        """The float64 values of a numeric column, shape (n_samples,), in the column's units.

        Raises:
            DomainError: If the column is discrete or not in the domain.
        """
        if self.domain[name].is_discrete:
            raise DomainError(
                f"column {name!r} is {self.domain[name].kind}, not numeric; column() gives its "
                "codes"
            )
        return self.column(name)

    def is_missing(self, name: str) -> NDArray[np.bool_]:
        """Which cells of a column are missing, bool (n_samples,); all False where the domain does
        not declare that they can be.
        """
        column = self.domain[name]
        if column.is_discrete:
            found: NDArray[np.bool_] = self.column(name) == (
                -1 if column.missing_code is None else column.missing_code
            )
            return found
        if self.absent is None:
            return np.zeros(self.n_samples, dtype=np.bool_)
        numeric = [n for n in self.names if not self.domain[n].is_discrete]
        return self.absent[:, numeric.index(name)]

    def reading(self, missing: Missing | str) -> Dataset:
        """The same rows, whose missing cells searches read in this way: a
        :class:`jaxcd.data.Missing`, or "ignore" or "level".

        Raises:
            OptionError: It is neither.
        """
        return dataclasses.replace(self, missing=Missing.of(missing))

    def in_bins(self, bins: Mapping[str, Binned]) -> Dataset:
        """The same rows, of which the named numeric columns are read in bins.

        Args:
            bins: by column, public: where they were read off the data, a mechanism must have
                released them (:class:`jaxcd.Discretised`).

        Raises:
            DomainError: a column is not numeric, or has other missing cells than its bins.
        """
        return _assembled(
            self.domain.in_bins(bins),
            (
                (bins[name].bins_of(self.values(name), self._absent_in(name)), None)
                if name in bins
                else (self.column(name), self._absent_in(name))
                for name in self.names
            ),
            self.people,
            self.n_samples,
        ).reading(self.missing)

    def complete_cases(self, names: Iterable[str]) -> Dataset:
        """The rows in which none of the named columns is missing, in a domain where none can be;
        not for private runs, which must use every row.

        Raises:
            DataError: If no row, or fewer than two columns, are left.
        """
        wanted = tuple(names)
        known = ~np.logical_or.reduce([self.is_missing(name) for name in wanted])
        part = self.select(wanted).where(known)
        domain = observed_domain(self.domain.select(wanted), [True] * len(wanted))
        return Dataset(domain, part.discrete, part.numeric, None, part.people)

    def on(self, mesh: Any) -> Shards:
        """The rows over the devices of a mesh, and over the processes that these belong to.

        It goes to :func:`jaxcd.release`, :func:`jaxcd.discover`, :func:`jaxcd.recommend`,
        :func:`jaxcd.ci_test`, :func:`jaxcd.pc`, :func:`jaxcd.fci` and :func:`jaxcd.tree_pc`.
        Counts, exact sums and tests of ranks give what this data set gives, to the last bit, for
        any number of devices and rows; a question costs one all-reduce of as many numbers as its
        tables have cells.  Tests by kernels, regressions and correlations (HSIC, RCIT, KCI, GCM,
        FisherZ) have the same bits on any number of devices, one among them, by a fixed order of
        addition (:mod:`jaxcd.ops.row_blocks`), and agree with those of this data set, which adds in
        another order, to about 1e-6.  What needs the rows themselves (BoundedRCIT, StratifiedTau,
        StratifiedRanks, rows left out for missing cells, scores of a search without privacy) is
        refused: give it the data set itself, or buy :class:`jaxcd.Features` or
        :class:`jaxcd.SecondMoments` and search that.

        *Several processes* (``jax.distributed``): each gives its own rows, and the mesh is of
        ``jax.devices()``, those of all.  Every process then runs the same lines with the same
        options and keys, and gets the same result.  How many rows each has is public, and must not
        depend on what they say: a replaced row stays where it is.

        Args:
            mesh: a one-dimensional ``jax.sharding.Mesh``, such as
                ``jax.make_mesh((jax.device_count(),), ("rows",))``.

        Returns:
            :class:`jaxcd.data.Shards`.

        Guarantee:
            That of the same run on one device.  Shapes and pads follow from the numbers of rows and
            the declared levels.  On several processes the noise of the first is the noise of the
            run (:class:`jaxcd.privacy.OneDraw`): all return the same numbers, and any of them may
            be published.  ``ledger=`` is given to the first process alone, which charges it; the
            others would charge the same events again.

        Raises:
            OptionError: it is no such mesh, or the processes have different domains.

        Example:
            >>> import jax, jaxcd
            >>> data = jaxcd.networks.load("asia").sample(10_000, key=jax.random.key(0))
            >>> mesh = jax.make_mesh((jax.device_count(),), ("rows",))
            >>> bought = [
            ...     jaxcd.release(
            ...         rows,
            ...         jaxcd.Histogram(),
            ...         budget=jaxcd.Budget(1.0),
            ...         noise=jaxcd.SimulatedNoise(jax.random.key(1)),
            ...     )
            ...     for rows in (data, data.on(mesh))
            ... ]
            >>> (bought[0].values == bought[1].values).all().item()
            True
        """
        return Shards(self, self.discrete, self.people, mesh)

    # Counts and sums
    # ----------------------------------------------------------------------------------------------

    @cached_property
    def _cardinalities(self) -> tuple[int, ...]:
        """Of the discrete columns."""
        return tuple(k for k in self.domain.cardinalities if k is not None)

    @cached_property
    def _counted(self) -> Codes:
        return Codes(self.discrete, self._cardinalities)

    @cached_property
    def _weights(self) -> NDArray[np.int64]:
        assert self.people is not None
        return person_weights(self.people)

    def counts(
        self, sets: Sequence[Columns], *, by_person: bool = False
    ) -> list[NDArray[np.int64]]:
        places = discrete_places(self.domain, sets)
        if not by_person:
            return self._counted.counts(places)
        found: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)] * len(sets)
        for alike in by_kind(places, self._cardinalities).values():
            columns = np.array([places[i] for i in alike])
            tables = weighted_sets(self.discrete, self._cardinalities, columns, self._weights)
            for i, table in zip(alike, tables, strict=True):
                found[i] = table
        return found

    def occupied(self, columns: Columns) -> NDArray[np.int64]:
        return self._counted.occupied(discrete_places(self.domain, [columns])[0])

    def tables(self, variables: NDArray, shape: tuple[int, int, int]) -> NDArray[np.int32]:
        places = discrete_places(self.domain, variables.tolist())
        return self._counted.tables(np.array(places), shape)

    def blocks(self, names: Sequence[str], *, by_person: bool = False) -> Iterator[Block]:
        cells = {name: self.column(name) for name in names}
        missing = {
            name: self.is_missing(name) for name in names if self.domain[name].missing is not None
        }
        for start in range(0, self.n_samples, _ROWS_OF_A_BLOCK):
            part = slice(start, start + _ROWS_OF_A_BLOCK)
            yield Block(
                {name: column[part] for name, column in cells.items()},
                {name: column[part] for name, column in missing.items()},
                self._weights[part] if by_person else None,
            )

    # Rearranging
    # ----------------------------------------------------------------------------------------------

    def select(self, names: Iterable[str]) -> Dataset:
        """The named columns (at least two), in the order of ``names``.

        Raises:
            DomainError: If a name is not in the domain or given twice.
            DataError: If fewer than two names are given.
        """
        if isinstance(names, str):
            raise DataError(
                f"names must be a sequence of column names, not the single text {names!r}"
            )
        wanted = tuple(names)
        if len(wanted) < 2:
            raise DataError(f"names must hold at least 2 columns, not {len(wanted)}; select more")
        return _assembled(
            self.domain.select(wanted),
            ((self.column(name), self._absent_in(name)) for name in wanted),
            self.people,
            self.n_samples,
        ).reading(self.missing)

    def where(self, rows: NDArray[np.bool_]) -> Dataset:
        """The rows of a mask, bool (n_samples,); not for private runs, which must use every row.

        Raises:
            DataError: If no row is left.
        """
        return Dataset(
            self.domain,
            self.discrete[rows],
            self.numeric[rows],
            None if self.absent is None else self.absent[rows],
            None if self.people is None else self.people[rows],
            self.missing,
        )

    def check_subsample(self) -> None:
        """Nothing: any part of rows in memory can be taken."""

    def _absent_in(self, name: str) -> NDArray[np.bool_] | None:
        return (
            None if self.absent is None or self.domain[name].is_discrete else self.is_missing(name)
        )

    def permuted(self, order: Sequence[int] | NDArray) -> Dataset:
        """The same rows with column ``order[j]`` at place j; ``order`` is a permutation of 0, ...,
        n_columns - 1.
        """
        places = [int(place) for place in order]
        if sorted(places) != list(range(self.n_columns)):
            raise DataError(
                f"order must be a permutation of 0 to {self.n_columns - 1}, not {places}"
            )
        return self.select(self.names[place] for place in places)

    def to_frame(self) -> Any:
        """A pandas data frame: categoricals (ordered for ordinal columns) and float64 columns;
        missing cells are missing.
        """
        import pandas as pd

        frame: dict[str, Any] = {}
        for name, column in self.domain.columns.items():
            missing = self.is_missing(name)
            if isinstance(column, Numeric):
                frame[name] = np.where(missing, np.nan, self.column(name))
            else:
                frame[name] = pd.Categorical.from_codes(
                    np.where(missing, -1, self.column(name)),
                    categories=list(column.levels),
                    ordered=column.kind == "ordinal",
                )
        return pd.DataFrame(frame)

    def __repr__(self) -> str:
        inferred = "" if self.domain.declared else "; domain inferred, not declared"
        # where people may have several rows, the number of rows is as private as a row
        n = f"n_samples={self.n_samples}" if self.people is None else f"n_people={self.n_people}"
        return f"Dataset({n}; {describe(self.domain)}{inferred})"


def reads_strictly(domain: object, strict: bool | None) -> bool:
    """Whether a cell that fits no declaration is an error; raises OptionError where ``strict`` is
    no truth value.
    """
    if strict is not None:
        check_flag("strict", strict)
    return not (isinstance(domain, Domain) and domain.declared) if strict is None else strict


def from_raw_columns(
    raws: Sequence[RawColumn],
    *,
    domain: Domain | None,
    strict: bool | None = None,
    clip: bool = False,
) -> Dataset:
    """Apply a domain, given or inferred, to raw columns of distinct names; of a list that is handed
    over each is taken out, and let go of when it is encoded.
    """
    check_flag("clip", clip)
    check_has_rows(raws[0].n_samples)
    if domain is None:
        domain = Domain(infer_columns(raws), declared=False)
    domain = declared_domain(domain)
    by_name = {raw.name: raw for raw in raws}
    person = () if domain.person is None else (domain.person,)
    for name in (*domain.names, *person):
        if name not in by_name:
            raise DataError(
                f"column {name!r} is in the domain but not in the data; add it to the data or "
                "take it out of the domain"
            )
    for name in by_name:
        if name not in domain.columns_of_files:
            raise DataError(
                f"column {name!r} is in the data but not in the domain; declare it, or drop it "
                'with "ignore": true'
            )
    strictly = reads_strictly(domain, strict)
    n_samples = raws[0].n_samples
    people = None if domain.person is None else _people(by_name[domain.person])
    if isinstance(raws, list):
        raws.clear()
    encoded = (
        encode(by_name.pop(name), domain[name], clip=clip, strict=strictly) for name in domain.names
    )
    return _assembled(domain, encoded, people, n_samples)


def _people(raw: RawColumn) -> NDArray[np.int64]:
    """The person of every row, as a number; a row without a person is a person of its own."""
    raw.check_type(is_person=True)
    uniques, inverse = raw.told_apart()
    unknown = np.array([is_missing(cell) for cell in uniques], dtype=np.bool_)[inverse]
    places: dict[object, int] = {}  # 7 and 7.0 are one person
    same = [places.setdefault(cell, len(places)) for cell in uniques]
    people = np.array(same, dtype=np.int64)[inverse]
    people[unknown] = len(uniques) + np.arange(int(unknown.sum()))
    return np.unique(people, return_inverse=True)[1].reshape(-1)


def _assembled(
    domain: Domain,
    columns: Iterable[tuple[NDArray, NDArray[np.bool_] | None]],
    people: NDArray[np.int64] | None,
    n_samples: int,
) -> Dataset:
    """Put encoded columns, in the domain's order, into the blocks, each as it comes."""
    kinds = [domain[name].is_discrete for name in domain.names]
    n_discrete, n_numeric = sum(kinds), len(kinds) - sum(kinds)
    discrete = np.empty((n_samples, n_discrete), dtype=np.int32, order="F")
    numeric = np.empty((n_samples, n_numeric), dtype=np.float64, order="F")
    absent: NDArray[np.bool_] | None = None
    places = {True: 0, False: 0}
    for is_discrete, (cells, missing) in zip(kinds, columns, strict=True):
        place = places[is_discrete]
        places[is_discrete] += 1
        (discrete if is_discrete else numeric)[:, place] = cells
        if not is_discrete and missing is not None:
            if absent is None:
                absent = np.zeros(numeric.shape, dtype=np.bool_, order="F")
            absent[:, place] = missing
    for block in (discrete, numeric):
        block.setflags(write=False)
    return Dataset(domain, discrete, numeric, absent, people)
