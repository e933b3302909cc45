"""What leaves the house: files, screens, errors and objects, under hostile data, hostile names and
hostile sizes.

Answers that do not depend on the data (noise that drowns every statistic) must give outsides that
do not depend on it either.
"""

from __future__ import annotations

import csv
import gc
import json
import math
import pickle
import shutil
import types
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.citests import PreparedTest, Query
from jaxcd.citests.tables import PreparedTables
from jaxcd.cli import main
from jaxcd.data.rows import Codes
from jaxcd.decisions import DecisionRun
from jaxcd.errors import DomainError, OptionError
from jaxcd.privacy import (
    AboveThreshold,
    Accountant,
    Ledger,
    NoiseSampler,
    NoiseSource,
    SecureNoise,
    Sensitive,
)
from jaxcd.queries import Queue, Session
from tests.catalogue import KINDS, MARGIN_TESTS, PRIVATE_DECIDERS, DeciderRow, KindRow, discrete
from tests.helpers import coded, numbers, simulated

FAR = 2**60
KEY = jax.random.key(2)


class _Drowning(NoiseSampler):
    """Noise so large that it alone decides; what it decides comes from a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._open: set[int] = set()

    @property
    def secure(self) -> bool:
        return True

    def _signs(self, size: int) -> np.ndarray:
        signs = np.where(self._rng.random(size) < 0.5, -4 * FAR, 4 * FAR)
        return signs + self._rng.permutation(size) * 2**50  # no two of a vector are alike

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:
        return self._signs(size)

    def discrete_gaussian(self, sigma: float, size: int, *, index: int) -> np.ndarray:
        return self._signs(size)

    rounded_gaussian = discrete_gaussian

    def geometric(self, scale: float, size: int, *, index: int) -> np.ndarray:
        # the threshold: out of reach of every statistic, but not of the noise
        if index not in self._open:
            self._open.add(index)
            return np.full(size, FAR // 4)
        return np.where(self._rng.random(size) < 0.3, FAR, 0)

    def subset(self, n: int, m: int, *, index: int) -> np.ndarray:
        mask = np.zeros(n, dtype=bool)
        mask[self._rng.permutation(n)[:m]] = True
        return mask

    def gumbel_max(self, scores: np.ndarray, scale: float, *, index: int) -> int:
        return int(self._rng.integers(len(scores)))


class Drowning(NoiseSource):
    """Starts a drowning sampler from a seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @property
    def secure(self) -> bool:
        return True

    def start(self) -> NoiseSampler:
        return _Drowning(self._seed)


LEVELS = (2, 3, 2, 4)
NAMES = ("smoke", "stage", "<b>&\"x'</b>", "$\\alpha_{")


def tables(n: int = 64) -> dict[str, np.ndarray]:
    """Data sets of the same shape that have nothing in common."""
    rng = np.random.default_rng(0)
    return {
        "constant": np.zeros((n, 4), dtype=np.int64),
        "copies": np.tile(rng.integers(0, 2, (n, 1)), (1, 4)),
        "independent": np.stack([rng.integers(0, k, n) for k in LEVELS], axis=1),
        "sorted": np.sort(np.stack([rng.integers(0, k, n) for k in LEVELS], axis=1), axis=0),
        "one apart": np.vstack([np.zeros((n - 1, 4), dtype=np.int64), [[k - 1 for k in LEVELS]]]),
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tables as csv files of one name in different folders, and their domain file."""
    folder = tmp_path_factory.mktemp("tables")
    domain = jaxcd.Domain(
        [(name, jaxcd.Categorical(tuple(range(k)))) for name, k in zip(NAMES, LEVELS, strict=True)]
    )
    domain.write(folder / "domain.json")
    paths = {"domain": folder / "domain.json"}
    for name, codes in tables().items():
        (folder / name).mkdir()
        paths[name] = folder / name / "data.csv"
        with paths[name].open("w", newline="", encoding="utf-8") as handle:
            csv.writer(handle).writerows([NAMES, *codes.tolist()])
    return paths


@pytest.mark.parametrize(
    "mechanism",
    (
        "levelwise-gaussian sparse-vector sieve-and-examine noisy-threshold "
        "noisy-threshold-gaussian auto"
    ).split(),
)
def test_screens_and_files_do_not_depend_on_the_data(
    mechanism: str,
    files: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """The command line, byte for byte: stdout, stderr, exit code and every file of the report."""
    outsides = []
    for seed, (json_too, extra) in enumerate([(False, ["--progress"]), (True, [])]):
        monkeypatch.setattr(SecureNoise, "start", lambda self, seed=seed: _Drowning(seed))
        for name in list(tables())[: 2 if json_too else None]:
            monkeypatch.chdir(files[name].parent)
            out = tmp_path / "report"  # one name, because a report says its command
            arguments = [
                "discover",
                "data.csv",
                "--domain",
                str(files["domain"]),
                "--epsilon",
                "2",
                "--delta",
                "1e-3",
            ]
            arguments += [
                "--mechanism",
                mechanism,
                "--out",
                str(out),
                *extra,
                *(["--json"] if json_too else []),
            ]
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                code = main(arguments)
            shown = capsys.readouterr()
            written = {path.name: path.read_bytes() for path in sorted(out.iterdir())}
            shutil.rmtree(out)
            screens = [text.replace(str(out), "OUT") for text in (shown.out, shown.err)]
            outsides.append((seed, code, *screens, [str(w.message) for w in warned], written))
            if json_too:
                json.loads(shown.out)
    for seed in (0, 1):
        first, *others = [outside for outside in outsides if outside[0] == seed]
        assert first[1] == 0 and first[5].keys() >= {"graph.json", "privacy.json", "report.html"}
        assert all(outside == first for outside in others)
        page = first[5]["report.html"].decode()
        assert "<b>&" not in page and "&lt;b&gt;&amp;" in page


def reachable(root: Any) -> list[Any]:
    """Every object that a result holds on to, without the code of the program."""
    seen: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(
            item, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
        ):
            continue
        seen[id(item)] = item
        waiting += gc.get_referents(item)
    return list(seen.values())


@pytest.mark.parametrize("row", PRIVATE_DECIDERS, ids=str)
def test_results_hold_on_to_no_data(row: DeciderRow):
    """Nothing that has seen the data is reachable from a result, and no array of the data's
    length.
    """
    n = 67
    data = row.columns(np.random.default_rng(1).integers(0, 2, (n, 4)), 2, 2, 2, 2)
    options: dict[str, Any] = {"test": row.test, "budget": jaxcd.Budget(3.0, 1e-3), "key": KEY}
    results = [
        jaxcd.pc(
            data, decider=row.decider, **options, max_level=None if row.data is discrete else 1
        ),
        jaxcd.ci_test(data, "v0", "v1", **options),
    ]
    if row.data is discrete:
        results.append(jaxcd.tree_pc(data, **options))
    for result in results:
        held = reachable(result)
        insiders = (
            jaxcd.Dataset,
            Session,
            Queue,
            Sensitive,
            PreparedTest,
            DecisionRun,
            Accountant,
            Ledger,
            AboveThreshold,
            NoiseSampler,
            BaseException,
            types.FrameType,
        )
        assert not [type(item) for item in held if isinstance(item, insiders)]
        assert all(
            n not in item.shape for item in held if isinstance(item, (np.ndarray, jax.Array))
        )
        assert pickle.loads(pickle.dumps(result)) is not None


def test_unpaid_numbers_do_not_slip_out():
    """Nothing but ``expose`` turns a sensitive array into text, numbers, truth values or another
    array.
    """
    secret = Sensitive(np.array([0.123456, 2.0]))
    for look in (
        repr,
        str,
        format,
        lambda s: f"{s!r} {s}",
        lambda s: repr([s, {"a": s}]),
        lambda s: repr(s[0]),
    ):
        assert "0.12" not in look(secret) and "2.0" not in look(secret)
    single = secret[0]
    for convert in (float, int, complex, np.float64):
        pytest.raises((TypeError, ValueError), convert, single)
    for value in (secret, single):
        with pytest.raises((TypeError, ValueError, AttributeError, IndexError)):
            np.asarray(value, dtype=np.float64)
        with pytest.raises(TypeError):
            _ = value < 1
        assert not hasattr(value, "__dict__") and not hasattr(value, "__array__")


SHAPES = [
    ("two equal rows", 2, (2, 2, 2), "equal"),
    ("two rows", 2, (2, 3, 2), "random"),
    ("one level each", 5, (1, 1, 1), "equal"),
    ("one level and others", 40, (1, 2, 1, 3), "random"),
    ("all rows equal", 300, (3, 3, 3), "equal"),
    ("300 levels and 20 rows", 20, (300, 300), "random"),
    ("one row apart", 50, (2, 2, 2), "apart"),
]


@pytest.mark.parametrize(
    ("n", "levels", "kind"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_degenerate_data_end_normally_and_in_silence(n: int, levels: tuple[int, ...], kind: str):
    rng = np.random.default_rng(0)
    codes = np.stack(
        [rng.integers(0, k, n) if kind == "random" else np.zeros(n, dtype=int) for k in levels],
        axis=1,
    )
    if kind == "apart":
        codes[-1] = [k - 1 for k in levels]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # of public numbers: delta and the number of rows
        warnings.simplefilter("ignore", jaxcd.errors.PrivacyWarning)
        for place, row in enumerate(PRIVATE_DECIDERS):
            data, test = row.columns(codes, *levels), row.tests[place % len(row.tests)]
            if n < row.least_rows:
                continue
            for budget in (jaxcd.Budget(1e-6, 1e-6), jaxcd.Budget(1e4, 0.5)):
                result = jaxcd.pc(
                    data,
                    test=test,
                    decider=row.decider,
                    budget=budget,
                    key=KEY,
                    noise=simulated(n),
                    max_level=None if row.data is discrete else 1,
                )
                assert result.spent.epsilon <= budget.epsilon
        for test in MARGIN_TESTS:
            data = coded(codes, *levels)
            result = jaxcd.ci_test(data, "v0", "v1", test=test, budget=jaxcd.Budget(1.0), key=None)
            assert math.isfinite(result.margin) and result.statistic is None
            assert result.pvalue is None


def test_only_the_number_of_answers_shows_in_the_ledger():
    """Labels, prices and their order are those of the answers: the same noisy answers, the same
    rows.
    """
    rows = []
    for codes in tables().values():
        for seed, row in enumerate(PRIVATE_DECIDERS):
            result = jaxcd.pc(
                row.columns(codes, *LEVELS),
                test=row.tests[1 % len(row.tests)],
                decider=row.decider,
                budget=jaxcd.Budget(1.0, 1e-3),
                key=KEY,
                noise=Drowning(seed),
                max_level=None if row.data is discrete else 1,
            )
            rows.append(
                (seed, result.info["ledger"], result.spent, result.exhausted, result.info["levels"])
            )
    for seed in range(len(PRIVATE_DECIDERS)):
        first, *others = [row for row in rows if row[0] == seed]
        assert all(row == first for row in others)


def test_kendall_on_numeric_columns_is_refused_before_the_budget_is_spent():
    rng = np.random.default_rng(0)
    column = rng.random((200, 1))
    data = jaxcd.Dataset.from_array(
        np.tile(column, (1, 3)), names=["a", "b", "c"], domain=numbers("abc", 0, 1)
    )
    charged: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        charge = Ledger.charge
        patch.setattr(
            Ledger, "charge", lambda ledger, event: charged.append(1) or charge(ledger, event)
        )
        try:
            jaxcd.pc(
                data,
                test=jaxcd.KendallTau(),
                decider=jaxcd.SparseVector(),
                budget=jaxcd.Budget(50.0),
                key=None,
                noise=simulated(),
            )
        except (DomainError, OptionError):
            if charged:
                raise


# ---- found by these attacks, and repaired


def test_admissible_queries_fit_into_memory():
    """Two binary columns given two wide ones: tables must not be padded to the widest column on all
    sides.
    """
    prepared = PreparedTables(
        Codes(np.zeros((10, 4), dtype=np.int32), (2, 2, 250, 250)),
        (2, 2, 250, 250),
        lambda t, a: None,
    )  # type: ignore[arg-type, return-value]
    query = Query(0, 1, (2, 3))
    bucket = prepared.bucket(query)
    assert prepared.admissible(query)
    assert (
        prepared.tables(bucket, [query]).size
        == np.prod(bucket[1:]) * prepared.batch_size(bucket)
        < 2**24
    )
    assert prepared.tables(bucket, [query])[0].sum() == 10


@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_no_level_makes_an_error_depend_on_the_data():
    """At alpha = 5e-324 a constant column has the margin NaN, refused; other data have an
    answer.
    """
    domain = jaxcd.Domain([("a", jaxcd.Categorical((0, 1))), ("b", jaxcd.Categorical((0, 1)))])
    mixed = np.stack([np.arange(20) % 2, np.arange(20) // 2 % 2], axis=1)
    for codes in (mixed, np.zeros((20, 2), dtype=int)):
        try:
            data = coded(codes, domain)
            jaxcd.ci_test(
                data,
                "a",
                "b",
                test=jaxcd.CovarianceNorm(),
                budget=jaxcd.Budget(1.0),
                key=None,
                alpha=5e-324,
            )
        except OptionError:
            assert codes is mixed  # a refusal must meet the first data set already
            return


def test_a_sieve_over_a_test_without_subsets_is_refused_before_the_budget_is_spent():
    rng = np.random.default_rng(0)
    domain = numbers("ab", -1, 1)
    data = jaxcd.Dataset.from_array(rng.uniform(-1, 1, (30, 2)), names=["a", "b"], domain=domain)
    charged: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        charge = Ledger.charge
        patch.setattr(
            Ledger, "charge", lambda ledger, event: charged.append(1) or charge(ledger, event)
        )
        try:
            jaxcd.pc(
                data,
                test=jaxcd.BoundedRCIT(n_features=4, n_permutations=19),
                decider=jaxcd.SieveAndExamine(rate=0.5),
                budget=jaxcd.Budget(1.0),
                key=jax.random.key(0),
                noise=simulated(),
            )
        except (DomainError, OptionError):
            if charged:
                raise


def test_a_single_private_test_on_ranks():
    rng = np.random.default_rng(0)
    domain = numbers("ab", -1, 1)
    data = jaxcd.Dataset.from_array(rng.uniform(-1, 1, (300, 2)), names=["a", "b"], domain=domain)
    budget = jaxcd.Budget(1.0, 1e-6)
    result = jaxcd.ci_test(
        data, "a", "b", test=jaxcd.StratifiedRanks(), budget=budget, key=None, noise=simulated()
    )
    assert math.isfinite(result.margin)


# ---- settings of the process


@pytest.mark.parametrize("said", ["raise", "warn", "print", "call"])
@pytest.mark.parametrize("row", KINDS, ids=lambda row: type(row.kind).__name__)
def test_what_numpy_is_told_of_underflow_tells_nothing_of_a_row(row: KindRow, said: Any, capfd):
    """A weight that underflows is one of an outlying row: nothing may be said of it, whatever the
    application has told NumPy.
    """
    data = row.data(40)
    numeric = data.numeric.copy()
    numeric[0] = 5  # the bound
    data = jaxcd.Dataset(data.domain, data.discrete, numeric)
    told: list[Any] = []

    def tell(*what: Any) -> None:
        told.append(what)

    with warnings.catch_warnings(record=True) as warned, np.errstate(all=said, call=tell):
        warnings.simplefilter("always")
        jaxcd.discover(data, budget=jaxcd.Budget(5.0, 1e-6), key=None, noise=simulated(0))
        jaxcd.release(data, row.kind, budget=jaxcd.Budget(5.0, 1e-6), noise=simulated(0))
        assert np.geterr()["under"] == said
    assert not told and not [each for each in warned if each.category is RuntimeWarning]
    assert capfd.readouterr() == ("", "")
