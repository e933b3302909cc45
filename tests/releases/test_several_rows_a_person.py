"""The unit of a person: weights are exact, sensitivities hold whatever a person's rows are, nulls
never understate the spread, and everything that carries a promise names its unit.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import jaxcd
from jaxcd.cli.app import app, main
from jaxcd.errors import FormatError, OptionError, PrivacyError
from jaxcd.ops import tilted_moments as tilted
from jaxcd.ops.people import PERSON_UNITS, person_weights, weighted_bincount, weighted_sets
from jaxcd.privacy import Ledger, Unit
from jaxcd.privacy.certificate import certificate_digest
from jaxcd.releases.features.feature_covariances import (
    cosine_features,
    feature_moments,
    feature_sensitivity,
)

LEVELS = (2, 3, 2)
DOMAIN = jaxcd.Domain({f"v{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(LEVELS)})
ROWS = np.array(list(itertools.product(*map(range, LEVELS))))
PERSON = jaxcd.Budget(1.0, 1e-6, unit="person")
KINDS = (jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear())


def table(parts: list[np.ndarray], domain: jaxcd.Domain = DOMAIN) -> jaxcd.Dataset:
    """A data set of people, each with their rows."""
    people = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    rows = np.concatenate(parts)
    if domain.is_discrete:
        return jaxcd.Dataset(domain, rows.astype(np.int32), np.empty((len(rows), 0)), people=people)
    return jaxcd.Dataset(domain, np.empty((len(rows), 0), dtype=np.int32), rows, people=people)


def people(n: int, seed: int = 0, most: int = 12) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [ROWS[rng.integers(len(ROWS), size=rng.integers(1, most + 1))] for _ in range(n)]


# Weights
# --------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 7), min_size=1, max_size=60))
def test_the_weights_of_a_person_add_up_exactly_and_differ_by_one_unit(ids: list[int]) -> None:
    numbers = np.unique(ids, return_inverse=True)[1]
    weights = person_weights(numbers)
    for person in range(numbers.max() + 1):
        own = weights[numbers == person]
        assert int(own.sum()) == PERSON_UNITS
        assert own.max() - own.min() <= 1 and own.min() >= 0
        assert (np.diff(own) <= 0).all()  # the first rows have the larger ones


def test_more_rows_than_units_still_add_up() -> None:
    weights = person_weights(np.zeros(PERSON_UNITS + 5, dtype=np.int64))
    assert int(weights.sum()) == PERSON_UNITS and weights.min() == 0


@given(st.integers(0, 10**6))
def test_weighted_tables_are_the_sums_of_fractions(seed: int) -> None:
    data = table(people(6, seed))
    weights = person_weights(data.people)
    for depth in (1, 2, 3):
        for columns in itertools.combinations(range(3), depth):
            found = weighted_sets(data.discrete, LEVELS, np.array([columns]), weights)[0]
            truth: dict[tuple[int, ...], Fraction] = {}
            for row, weight in zip(data.discrete[:, columns], weights, strict=True):
                cell = tuple(int(level) for level in row)
                truth[cell] = truth.get(cell, Fraction(0)) + Fraction(int(weight), PERSON_UNITS)
            for cell in itertools.product(*(range(LEVELS[j]) for j in columns)):
                assert Fraction(int(found[cell]), PERSON_UNITS) == truth.get(cell, 0)
            assert found.sum() == data.n_people * PERSON_UNITS


# Sensitivity
# --------------------------------------------------------------------------------------------------

PARTS = st.lists(
    st.lists(st.integers(0, len(ROWS) - 1), min_size=1, max_size=9), min_size=1, max_size=4
)


@given(PARTS, *[st.lists(st.integers(0, len(ROWS) - 1), min_size=1, max_size=60)] * 2)
@settings(max_examples=300)
def test_replacing_a_person_moves_a_table_by_no_more_than_is_stated(others, one, other) -> None:
    counts = []
    for person in (one, other):
        data = table([ROWS[part] for part in [*others, person]])
        cells = np.ravel_multi_index(tuple(data.discrete.T), LEVELS)
        exact = weighted_bincount(cells, len(ROWS), person_weights(data.people))
        assert exact.dtype == np.int64
        counts.append([int(count) for count in exact])
    change = [a - b for a, b in zip(*counts, strict=True)]
    assert sum(map(abs, change)) <= 2 * PERSON_UNITS
    assert sum(step * step for step in change) <= 2 * PERSON_UNITS**2


def test_the_stated_sensitivity_is_reached_by_one_row_against_fifty() -> None:
    counts = []
    for person in (ROWS[:1], np.repeat(ROWS[-1:], 50, axis=0)):
        data = table([*people(5), person])
        cells = np.ravel_multi_index(tuple(data.discrete.T), LEVELS)
        counts.append(weighted_bincount(cells, len(ROWS), person_weights(data.people)))
    assert np.abs(counts[0] - counts[1]).sum() == 2 * PERSON_UNITS


@given(st.integers(0, 10**6), st.integers(1, 50), st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_replacing_a_person_moves_moments_and_features_by_no_more_than_is_stated(
    seed: int, here: int, there: int
) -> None:
    rng = np.random.default_rng(seed)
    others = rng.normal(size=(7, 3)) * 10.0 ** rng.uniform(-2, 2)
    rate, anchor = float(rng.uniform(0.05, 2)), 1.0
    moments, features = [], []
    for k in (here, there):
        own = np.repeat(np.eye(3)[[rng.integers(3)]], k, axis=0) * rng.uniform(0.2, 8)
        own += rng.normal(size=own.shape) * rng.choice([0.0, 1.0])
        values = np.concatenate([others, own])
        weights = person_weights(np.array([*(0, 0, 0, 1, 2, 2, 3), *[4] * k]))
        moments.append(tilted.pack(tilted.gram(values, rate=rate, anchor=anchor, weights=weights)))
        ranks = np.clip(np.abs(values) % 1.0, 0, 1)
        vectors = [cosine_features(u, n_features=3, decay=0.5) for u in ranks.T]
        features.append(tilted.pack(feature_moments(vectors, weights, anchor=0.5)))
    moved = np.linalg.norm(moments[0] - moments[1])
    assert moved <= tilted.gram_sensitivity(rate=rate, anchor=anchor, n_columns=3)
    moved = np.linalg.norm(features[0] - features[1])
    assert moved <= feature_sensitivity((3, 3, 3), anchor=0.5)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_weighted_moments_are_exact(seed: int) -> None:
    """Against whole numbers of any size: nothing is rounded before the one conversion."""
    rng = np.random.default_rng(seed)
    numbers = np.sort(rng.integers(0, 40, 5_000)) % 37
    numbers = np.unique(numbers, return_inverse=True)[1]
    weights = person_weights(numbers)
    steps = rng.integers(-(2**18), 2**18 + 1, (len(numbers), 2)).astype(np.float64)
    steps[: rng.integers(1, 5_000)] = 2.0**18
    whole = tilted.ExactSum((2, 2))
    for start in range(0, len(steps), 4096):
        whole.add_products(steps[start : start + 4096], weights[start : start + 4096])
    exact = [
        [
            sum(
                int(w) * int(a) * int(b)
                for w, a, b in zip(weights, steps[:, i], steps[:, j], strict=True)
            )
            for j in range(2)
        ]
        for i in range(2)
    ]
    assert whole.value().tolist() == [[float(part) for part in row] for row in exact]


# The releases
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_release_counts_people(kind, delta: float, tmp_path: Path) -> None:
    data = table(people(60))
    budget = jaxcd.Budget(1e5, delta, unit="person")
    bought = jaxcd.release(data, kind, budget=budget)
    assert bought.n_samples == 60 and bought.cost.unit is Unit.PERSON and bought.cost.proven
    counts = data.counts([(1,)], by_person=True)[0] / PERSON_UNITS
    found = bought.values.sum(axis=(0, 2)) if kind == KINDS[0] else bought.table((1,))
    # a histogram is rounded to whole people; the model of LogLinear is a sample
    assert np.abs(found - counts).max() < {0: 3.0, 1: 0.05, 2: 1.5}[KINDS.index(kind)]
    read = jaxcd.Release.load(bought.save(tmp_path / "release.npz"))
    assert read.cost == bought.cost and read.n_samples == 60
    certificate = bought.certificate()
    assert jaxcd.verify(certificate).holds
    assert certificate["guarantee"]["unit"] == "one person, with however many rows"
    assert certificate["public"]["n_samples"] == 60
    assert certificate["public"]["counts"] == "people"
    assert "person" in str(bought.cost)


def test_one_row_a_person_is_the_release_of_rows() -> None:
    """With k = 1 for everybody the statistics are those of the rows, bit for bit."""
    rows = ROWS[np.random.default_rng(3).integers(len(ROWS), size=200)]
    by_person = table(list(rows[:, None, :]))
    by_row = jaxcd.Dataset.from_codes(rows.astype(np.int32), domain=DOMAIN)
    noise = jaxcd.SimulatedNoise(jax.random.key(5))
    for kind in KINDS[1:]:
        one = jaxcd.release(by_person, kind, budget=PERSON, noise=noise)
        other = jaxcd.release(by_row, kind, budget=jaxcd.Budget(1.0, 1e-6), noise=noise)
        assert one.interactions.keys() == other.interactions.keys()
        for columns, values in one.interactions.items():
            assert values.tolist() == other.interactions[columns].tolist()


@pytest.mark.parametrize(
    "kind",
    [
        jaxcd.SecondMoments(),
        jaxcd.SecondMoments(centres={"a": 0.0, "b": 0.0}, scales={"a": 1.0, "b": 1.0}),
        jaxcd.Tetrachoric(),
        jaxcd.Features(),
    ],
)
def test_numeric_releases_weigh_people(kind) -> None:
    """Half of the people have 40 rows, in which a = b, and half one row, in which a = -b: by rows
    the columns agree, by people they do not depend on each other.
    """
    rng = np.random.default_rng(0)
    parts = []
    for i in range(4_000):
        a = rng.normal(size=(40 if i % 2 else 1, 1))
        parts.append(np.clip(np.column_stack([a, a if i % 2 else -a]), -5, 5))
    domain = jaxcd.Domain({"a": jaxcd.Numeric(-5, 5), "b": jaxcd.Numeric(-5, 5)})
    budget = jaxcd.Budget(50.0, 1e-6, unit="person")
    bought = jaxcd.release(table(parts, domain), kind, budget=budget)
    assert bought.n_samples == 4_000 and bought.cost.proven
    covariance = bought.covariance
    size = covariance[0, -1] if kind != jaxcd.Features() else covariance[0, bought.sizes[0]]
    assert abs(size) < 0.12 * covariance[0, 0]
    assert jaxcd.verify(bought.certificate()).holds


# What is refused
# --------------------------------------------------------------------------------------------------


def test_budgets_say_their_unit() -> None:
    assert PERSON.unit is Unit.PERSON and jaxcd.Budget(1.0, unit=Unit.ROW) == jaxcd.Budget(1.0)
    assert "unit" not in repr(jaxcd.Budget(1.0))
    with pytest.raises(OptionError, match="unit must be 'row' or 'person', got 'house'"):
        jaxcd.Budget(1.0, unit="house")
    with pytest.raises(OptionError, match="leave one of the two out"):
        jaxcd.Budget(1.0, unit="person", max_rows_per_person=3)


def test_a_unit_that_the_data_does_not_declare_is_refused_and_the_reverse() -> None:
    data = table(people(50))
    rows = jaxcd.Dataset.from_codes(data.discrete, domain=DOMAIN)
    with pytest.raises(PrivacyError, match="declares no column that tells people apart"):
        jaxcd.release(rows, jaxcd.Histogram(), budget=PERSON)
    with pytest.raises(PrivacyError, match="its unit is a row"):
        jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0))
    several = jaxcd.Budget(1.0, max_rows_per_person=12)
    assert jaxcd.release(data, jaxcd.Histogram(), budget=several).n_samples == data.n_samples
    one = jaxcd.Dataset(DOMAIN, data.discrete, data.numeric, people=np.zeros(data.n_samples, int))
    with pytest.raises(OptionError, match="all rows are of one person"):
        jaxcd.release(one, jaxcd.Histogram(), budget=PERSON)


def test_tests_on_rows_are_refused_and_so_is_a_kind_that_does_not_say_that_it_takes_people() -> (
    None
):
    data = table(people(50))
    refused = [
        lambda: jaxcd.pc(
            data,
            test=jaxcd.CovarianceNorm(),
            decider=jaxcd.NoisyThreshold(),
            budget=PERSON,
            key=None,
        ),
        lambda: jaxcd.tree_pc(data, test=jaxcd.CovarianceNorm(), budget=PERSON, key=None),
        lambda: jaxcd.ci_test(data, "v0", "v1", test=jaxcd.CovarianceNorm(), budget=PERSON),
        lambda: jaxcd.discover(data, budget=PERSON, key=None, algorithm=jaxcd.Algorithm.PC),
        lambda: jaxcd.discover(data, budget=PERSON, key=None, test=jaxcd.CovarianceNorm()),
        lambda: jaxcd.reci(
            np.arange(50.0), np.arange(50.0), budget=PERSON, bounds=((0, 50), (0, 50))
        ),
    ]
    for call in refused:
        with pytest.raises(OptionError, match="proved for releases only"):
            call()

    class Rows(type(KINDS[0]).__mro__[1]):  # ReleaseKind, which does not take people by itself
        check = plan = buy = lambda self, *arguments, **options: None

    with pytest.raises(OptionError, match="proved for releases only"):
        Rows().release(data, budget=PERSON)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_discover_and_recommend_choose_a_release(delta: float) -> None:
    budget = jaxcd.Budget(1.0, delta, unit="person")
    mixed = jaxcd.Domain({"a": jaxcd.Numeric(0, 1), "b": jaxcd.Categorical((0, 1))})
    numeric = jaxcd.Domain({"a": jaxcd.Numeric(0, 1), "b": jaxcd.Numeric(0, 1)})
    for domain in (DOMAIN, *((mixed, numeric) if delta else ())):
        found = jaxcd.recommend(domain, 5_000, budget=budget)
        assert found.kind is not None and found.kind.takes_people, domain
        assert " rows is noise" not in str(found)
    if delta:
        found = jaxcd.recommend(numeric, 5_000, budget=budget, linear=True)
        assert found.kind == jaxcd.SecondMoments()
    run = jaxcd.discover(table(people(60)), budget=budget, key=None)
    assert run.cost.unit is Unit.PERSON and run.info["n_samples"] == 60


def test_runs_that_count_rows_say_that_a_persons_rows_repeat() -> None:
    """Four independent columns, each person's row twenty times: pairs are joined by chance."""
    names = ["v0", "v1", "v2", "v3"]
    rows = np.random.default_rng(0).integers(2, size=(300, 4)).astype(object)
    ids = np.array([f"P{i}" for i in range(300)], dtype=object)
    columns = {name: jaxcd.Categorical((0, 1)) for name in names}
    data = jaxcd.Dataset.from_array(
        np.repeat(np.column_stack([rows, ids]), 20, axis=0),
        names=[*names, "id"],
        domain=jaxcd.Domain(columns, person="id"),
    )
    repeats = "several rows of one person (column 'id') count as if they were of several people"

    def bought(budget: jaxcd.Budget | jaxcd.privacy.NoPrivacy) -> jaxcd.Release:
        return jaxcd.release(data, jaxcd.Histogram(), budget=budget)

    run = jaxcd.search(bought(jaxcd.NO_PRIVACY))
    assert run.graph.n_edges > 2 and run.info["warnings"][0].startswith(repeats)
    assert run.info["warnings"][0].endswith("take one row of each person, as a check")
    of_rows = bought(jaxcd.Budget(1.0, 1e-6, max_rows_per_person=20))
    assert jaxcd.search(of_rows).info["warnings"][0].startswith(repeats)
    graph = jaxcd.MixedGraph.from_edges(names, ["v0 --> v1"])
    found = jaxcd.effect(of_rows, treatment="v0", outcome="v1", graph=graph)
    assert "each row is of another person" in found.assumptions
    assert "warnings" not in jaxcd.search(bought(PERSON)).info


@pytest.mark.parametrize("n_people", [60, 5_000])
@pytest.mark.parametrize(
    ("column", "n_columns"),
    [
        (jaxcd.Categorical(("n", "y")), 4),
        (jaxcd.Categorical(("n", "y")), 30),
        (jaxcd.Categorical(tuple(range(40))), 9),
        (jaxcd.Categorical(("n", "y")), 200),
        (jaxcd.Numeric(0, 1), 4),
        (jaxcd.Numeric(0, 1), 60),
        (jaxcd.Numeric(0, 1), 200),
    ],
)
def test_advice_for_people_does_not_call_them_rows(
    column: jaxcd.Numeric | jaxcd.Categorical, n_columns: int, n_people: int
) -> None:
    domain = jaxcd.Domain({f"x{j}": column for j in range(n_columns)})
    for linear in {False, not column.is_discrete}:
        words = str(jaxcd.recommend(domain, n_people, budget=PERSON, linear=linear))
        # what is said of the rows of a person, and of tests on rows
        for meant in ("with several rows", "have several rows", "sums over rows", "tests on rows"):
            words = words.replace(meant, "")
        assert not re.search(r"\b(rows?|records?)\b", words), words


# Ledgers, files and the command line
# --------------------------------------------------------------------------------------------------


def test_ledgers_of_two_units_do_not_stand_under_each_other(tmp_path: Path) -> None:
    data, path = table(people(60)), tmp_path / "people.ledger"
    total = jaxcd.LedgerFile(path, data_set="people", budget=jaxcd.Budget(2.0, 1e-6, unit="person"))
    jaxcd.release(data, jaxcd.Histogram(), budget=PERSON, ledger=total)
    again = jaxcd.LedgerFile(path)
    assert again.budget.unit is Unit.PERSON and again.spent.epsilon == 1.0
    assert again.certificate()["guarantee"]["unit"] == "one person, with however many rows"
    assert jaxcd.verify(again.certificate()).holds
    rows = jaxcd.Dataset.from_codes(data.discrete, domain=DOMAIN)
    with pytest.raises(OptionError, match="its unit is a person"):
        jaxcd.release(rows, jaxcd.Histogram(), budget=jaxcd.Budget(0.1), ledger=again)
    with pytest.raises(OptionError, match="its unit is a row"):
        Ledger(PERSON, under=Ledger(jaxcd.Budget(3.0, 1e-6)))
    assert again.spent.epsilon == 1.0
    # an edition that knows no people would charge promises about rows to it
    assert path.read_text().startswith("jaxcd-ledger 3 ")
    path.write_text(path.read_text().replace("jaxcd-ledger 3 ", "jaxcd-ledger 1 "))
    with pytest.raises(FormatError):
        jaxcd.LedgerFile(path)


def test_a_household_is_a_group_of_people() -> None:
    cost = Ledger(PERSON).guarantee.for_group(3)
    assert cost.unit is Unit.PERSON and "3 people" in cost.reason and cost.epsilon > 3


def test_groups_of_a_certificate_are_people() -> None:
    content = jaxcd.release(table(people(60)), jaxcd.Histogram(), budget=PERSON).certificate()
    assert [set(group) for group in content["groups"]] == [{"people", "epsilon", "delta"}] * 6
    assert content["groups"][0]["people"] == 2
    found = next(check for check in jaxcd.verify(content).checks if check.what == "groups")
    assert found.holds and found.words.startswith("up to 50 people: epsilon")
    # files of earlier versions say rows
    for group in content["groups"]:
        group["rows"] = group.pop("people")
    content["digest"] = certificate_digest(content)
    assert jaxcd.verify(content).holds


def test_a_certificate_of_a_made_up_unit_does_not_verify() -> None:
    content = jaxcd.release(table(people(60)), jaxcd.Histogram(), budget=PERSON).certificate()
    content["guarantee"]["max_rows_per_person"] = 4
    assert not jaxcd.verify(content).holds


def messy(folder: Path, extra: int) -> tuple[Path, Path]:
    """A csv of 300 people, the last of them with so many rows, and its domain file."""
    rng = np.random.default_rng(1)
    lines = ["pid,smoker,cough"]
    for person in range(300):
        for _ in range(1 + person % 4 if person < 299 else extra):
            smoker = rng.random() < 0.5 if person < 299 else True
            lines.append(f"p{person},{'yes' if smoker else 'no'},{'yes' if smoker else 'no'}")
    data, domain = folder / f"data{extra}.csv", folder / "domain.json"
    data.write_text("\n".join(lines) + "\n")
    levels = {"type": "categorical", "levels": ["no", "yes"]}
    columns = {"pid": {"person": True}, "smoker": levels, "cough": levels}
    domain.write_text(json.dumps({"declared": True, "columns": columns}))
    return data, domain


def test_the_command_line_names_the_unit_and_never_the_number_of_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    for extra in (1, 50):
        data, domain = messy(tmp_path, extra)
        out = tmp_path / f"out{extra}"
        words = ["discover", str(data), "--domain", str(domain), "--epsilon", "20"]
        done = CliRunner().invoke(app, [*words, "--unit", "person", "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert "300 people" in done.output and "rows" not in done.output.split("\n")[0]
        certificate = json.loads((out / "privacy.json").read_text())
        assert certificate["guarantee"]["unit"] == "one person, with however many rows"
        assert certificate["public"]["n_samples"] == 300
        page = (out / "report.html").read_text()
        assert "one person, with however many rows" in page
        assert "The number of people" in page and "any one row were" not in page
        seen.append(done.output.replace(f"data{extra}", "data").replace(f"out{extra}", "out"))
    assert "smoker --- cough" in seen[0]
    ledger = tmp_path / "rows.ledger"
    assert main(["ledger", str(ledger), "--data-set", "clinic", "--epsilon", "30"]) == 0
    capsys.readouterr()
    for more, said in (
        (["--unit", "person", "--ledger", str(ledger)], "is a row, and this run's a person; give"),
        ([], "its unit is a row"),
        (["--unit", "person", "--max-rows-per-person", "3"], "drop --max-rows-per-person"),
        (["--unit", "house"], "--unit house: use row or person"),
    ):
        assert main([*words, *more]) == 2
        shown = capsys.readouterr()
        assert said in " ".join(shown.err.split()) and not shown.out


# Nulls
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_tests_on_weighted_tables_reject_no_more_often_than_they_say(correlation: float) -> None:
    """x and y are independent given z in the rows; a person's rows are copies of one with
    probability sqrt(c).  Rejections at 5 % stay within 3 standard errors of 5 % for each c; at
    c = 1, where a person is one row, they are not far below it either.
    """
    rng, alpha, runs, rejected = np.random.default_rng(7), 0.05, 200, {"xy": 0, "xy|z": 0}
    budget = jaxcd.Budget(1e4, unit="person")
    names = {"xy": [], "xy|z": ["v2"]}
    for run in range(runs):
        parts = []
        for _ in range(250):
            k = int(rng.integers(1, 13))
            rows = np.column_stack(
                [rng.random(k) < 0.4, rng.choice(3, k, p=[0.5, 0.3, 0.2]), rng.random(k) < 0.5]
            ).astype(np.int64)
            rows[rng.random(k) < math.sqrt(correlation)] = rows[0]
            parts.append(rows)
        noise = jaxcd.SimulatedNoise(jax.random.key(run))
        bought = jaxcd.release(table(parts), jaxcd.Histogram(), budget=budget, noise=noise)
        for name, z in names.items():
            answer = jaxcd.ci_test(bought, "v0", "v1", given=z, test=jaxcd.ChiSquare(), alpha=alpha)
            rejected[name] += not answer.independent
    most = alpha + 3 * math.sqrt(alpha * (1 - alpha) / runs)
    for name, times in rejected.items():
        assert times / runs <= most, (name, times)
        if correlation == 1.0:
            assert times / runs >= 0.01, (name, times)


@given(st.integers(0, 10**6), st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_the_mean_of_a_persons_rows_varies_no_more_than_one_row(seed: int, share: float) -> None:
    """Cov(row of a random person, drawn at random) - Cov(mean row) has no negative eigenvalue,
    also where the number of rows tells of their content.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(30):
        k = int(rng.integers(1, 9))
        p = rng.dirichlet(np.full(5, 0.5) + k * share)
        parts.append(np.eye(5)[rng.choice(5, k, p=p)])
    means = np.array([part.mean(axis=0) for part in parts])
    second = np.mean([part.T @ part / len(part) for part in parts], axis=0)
    overall = means.mean(axis=0)
    of_rows = second - np.outer(overall, overall)
    of_people = np.cov(means.T, bias=True)
    assert np.linalg.eigvalsh(of_rows - of_people).min() >= -1e-12
