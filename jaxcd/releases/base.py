"""What every release is: names, a declared domain, the number of rows, what it cost, and one file
that may be published.

A release is bought once.  Its numbers carry noise whose law is public, so whatever is computed from
them afterwards (a search, a test, a picture) is post-processing and costs nothing.
"""

from __future__ import annotations

import abc
import copy
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import jax
import numpy as np

from jaxcd.checks import a_type, is_whole, printable, shown_list
from jaxcd.citests import CITest, PreparedTest
from jaxcd.citests.base import StatisticsSource
from jaxcd.data import Binned, Missing
from jaxcd.data.domain import domain_from_json
from jaxcd.errors import DomainError, FormatError, OptionError
from jaxcd.json_files import DAMAGE
from jaxcd.places import check_new_file, path_of
from jaxcd.privacy import PrivacyCost, PureEvent
from jaxcd.privacy.accountant import SIMULATED
from jaxcd.privacy.certificate import certificate_of
from jaxcd.privacy.conversion import epsilon_to_rho
from jaxcd.releases.kind import ReleaseKind, kind_from_json, kind_to_json
from jaxcd.releases.release_file import (
    cost_from_json,
    cost_to_json,
    read_archive,
    row_from_json,
    row_to_json,
    write_archive,
)
from jaxcd.releases.stated_noise import check_stated_noise
from jaxcd.scores.base import GraphScore, LocalScore

__all__ = ["Release", "Tests", "check_kind", "facts_of_rows", "finite_array"]


# More rows than these are not counted exactly; of what is wrong with a file so many characters are
# shown.
_MOST_ROWS, _MOST_WORDS = 2**53, 300


Tests: TypeAlias = Mapping[type[CITest], Callable[[CITest], PreparedTest]]
"""The tests that a release answers, and how each is prepared."""

Scores: TypeAlias = Mapping[type, Callable[[Any, int | None], LocalScore]]
"""The scores that a release answers, each from its configuration and ``max_parents``."""

Parts: TypeAlias = tuple[dict[str, Any], dict[str, np.ndarray]]
"""What a release adds to a file: entries of the header, and arrays."""


def finite_array(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A read-only copy in float64; raises OptionError unless it is finite and of this shape."""
    array = np.array(value, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise OptionError(f"{name} must be finite and of the shape {shape}, not {array.shape}")
    array.setflags(write=False)
    return array


def check_kind(release: Any, *kinds: str) -> Any:
    """The release, which must be of one of these kinds; raises OptionError for anything else."""
    if not isinstance(release, Release) or release.kind not in kinds:
        kind = kinds[0]
        bought = next(name for name, each in ReleaseKind._kinds.items() if each.word == kind)
        raise OptionError(
            f"release: {a_type(release)} is no release of {kind.replace('-', ' ')} (a "
            f"{Release._kinds[kind].__name__}); buy one with jaxcd.release(data, "
            f"jaxcd.{bought}(), budget=...)"
        )
    return release


class Release(StatisticsSource):
    """Noisy statistics that were paid for once, and can be published and analysed for ever.

    :func:`jaxcd.release` makes one, :func:`jaxcd.search` finds a graph in it, and ``save`` and
    ``Release.load`` keep it in a file.

    Attributes:
        domain: the declared columns.
        n_samples: the number of rows (public); of people where the cost's unit is a person.
        cost: the guarantee, that is the budget fixed in advance.
        spent: what the events charged add up to.
        charges: the ledger's rows, one an event; empty without privacy, and for files of version 1.
        bought: the options it was bought with; None where an older file does not record them.
        snapshot: in words which state of a table was counted; None for rows in memory.

    Example:
        >>> import jax, jaxcd, pathlib, tempfile
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> bought = jaxcd.release(
        ...     data,
        ...     jaxcd.Histogram(),
        ...     budget=jaxcd.Budget(1.0),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> path = pathlib.Path(tempfile.mkdtemp(), "cancer.npz")
        >>> _ = bought.save(path)
        >>> jaxcd.Release.load(path).cost.epsilon
        1.0
    """

    kind: ClassVar[str]
    """The word in the file that says which release it is."""
    _kinds: ClassVar[dict[str, type[Release]]] = {}

    cost: PrivacyCost
    spent: PrivacyCost
    charges: tuple[Mapping[str, object], ...]
    bought: ReleaseKind | None = None
    """The options it was bought with; None where its file does not say."""
    missing: Missing = Missing.IGNORE
    """How tests and scores read the missing cells that the domain declares: :meth:`reading`."""

    snapshot: str | None = None
    """In words which state of a :class:`jaxcd.Table` was counted; None for rows in memory."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            Release._kinds[cls.kind] = cls

    def reading(self, missing: Missing | str) -> Any:
        """The same release, whose missing cells are read in this way from now on; post-processing.

        Args:
            missing: a :class:`jaxcd.data.Missing`, or "ignore" or "level".

        Raises:
            OptionError: it is neither.
        """
        found = Missing.of(missing)
        if found is self.missing:
            return self
        other = copy.copy(self)
        object.__setattr__(other, "missing", found)
        return other

    def of_snapshot(self, snapshot: str | None) -> Any:
        """The same release, with the words for the state of the table that it counted."""
        if snapshot == self.snapshot:
            return self
        other = copy.copy(self)
        object.__setattr__(other, "snapshot", snapshot)
        return other

    _depend_on_reading: ClassVar[tuple[str, ...]] = ()
    """Cached attributes that another reading changes: copies and pickles are without them."""

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: part for name, part in vars(self).items() if name not in self._depend_on_reading
        }

    @property
    def leaves_out(self) -> tuple[bool, ...]:
        """For each column whether its last code is that of missing cells, which are left out."""
        ignored = self.missing is Missing.IGNORE
        return tuple(
            ignored and column.is_discrete and column.missing is not None
            for column in self.domain.columns.values()
        )

    @property
    def coarse(self) -> tuple[str, ...]:
        """The columns whose cells tell a bin only, or that a value is missing: what such a column
        separates its cells do not.
        """
        return tuple(
            name
            for name, column in self.domain.columns.items()
            if isinstance(column, Binned)
            or (column.missing is not None and self.missing is Missing.LEVEL)
        )

    @property
    def observed_cardinalities(self) -> tuple[int, ...]:
        """The number of codes of each discrete column that are read; 1 for a numeric one."""
        return tuple(
            (cardinality or 1) - left_out
            for cardinality, left_out in zip(
                self.domain.cardinalities, self.leaves_out, strict=True
            )
        )

    @property
    def ledger(self) -> tuple[Mapping[str, object], ...]:
        """What was charged, as a ledger's table has it: one row an event, or one for all where a
        file of version 1 kept their sum only.
        """
        if self.charges:
            return self.charges
        if self.spent.epsilon in (0.0, math.inf) and self.spent.delta == 0:
            return ()  # without privacy, or nothing was bought: every column had one level
        mechanism = "Pure" if self.spent.delta == 0 else "ZCDP"
        epsilon = self.spent.epsilon if self.spent.delta == 0 else math.inf
        if self.spent.delta == 0:
            rho = PureEvent(self.spent.epsilon).rho
        # where delta alone covers it (epsilon 0), the largest rho of which that is true to a
        # billionth
        else:
            rho = epsilon_to_rho(max(self.spent.epsilon, 1e-9), self.spent.delta)
        return (
            {
                "index": 0,
                "label": f"release: {self.kind}",
                "mechanism": mechanism,
                "epsilon": epsilon,
                "rho": rho,
            },
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its numbers tell of themselves that a search of them should say; public."""
        return ()

    @property
    def opens_directions(self) -> bool:
        """Whether chance decides most directions that a search of its own score would find; then
        :func:`jaxcd.search` leaves them open.  Public.
        """
        return False

    @property
    def secure_noise(self) -> bool:
        """Whether the noise was drawn from the operating system; False without noise."""
        return not math.isinf(self.cost.epsilon) and self.cost.reason != SIMULATED

    @property
    def bought_in_domain(self) -> dict[str, str]:
        """What of its domain was bought, and not declared, as certificates and results say it."""
        words = "" if self.bought is None else self.bought.bought_in_domain
        return {"bought_in_domain": words} if words else {}

    def certificate(self) -> dict[str, Any]:
        """The content of a privacy.json for this release; ``jaxcd verify`` and :func:`jaxcd.verify`
        check it.
        """
        return certificate_of(
            cost=self.cost,
            spent=self.spent,
            rows=self.ledger,
            n_samples=self.n_samples,
            domain=self.domain.to_json_dict(),
            more={
                "release": self.kind,
                **self.bought_in_domain,
                **({} if self.snapshot is None else {"snapshot": self.snapshot}),
                "secure_noise": self.secure_noise,
            },
        )

    def tests(self) -> Tests:
        """The tests that this kind answers, and how each is prepared."""
        return {}

    def scores(self) -> Scores:
        """The scores that this kind answers: by the class of their configuration, a function of it
        and of ``max_parents`` (or None).
        """
        return {}

    def prepare_score(self, score: Any, *, max_parents: int | None = None) -> LocalScore:
        """The score on this release, its noise in the penalty or taken off before.

        Raises:
            OptionError: naming the scores that this kind answers, for another.
        """
        answered = self.scores()
        if type(score) not in answered:
            cure = (
                f"use {' or '.join(f'{each.__name__}()' for each in answered)}"
                if answered
                else "search it by tests"
            )
            raise OptionError(
                f"score: a release of {self.kind.replace('-', ' ')} has nothing that "
                f"{type(score).__name__} needs; {cure}"
            )
        return answered[type(score)](score, max_parents)

    def default_score(self) -> GraphScore:
        """The score that :func:`jaxcd.search` maximises.

        Raises:
            OptionError: this kind has none.
        """
        raise OptionError(f"bought: {a_type(self)} has no score of its own; search it by tests")

    def tabulated(self) -> Any:
        """Its tables with the law of their noise, a
        :class:`jaxcd.releases.tables.tabulated.Tabulated`; None where it has none.
        """
        return None

    def linear(self) -> Any:
        """Regressions among its columns with their errors, a
        :class:`jaxcd.releases.moments.regressions.Regressions`; None where it has none.
        """
        return None

    def redraw(
        self, adjacency: np.ndarray, *, kind: ReleaseKind | None = None
    ) -> Callable[[jax.Array], Release]:
        """Fresh releases by keys, from the model of a DAG that is fitted to this one: the
        parametric bootstrap.

        Args:
            adjacency: bool (d, d), a DAG.
            kind: the options of the purchase, where the release does not record them.

        Raises:
            OptionError: this kind cannot be drawn again.
        """
        raise OptionError(f"release: {a_type(self)} cannot be drawn again")

    def facts_of_pairs(self) -> np.ndarray:
        """What it says publicly of each pair of columns that tells how often a found edge returns,
        beside its share of draws, float64 (m, d, d), as of :func:`facts_of_rows`; m is 0 where it
        says nothing.
        """
        return np.zeros((0, len(self.names), len(self.names)))

    def _precision(self) -> np.ndarray:
        """What the options and the budget alone decide about the noise: equal for two purchases of
        the same options.
        """
        return np.zeros(0)

    def prepare_test(self, test: CITest, *, key: jax.Array | None = None) -> PreparedTest:
        """The test on this release, its noise in the null; ``key`` is not used.

        Raises:
            OptionError: naming the tests that this kind answers, for another.
        """
        answered = self.tests()
        if type(test) not in answered:
            names = ", ".join(sorted(kind.__name__ for kind in answered)) or "no test"
            raise OptionError(
                f"test: a release of {self.kind} does not answer {test.name}; it answers {names}"
            )
        return answered[type(test)](test)

    def check_names(self, names: Iterable[str]) -> None:
        """Refuses names that are not the release's, in its order.

        Raises:
            DomainError: they do not fit; it says which are missing, unknown, or out of order.
        """
        given = tuple(names)
        if given == self.names:
            return
        missing = [name for name in self.names if name not in given]
        unknown = [name for name in given if name not in self.names]
        what = (
            f"missing: {shown_list(missing)}, unknown: {shown_list(unknown)}"
            if missing or unknown
            else "the same names in another order"
        )
        raise DomainError(
            f"names: the release is of other variables ({what}); it has "
            f"{shown_list(self.names)}: load the release of these variables, or buy one"
        )

    @abc.abstractmethod
    def _least_variance(self, epsilon: float, rho: float) -> tuple[float, float] | None:
        """The smallest variance of the noise on a released number, and a bound below it for any
        release of this price; None where nothing was released.  epsilon, rho: for one row."""

    @abc.abstractmethod
    def _parts(self) -> Parts:
        """Own header entries (what JSON takes) and arrays, beside domain, n_samples, cost and
        spent.
        """

    @classmethod
    @abc.abstractmethod
    def _from_parts(
        cls, common: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Release:
        """The inverse of ``_parts``; ``common`` holds domain, n_samples, cost and spent.

        May raise KeyError, TypeError, ValueError or a JaxcdError: :meth:`load` turns them into a
        FormatError.
        """

    def save(self, path: str | Path) -> Path:
        """Writes the release as one file, which may be published if :attr:`cost` is proved; returns
        the path.

        An existing file is replaced, in one step: what goes wrong while writing leaves it as it
        was.

        Raises:
            OptionError: ``path`` is no path, or its folder does not exist.
        """
        path = path_of("path", path, example="release.npz")
        check_new_file("path", path, force=True, cure="one such as 'release.npz'")
        own, arrays = self._parts()
        header = {
            "kind": self.kind,
            "columns": self.domain.to_json_dict()["columns"],
            "declared": self.domain.declared,
            "n_samples": self.n_samples,
            **({} if self.snapshot is None else {"snapshot": self.snapshot}),
            **({} if self.missing is Missing.IGNORE else {"missing": self.missing.value}),
            "cost": cost_to_json(self.cost),
            "spent": cost_to_json(self.spent),
            "charges": [row_to_json(row) for row in self.charges],
            "bought": kind_to_json(self.bought),
            "own": own,
        }
        write_archive(path, header, arrays)
        return path

    @classmethod
    def load(cls, path: str | Path, *, names: Iterable[str] | None = None) -> Any:
        """Reads a release; ``Release.load`` takes any kind, a subclass its own only.

        Args:
            names: the variables that it should be of, in order; None takes any.

        Raises:
            OptionError: ``path`` is no path.
            DataError: there is no such file.
            FormatError: it is none of ours, of a newer version, of another kind, or incomplete.
            DomainError: it is of other variables.
        """
        path = path_of("path", path, example="release.npz")
        header, arrays = read_archive(path)
        kind = Release._kinds.get(str(header["kind"]))
        if kind is None or not issubclass(kind, cls):
            wanted = "any of " + ", ".join(sorted(Release._kinds)) if cls is Release else cls.kind
            raise FormatError(
                f"file {str(path)!r} is a release of the kind {header['kind']!r}; expected {wanted}"
            )
        try:
            rows = header["n_samples"]
            if not is_whole(rows, 1, _MOST_ROWS):
                raise ValueError(f"n_samples is {rows!r}")
            common = {
                "domain": domain_from_json(
                    json.dumps({"columns": header["columns"], "declared": header["declared"]})
                ),
                "n_samples": rows,
                "cost": cost_from_json(header["cost"]),
                "spent": cost_from_json(header["spent"]),
                "charges": tuple(row_from_json(row) for row in header.get("charges", ())),
                "bought": kind_from_json(header.get("bought")),
            }
            release = kind._from_parts(common, header["own"], arrays)
            if (snapshot := header.get("snapshot")) is not None:
                release = release.of_snapshot(str(snapshot))
            release = release.reading(header.get("missing", Missing.IGNORE))
            check_stated_noise(release.cost, release.charges, release._least_variance)
        except DAMAGE as error:
            raise FormatError(
                f"file {str(path)!r}: the release is damaged ({_in_a_line(error)}); save it again"
            ) from None
        if names is not None:
            release.check_names(names)
        return release


def _in_a_line(error: Exception) -> str:
    words = printable(str(error))
    return words if len(words) <= _MOST_WORDS else f"{words[:_MOST_WORDS]} ..."


def facts_of_rows(rows: float, n_columns: int, *more: Any) -> np.ndarray:
    """log(N / 300) of the N rows that released numbers are worth, from 10 to 5,000, where it is
    negative and where it is positive, and further facts, for all pairs: float64
    (2 + further ones, n_columns, n_columns).
    """
    worth = math.log(min(max(rows, 10.0), 5_000.0) / 300)
    facts = (min(worth, 0.0), max(worth, 0.0), *more)
    return np.array([np.broadcast_to(fact, (n_columns, n_columns)) for fact in facts])
