"""From the words of the command line to the objects of the library, with every check in plain
words.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

import jaxcd
from jaxcd.api import Algorithm
from jaxcd.checks import counted, shown_list
from jaxcd.cli import tables
from jaxcd.discovery import dag_to_pag
from jaxcd.errors import DataError, FormatError, OptionError, PrivacyError
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.json_files import parsed, read_text
from jaxcd.places import check_there
from jaxcd.privacy import Accounting, NoiseSource, NoPrivacy, Unit
from jaxcd.privacy.budget import counted_records
from jaxcd.queries.door import public_count

__all__ = [
    "DECIDERS",
    "DEFAULT_ROWS",
    "TESTS",
    "Loaded",
    "Source",
    "algorithm",
    "budget",
    "decider",
    "is_auto",
    "knowledge",
    "ledger",
    "public_facts",
    "randomness",
    "test",
]

DEFAULT_ROWS = 10_000

TESTS: dict[str, Callable[[], Any]] = {
    "covariance-norm": jaxcd.CovarianceNorm,
    "pooled-covariance": jaxcd.PooledCovariance,
    "kendall-tau": jaxcd.KendallTau,
    "spearman": jaxcd.Spearman,
    "chi-square": jaxcd.ChiSquare,
    "g-test": jaxcd.GTest,
    "fisher-z": jaxcd.FisherZ,
    "stratified-ranks": jaxcd.StratifiedRanks,
    "stratified-tau": jaxcd.StratifiedTau,
    "rcit": jaxcd.RCIT,
    "kci": jaxcd.KCI,
    "gcm": jaxcd.GCM,
}
"""Names of ``--test``, besides auto."""

DECIDERS: dict[str, Callable[[], Any]] = {
    "levelwise-gaussian": jaxcd.LevelwiseGaussian,
    "sparse-vector": jaxcd.SparseVector,
    "sieve-and-examine": jaxcd.SieveAndExamine,
    "noisy-threshold": jaxcd.NoisyThreshold,
    "noisy-threshold-gaussian": lambda: jaxcd.NoisyThreshold(noise=jaxcd.decisions.Noise.GAUSSIAN),
    "exponential-select": jaxcd.ExponentialSelect,
    "threshold": jaxcd.Threshold,
}
"""Names of ``--mechanism``, besides auto."""

_HOW_TO_DECLARE = (
    "run `jaxcd domain {file} --out domain.json`, check every level and bound in that file, set "
    'its "declared" to true, '
    "and give --domain domain.json"
)


def budget(
    *,
    epsilon: float | None,
    delta: float | None,
    no_privacy: bool,
    simulated_noise: bool,
    max_rows_per_person: int | None = None,
    accounting: str | None = None,
    unit: str | None = None,
) -> jaxcd.Budget | NoPrivacy:
    """The budget of ``--epsilon``, ``--delta``, ``--max-rows-per-person``, ``--accounting``,
    ``--unit`` and ``--no-privacy``.
    """
    if max_rows_per_person is not None and (no_privacy or not max_rows_per_person >= 1):
        problem = (
            "a run with --no-privacy protects nobody; drop one of the two"
            if no_privacy
            else "is no number of rows; give a whole number from 1"
        )
        raise OptionError(f"--max-rows-per-person {max_rows_per_person}: {problem}")
    units = [member.value for member in Unit]
    if unit is not None and (no_privacy or unit not in units):
        problem = (
            "a run with --no-privacy protects nobody; drop one of the two"
            if no_privacy
            else f"use {' or '.join(units)}"
        )
        raise OptionError(f"--unit {unit}: {problem}")
    if unit == Unit.PERSON.value and max_rows_per_person is not None:
        raise OptionError(
            "--unit person holds for any number of rows of a person; drop --max-rows-per-person"
        )
    if no_privacy:
        if not (epsilon is delta is accounting is None):
            raise OptionError(
                "--no-privacy does not go with --epsilon, --delta or --accounting; drop one of them"
            )
        if simulated_noise:
            raise OptionError(
                "--simulated-noise: a run with --no-privacy adds no noise; drop one of the two"
            )
        return jaxcd.NO_PRIVACY
    if epsilon is None:
        raise OptionError(
            "--epsilon is missing: give a total such as --epsilon 1 --delta 1e-6, or --no-privacy"
        )
    if not 0 < epsilon < math.inf:
        raise OptionError(
            f"--epsilon {epsilon:g} is no budget; give a positive number such as 1, or --no-privacy"
        )
    if delta is not None and not 0 <= delta < 1:
        raise OptionError(
            f"--delta {delta:g} is out of range; give 0, or far less than 1 / rows, such as 1e-6"
        )
    known = [member.value for member in Accounting]
    if accounting not in (None, *known):
        raise OptionError(f"--accounting {accounting!r} is unknown; use {' or '.join(known)}")
    if accounting == Accounting.GAUSSIAN.value and not delta:
        raise OptionError(
            "--accounting gaussian needs --delta above 0; give one such as 1e-6, or drop "
            "--accounting"
        )
    return jaxcd.Budget(
        epsilon=epsilon,
        delta=0.0 if delta is None else delta,
        max_rows_per_person=1 if max_rows_per_person is None else max_rows_per_person,
        accounting=None if accounting is None else Accounting(accounting),
        unit=Unit(unit or Unit.ROW),
    )


def ledger(path: Path | None, *, budget: jaxcd.Budget | NoPrivacy) -> jaxcd.LedgerFile | None:
    """The ledger of ``--ledger``, which must be there."""
    if path is None:
        return None
    if isinstance(budget, NoPrivacy):
        raise OptionError(
            "--ledger: a run with --no-privacy is no charge that a ledger can keep; drop one of "
            "the two"
        )
    if not path.is_file():
        if path.is_dir():
            check_there(path, name="--ledger: file", wanted="a ledger file", of="*.ledger")
        raise OptionError(
            f"--ledger: there is no file {str(path)!r}; make one with `jaxcd ledger {path} "
            "--data-set NAME --epsilon E --delta D`"
        )
    found = jaxcd.LedgerFile(path)
    found.check_takes_charges()
    if found.budget.unit is not budget.unit:
        raise OptionError(
            f"--ledger: the unit of {str(path)!r} is a {found.budget.unit.value}, and this run's a "
            f"{budget.unit.value}; give another ledger, made with `jaxcd ledger FILE --unit "
            f"{budget.unit.value} --data-set NAME --epsilon E --delta D`, or, to discover, --unit "
            f"{found.budget.unit.value}"
        )
    own = budget.accounting
    if own is not None and budget.delta > 0 and found.accounting is not own:
        raise OptionError(
            f"--accounting {own.value}: the ledger {str(path)!r} has "
            f"{found.accounting.value}; give --accounting {found.accounting.value}, or another "
            "ledger"
        )
    return found


def algorithm(name: str) -> Algorithm:
    """The search of ``--algorithm``."""
    known = [member.value for member in Algorithm]
    if name.lower() not in known:
        raise OptionError(f"--algorithm {name!r} is unknown; use {', '.join(known)}")
    return Algorithm(name.lower())


def knowledge(file: Path | None) -> Knowledge | None:
    """The background knowledge of ``--knowledge``; the search checks that its names are columns."""
    if file is None:
        return None
    check_there(file, name="--knowledge: file", wanted="a JSON file", of="*.json")
    text = read_text(file, "--knowledge: file")
    try:
        return Knowledge.from_json_dict(parsed(text))
    except (FormatError, OptionError) as error:
        raise type(error)(f"--knowledge: file {str(file)!r}: {error}") from None


def test(name: str) -> Any:
    """The test of ``--test``; None for auto."""
    return _named("test", name, TESTS)


def decider(name: str) -> Any:
    """The decider of ``--mechanism``; None for auto."""
    return _named("mechanism", name, DECIDERS)


def is_auto(name: str) -> bool:
    """Whether ``--test`` or ``--mechanism`` leave the choice open."""
    return _key(name) == "auto"


def _key(name: str) -> str:
    # PascalCase, as in reports and in Python, is understood as well.
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_ ]", "-", name).lower()


def _named(option: str, name: str, known: dict[str, Callable[[], Any]]) -> Any:
    key = _key(name)
    if key == "auto":
        return None
    if key not in known:
        raise OptionError(f"--{option} {name!r} is unknown; use auto, {', '.join(known)}")
    return known[key]()


@dataclass(frozen=True)
class Loaded:
    """Data, where they come from in words, and the true graph where they are a sample from a
    network: the CPDAG, or the PAG.
    """

    data: jaxcd.Dataset | jaxcd.Table
    words: str
    truth: MixedGraph | None
    truth_kind: str = "CPDAG"


@dataclass(frozen=True)
class Source:
    """Where the data comes from: exactly one of ``file``, ``network`` and ``bif``.  hide: columns
    of a network's sample to drop.  table, snapshot: of a file that is not read whole.  encoding: of
    one that is, and a text.
    """

    file: Path | None
    domain: Path | None
    network: str | None
    bif: Path | None
    rows: int | None
    seed: int
    clip: bool
    hide: tuple[str, ...] = ()
    table: str | None = None
    snapshot: str | None = None
    encoding: str = "utf-8"

    @property
    def _stays(self) -> bool:
        return tables.is_table(self.file, table=self.table, snapshot=self.snapshot)

    def __post_init__(self) -> None:
        sources = {"FILE": self.file, "--network": self.network, "--bif": self.bif}
        given = [name for name, value in sources.items() if value is not None]
        if len(given) != 1:
            problem = f"{' and '.join(given)} are given" if given else "no data is given"
            raise OptionError(f"{problem}; give exactly one of FILE, --network NAME and --bif FILE")
        if self.file is not None and self.rows is not None and not self._stays:
            raise OptionError(
                "--rows is for a sample from a network; a file is read whole, so drop it"
            )
        if self.file is not None and self.hide:
            raise OptionError(
                "--hide is for a sample from a network; take the column out of the file, and drop "
                "the option"
            )
        if self.file is None:
            tables.check_no_encoding("a network's sample", self.encoding)
            if self.rows is not None and not self.rows >= 1:
                raise OptionError(f"--rows {self.rows} is too few; give at least 1")
            if self.domain is not None or self.clip:
                option = "--clip" if self.clip else "--domain"
                raise OptionError(
                    f"{option} is for a file; a network declares its own levels, so drop it"
                )

    def load(self, *, budget: jaxcd.Budget | NoPrivacy, pag: bool = False) -> Loaded:
        """Reads or samples the data; a private run refuses a domain that nobody declared before it
        reads a row.

        Args:
            pag: whether a network's true graph is wanted as a PAG; with hidden columns it always is
                one.
        """
        if self.file is not None:
            return self._read(self.file, budget=budget)
        network = _network(self.network, self.bif)
        shown = self._shown(network)
        n_samples = DEFAULT_ROWS if self.rows is None else self.rows
        data = network.sample(n_samples, key=jax.random.key(self.seed))
        name = f"{network.name} without {' and '.join(self.hide)}" if self.hide else network.name
        size = f"{counted(n_samples, 'row')} sampled with seed {self.seed}"
        words = f"{name}, {size}, {counted(len(shown), 'column')}"
        if not (self.hide or pag):
            return Loaded(data, words, network.cpdag())
        return Loaded(data.select(shown), words, dag_to_pag(network.dag, latent=self.hide), "PAG")

    def _shown(self, network: jaxcd.data.BayesianNetwork) -> list[str]:
        """The columns that ``--hide`` leaves."""
        for name in self.hide:
            if name not in network.names:
                raise OptionError(
                    f"--hide {name!r}: {network.name} has no such column; its columns are "
                    f"{shown_list(network.names)}"
                )
            if self.hide.count(name) > 1:
                raise OptionError(f"--hide {name!r} is given twice; give it once")
        shown = [name for name in network.names if name not in self.hide]
        if len(shown) < 2:
            raise OptionError(
                f"--hide leaves {len(shown)} of {network.name}'s columns; leave at least 2"
            )
        return shown

    def _read(self, file: Path, *, budget: jaxcd.Budget | NoPrivacy) -> Loaded:
        private = isinstance(budget, jaxcd.Budget)
        if not (self._stays or file.is_file()):
            raise DataError(f"file {str(file)!r} does not exist; check the path")
        words = shlex.quote(str(file))
        if self.encoding.lower() != "utf-8":
            words += f" --encoding {shlex.quote(self.encoding)}"
        how = _HOW_TO_DECLARE.format(file=words)
        domain = None if self.domain is None else domain_of(self.domain, declared=private)
        if private and domain is None and not self._stays:
            raise PrivacyError(
                "--domain is missing: levels and bounds taken from the data would void the "
                f"guarantee; {how}; "
                "or use --no-privacy"
            )
        if self._stays:
            tables.check_no_encoding(file, self.encoding)
            table = tables.opened(
                file, domain, table=self.table, rows=self.rows, snapshot=self.snapshot
            )
            return Loaded(table, f"{file}, {counted(table.n_samples, 'row')} where they are", None)
        # Without privacy every cell that does not fit is reported; in a private run such an error
        # would tell of a record.
        data = jaxcd.read_csv(
            file, domain=domain, clip=self.clip, strict=not private, encoding=self.encoding
        )
        kind = "" if domain is None or not domain.declared else " of a declared domain"
        unit = budget.unit if isinstance(budget, jaxcd.Budget) else Unit.ROW
        n = counted_records(public_count(data, budget), unit)
        return Loaded(data, f"{file}, {n}, {counted(data.n_columns, 'column')}{kind}", None)


def _network(name: str | None, bif: Path | None) -> jaxcd.data.BayesianNetwork:
    """The network of ``--network`` or, where that is None, of ``--bif``."""
    if name is None:
        assert bif is not None
        return jaxcd.networks.read_bif(bif)
    if name.lower() not in jaxcd.networks.available():
        known = ", ".join(jaxcd.networks.available())
        raise OptionError(f"--network {name!r} is unknown; use {known}, or --bif for a file")
    return jaxcd.networks.load(name)


def public_facts(
    *, domain: Path | None, network: str | None, bif: Path | None, rows: int | None, private: bool
) -> tuple[jaxcd.Domain, int]:
    """A domain and a number of rows, without any data."""
    given = [
        name
        for name, value in (("--domain", domain), ("--network", network), ("--bif", bif))
        if value is not None
    ]
    if len(given) != 1:
        problem = f"{' and '.join(given)} are given" if given else "no domain is given"
        raise OptionError(
            f"{problem}; give exactly one of --domain FILE, --network NAME and --bif FILE"
        )
    if rows is None:
        raise OptionError(
            "--rows is missing: give the number of rows, which is public, such as --rows 10000"
        )
    if not rows >= 1:
        raise OptionError(f"--rows {rows} is too few; give at least 1")
    if domain is None:
        return _network(network, bif).domain, rows
    return domain_of(domain, declared=private), rows


def domain_of(file: Path, *, declared: bool = True) -> jaxcd.Domain:
    """The domain of a file, which is no draft where it has to be ``declared``."""
    found = jaxcd.Domain.read(file)
    if declared and not found.declared:
        raise PrivacyError(
            f'domain file {str(file)!r} is a draft taken from data ("declared": false); check '
            'every level and bound, then set "declared" to true'
        )
    return found


def check_seed(seed: int, *, has_use: bool = True) -> None:
    """Refuses what is no seed, and a seed that nothing would use."""
    if not 0 <= seed < 2**63:
        raise OptionError(f"--seed {seed} is not a seed; use a whole number from 0 to 2**63 - 1")
    if seed and not has_use:
        raise OptionError("--seed is for --simulated-noise; secure noise has no seed, so drop it")


def randomness(*, seed: int, simulated: bool) -> tuple[NoiseSource | None, jax.Array]:
    """The noise source (None: secure) and the key of randomised tests; the sample has the seed's
    own key.
    """
    key = jax.random.key(seed)
    noise = jaxcd.SimulatedNoise(jax.random.fold_in(key, 1)) if simulated else None
    return noise, jax.random.fold_in(key, 2)
