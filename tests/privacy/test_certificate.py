"""Certificates: every run has one, anyone can check it, and whoever changes it is found out.

The numbers are compared with those of the run, with formulas written down here a third time, and
with dp-accounting; never with what :func:`jaxcd.verify` itself says they are.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import dp_accounting.rdp
import jax
import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import jaxcd
from jaxcd import local
from jaxcd.errors import DataError, FormatError, PrivacyError
from jaxcd.pairwise.anm_scores import IQRMechanism
from jaxcd.privacy import Accounting, conversion, limits, mechanisms, recomposing
from jaxcd.privacy import ledger as ledgers
from jaxcd.privacy.certificate import certificate_digest
from tests.helpers import CommandLine, levelled, numbers, sampled, simulated

LEVELS = (2, 3, 2, 3)
DISCRETE = levelled(*LEVELS)
NUMERIC = numbers("abc", -1, 1)
UNIT = ((-1.0, 1.0), (-1.0, 1.0))
# Certificates of Gaussian accounting are in test_gaussian_accounting.
ZCDP = Accounting.ZCDP
PURE, MIXED = jaxcd.Budget(2.0), jaxcd.Budget(4.0, 1e-4, accounting=ZCDP)
THREE_ROWS = jaxcd.Budget(4.0, 1e-4, max_rows_per_person=3, accounting=ZCDP)
COVARIANCE = jaxcd.CovarianceNorm()


@functools.cache
def codes(n: int = 300) -> np.ndarray:
    """A chain."""
    rng = np.random.default_rng(0)
    table = np.zeros((n, 4), dtype=np.int32)
    table[:, 0] = rng.integers(0, 2, n)
    for j in (1, 2, 3):
        table[:, j] = np.where(
            rng.random(n) < 0.3, rng.integers(0, LEVELS[j], n), table[:, j - 1] % LEVELS[j]
        )
    return table


def discrete() -> jaxcd.Dataset:
    return jaxcd.Dataset.from_codes(codes(), domain=DISCRETE)


@functools.cache
def cubic(n: int = 200) -> np.ndarray:
    rng = np.random.default_rng(1)
    a = rng.uniform(-1, 1, n)
    return np.stack(
        [a, np.clip(a**3 + 0.2 * rng.normal(size=n), -1, 1), rng.uniform(-1, 1, n)], axis=1
    )


def numeric() -> jaxcd.Dataset:
    return jaxcd.Dataset.from_array(cubic(), domain=NUMERIC)


def options(budget: jaxcd.Budget = MIXED) -> dict[str, Any]:
    return {"budget": budget, "key": jax.random.key(3), "noise": simulated(7)}


def by_tests(decider: Any, door: Any = jaxcd.pc, budget: jaxcd.Budget = MIXED) -> Any:
    return lambda: door(discrete(), test=COVARIANCE, decider=decider, **options(budget))


def discovered(algorithm: jaxcd.Algorithm, budget: jaxcd.Budget = MIXED) -> Any:
    return lambda: jaxcd.discover(discrete(), algorithm=algorithm, **options(budget))


def bought(kind: Any, budget: jaxcd.Budget = MIXED) -> Any:
    data = discrete if isinstance(kind, (jaxcd.Histogram, jaxcd.Marginals)) else numeric
    return lambda: jaxcd.release(data(), kind, budget=budget, noise=options()["noise"])


def pair(door: Any, budget: jaxcd.Budget = PURE, **more: Any) -> Any:
    return lambda: door(
        cubic()[:, 0], cubic()[:, 1], bounds=UNIT, budget=budget, noise=options()["noise"], **more
    )


KINDS = {
    "histogram": (jaxcd.Histogram(), PURE),
    "marginals": (jaxcd.Marginals(), MIXED),
    "marginals, pure": (jaxcd.Marginals(), PURE),
    "second moments": (jaxcd.SecondMoments(), MIXED),
    "features": (jaxcd.Features(), MIXED),
}
HISTOGRAM = bought(*KINDS["histogram"])
TRUE = jaxcd.Threshold()

RUNS: dict[str, Callable[[], Any]] = {
    "pc, levelwise": by_tests(jaxcd.LevelwiseGaussian()),
    "pc, sparse vector": by_tests(jaxcd.SparseVector()),
    "pc, sparse vector, pure": by_tests(jaxcd.SparseVector(), budget=PURE),
    "pc, sieve": by_tests(jaxcd.SieveAndExamine()),
    "pc, sieve of a subset": by_tests(jaxcd.SieveAndExamine(rate=0.5)),
    "pc, noisy threshold": by_tests(jaxcd.NoisyThreshold()),
    "pc, noisy threshold, Gaussian": by_tests(
        jaxcd.NoisyThreshold(noise=jaxcd.decisions.Noise.GAUSSIAN)
    ),
    "pc, exponential": by_tests(jaxcd.ExponentialSelect()),
    "pc, scheduled": by_tests(jaxcd.Scheduled(jaxcd.NoisyThreshold(n_queries=6))),
    "pc, noisy rank": lambda: jaxcd.pc(
        numeric(),
        test=jaxcd.BoundedRCIT(n_features=8, n_permutations=19),
        decider=jaxcd.NoisyRank(n_queries=6),
        max_level=1,
        **options(),
    ),
    "fci, sparse vector": by_tests(jaxcd.SparseVector(), door=jaxcd.fci),
    "discover, pc": discovered(jaxcd.Algorithm.PC),
    "discover, fci": discovered(jaxcd.Algorithm.FCI),
    "discover, tree": discovered(jaxcd.Algorithm.TREE),
    "discover, release": discovered(jaxcd.Algorithm.RELEASE),
    "discover, auto, three rows a person": discovered(jaxcd.Algorithm.AUTO, THREE_ROWS),
    "discover, pc, three rows a person": discovered(jaxcd.Algorithm.PC, THREE_ROWS),
    **{f"release, {name}": bought(*what) for name, what in KINDS.items()},
    **{
        f"search, {name}": lambda what=what: jaxcd.search(bought(*what)())
        for name, what in KINDS.items()
    },
    "ci test of a release": lambda: jaxcd.ci_test(HISTOGRAM(), "v0", "v1", test=jaxcd.ChiSquare()),
    "pc of a release": lambda: jaxcd.pc(
        HISTOGRAM(), test=jaxcd.ChiSquare(), decider=TRUE, budget=jaxcd.NO_PRIVACY, key=None
    ),
    "anm, hsic": pair(jaxcd.anm, key=jax.random.key(3)),
    "anm, quartiles": pair(jaxcd.anm, key=jax.random.key(3), score=jaxcd.pairwise.LogIQRScore()),
    **{
        f"anm, propose-test-release{name}": pair(
            jaxcd.anm,
            jaxcd.Budget(2.0, 1e-3, accounting=accounting),
            key=jax.random.key(3),
            score=jaxcd.pairwise.LogIQRScore(mechanism=IQRMechanism.PROPOSE_TEST_RELEASE),
        )
        for name, accounting in (("", Accounting.ZCDP), (", Gaussian", Accounting.GAUSSIAN))
    },
    "reci": pair(jaxcd.reci),
    "ci test": lambda: jaxcd.ci_test(
        discrete(), "v0", "v1", given=("v2",), test=COVARIANCE, **options(PURE)
    ),
}

LOCAL = (
    local.KaryResponse,
    local.CombinedKaryResponse,
    local.BoundedGeometric,
    local.CombinedGeometric,
    local.ClippedGeometric,
)


@functools.cache
def result(name: str) -> Any:
    return RUNS[name]()


@functools.cache
def _text(name: str) -> str:
    return json.dumps(result(name).certificate(), allow_nan=False)


def document(name: str) -> dict[str, Any]:
    """The certificate of a run as anyone else gets it: through JSON, and free to be changed."""
    return json.loads(_text(name), parse_constant=pytest.fail)


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """With a digest that fits, as whoever changes a certificate on purpose would make it."""
    content["digest"] = certificate_digest(content)
    return content


def fails(content: Any) -> bool:
    """Whether a certificate is refused, in either of the two ways."""
    try:
        return not jaxcd.verify(content).holds
    except FormatError:
        return True


def failing(content: dict[str, Any]) -> set[str]:
    return {check.what for check in jaxcd.verify(content).checks if not check.holds}


# ---- every run has one


@pytest.mark.parametrize("name", RUNS)
def test_every_run_has_a_certificate_that_holds(name: str):
    content, run = document(name), result(name)
    found = jaxcd.verify(content)
    assert found and found.holds, str(found)
    assert content["ledger"] and len(content["ledger"]) == sum(
        check.what.startswith("event") for check in found.checks
    )
    assert content["spent"]["epsilon"] == pytest.approx(run.spent.epsilon, rel=1e-9)
    assert content["spent"]["delta"] == run.spent.delta
    promised = content["guarantee"]
    assert (promised["epsilon"], promised["delta"], promised["rho"]) == (
        run.cost.epsilon,
        run.cost.delta,
        run.cost.rho,
    )
    assert 0 < content["spent"]["epsilon"] <= promised["epsilon"]
    assert content["spent"]["delta"] <= promised["delta"]
    assert content["public"]["n_samples"] in (200, 300) and content["public"]["domain"]
    assert not found.proven  # simulated noise


@pytest.mark.parametrize(
    ("accounting", "epsilon", "delta"),
    [
        ("gaussian", 1e-6, 1e-12),
        ("gaussian", 1e-6, 1e-300),
        ("gaussian", 1e-6, 0.5),
        ("gaussian", 1e-40, 1e-6),
        ("gaussian", 1e-3, 0.99),
        ("gaussian", 1e6, 1e-6),
        ("zcdp", 1e-12, 1e-6),
        ("zcdp", 1e-6, 1e-200),
        ("zcdp", 1e-9, 0.5),
        ("zcdp", 1.0, 0.99),
        ("zcdp", 1e6, 1e-12),
    ],
)
def test_budgets_of_any_size_can_be_verified(accounting: str, epsilon: float, delta: float):
    """Also where epsilon is a small difference of numbers that are rounded, and where dp-accounting
    converts no order; what was spent is never less than the events add up to.
    """
    bought = jaxcd.release(
        jaxcd.Dataset.from_array(np.eye(50, 2), domain=numbers("ab", 0, 1)),
        jaxcd.SecondMoments(),
        budget=jaxcd.Budget(epsilon, delta, accounting=Accounting(accounting)),
        noise=simulated(),
    )
    content = bought.certificate()
    assert jaxcd.verify(content).holds, str(jaxcd.verify(content))
    less = json.loads(json.dumps(content))
    for part in ("spent", "guarantee"):
        less[part]["epsilon"] *= 1 - 1e-3
    if epsilon > 1e-20:  # else the events are worth an epsilon of 0, within a float of delta
        assert "total" in failing(sealed(less))
    less["spent"]["epsilon"] = less["guarantee"]["epsilon"] = 2.0
    less["ledger"][0]["gdp_rho"] = less["ledger"][0]["rho"] = 4.0
    assert "event 0" in failing(sealed(less))


@given(st.floats(-12, 2), st.floats(0, 30))
@settings(max_examples=40, deadline=None)
def test_the_second_conversion_of_gaussian_noise_has_no_cancellation(power: float, a: float):
    """Against 60 digits: as exactly as the logarithm of delta can be written."""
    mu = 10.0**power
    epsilon = mu * (a + mu / 2)
    with mpmath.workdps(60 + int(a * a)):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        found = mpmath.mpf(recomposing.gdp_delta(epsilon, mu))
        assert abs(found / exact - 1) < 1e-11 * (1 + a * a)


@pytest.mark.parametrize("name", RUNS)
def test_the_total_is_computed_to_nine_digits(name: str):
    """The sum of the prices is the ledger's to 1e-9: verification sees a millionth of a percent, in
    either direction.
    """
    for factor in (1 - 1e-8, 1 + 1e-8):
        content = document(name)
        content["spent"]["epsilon"] *= factor
        assert "total" in failing(sealed(content))
    content = document(name)
    rows = content["ledger"]
    k, delta = content["guarantee"]["max_rows_per_person"], content["spent"]["delta"]
    pure = math.fsum(row.get("epsilon", math.inf) for row in rows) * k
    failures = math.fsum(row.get("delta", 0.0) for row in rows)
    converted = (
        epsilon_of(math.fsum(row["rho"] for row in rows) * k**2, delta)
        if delta > failures
        else math.inf
    )
    assert content["spent"]["epsilon"] == pytest.approx(min(pure, converted), rel=1e-9)


def epsilon_of(rho: float, delta: float) -> float:
    """The conversion of zCDP of Canonne, Kamath and Steinke, minimised by scipy."""

    def at(x: float) -> float:
        a = 1 + math.exp(x)
        return rho * a + math.log1p(-1 / a) - math.log(a * delta) / (a - 1)

    centre = 0.5 * math.log(-math.log(delta) / rho)
    return minimize_scalar(
        at, bounds=(centre - 5, centre + 5), method="bounded", options={"xatol": 1e-10}
    ).fun


@pytest.mark.parametrize(
    "name",
    [
        "pc, levelwise",
        "release, histogram",
        "discover, auto, three rows a person",
        "anm, propose-test-release",
    ],
)
def test_a_file_says_what_the_run_says(name: str, tmp_path: Path):
    path = tmp_path / "privacy.json"
    path.write_text(_text(name), encoding="utf-8")
    again = jaxcd.verify(path)
    assert again == jaxcd.verify(result(name).certificate()) == jaxcd.verify(str(path))
    assert again.holds
    # only the content counts
    path.write_text(json.dumps(document(name), indent=7, sort_keys=True), encoding="utf-8")
    assert jaxcd.verify(path).holds


def test_a_saved_report_has_it(tmp_path: Path):
    run = result("discover, auto, three rows a person")
    run.save(tmp_path / "report")
    content = json.loads(
        (tmp_path / "report" / "privacy.json").read_text(encoding="utf-8"),
        parse_constant=pytest.fail,
    )
    assert content == document("discover, auto, three rows a person")
    assert jaxcd.verify(tmp_path / "report" / "privacy.json").holds


def test_methods_without_privacy_have_nothing_to_verify():
    run = jaxcd.igci(*cubic().T[:2], budget=jaxcd.NO_PRIVACY)
    with pytest.raises(FormatError, match="no privacy"):
        jaxcd.verify(json.loads(json.dumps(run.certificate(), allow_nan=False)))
    pytest.raises(PrivacyError, jaxcd.igci, *cubic().T[:2], budget=PURE)


@pytest.mark.parametrize("kind", LOCAL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "level", [{"epsilon_ldp": 2.5}, {"p_max": 0.3}, {"d_privacy": 0.5}], ids=str
)
def test_local_privacy(kind: Any, level: dict[str, float], tmp_path: Path):
    domain = jaxcd.Domain(
        {
            "one": jaxcd.Ordinal((0, 1)),
            "two": jaxcd.Ordinal((0, 1, 2)),
            "still": jaxcd.Categorical(("x",)),
        }
    )
    data = jaxcd.Dataset.from_codes(
        np.column_stack([codes()[:, :2], np.zeros(300, dtype=np.int32)]), domain=domain
    )
    distance = local.Distance.EUCLIDEAN if kind is local.CombinedGeometric else None
    mechanism = local.calibrate(kind, domain, distance=distance, **level)
    promised = local.privatize(
        data, mechanism, out=tmp_path / "t.csv", guarantee_out=tmp_path / "g.json"
    )
    content = json.loads((tmp_path / "g.json").read_text(), parse_constant=pytest.fail)
    found = jaxcd.verify(tmp_path / "g.json")
    assert found.holds and found.proven, str(found)
    assert content["certificate"]["spent"]["epsilon"] == pytest.approx(
        promised.epsilon_ldp, rel=1e-9
    )
    assert content["certificate"]["spent"]["delta"] == 0
    # Less noise at the same price.
    channel = content["certificate"]["ledger"][0]["channel"]
    parameter = "epsilon" if "epsilon" in channel else "p_max"
    scaled = channel[parameter]
    channel[parameter] = (
        [part * 1.01 for part in scaled] if isinstance(scaled, list) else scaled * 1.01
    )
    sealed(content["certificate"])
    assert failing(content) == {"event 0"}


def test_a_ledger_file_adds_up(tmp_path: Path, command: CommandLine):
    path = tmp_path / "people.ledger"
    total = jaxcd.LedgerFile(
        path, data_set="people", budget=jaxcd.Budget(9.0, 1e-4, accounting=ZCDP)
    )
    assert jaxcd.verify(path).holds  # nothing spent
    jaxcd.pc(
        discrete(), test=COVARIANCE, decider=jaxcd.LevelwiseGaussian(), ledger=total, **options()
    )
    after_one = total.spent.epsilon
    jaxcd.release(discrete(), jaxcd.Histogram(), budget=jaxcd.Budget(1.0), ledger=total)
    local.privatize(
        discrete(),
        local.calibrate(local.KaryResponse, DISCRETE, epsilon_ldp=0.5),
        out=tmp_path / "t.csv",
        guarantee_out=tmp_path / "g.json",
        ledger=total,
    )
    content = json.loads(json.dumps(total.certificate(), allow_nan=False))
    found = jaxcd.verify(content)
    assert found.holds and jaxcd.verify(path) == found and not found.proven
    assert content["spent"]["epsilon"] == pytest.approx(total.spent.epsilon, rel=1e-9)
    assert total.spent.epsilon > after_one
    rho = math.fsum(row["rho"] for row in content["ledger"])
    assert total.spent.epsilon == pytest.approx(epsilon_of(rho, 1e-4), rel=1e-9)
    assert (
        len(content["ledger"]) == len(total.records) == len(document("pc, levelwise")["ledger"]) + 2
    )
    assert "checks hold" in command.shows("verify", path)
    # One digit of a record of the file.
    text = path.read_text(encoding="utf-8")
    place = text.index('"sensitivity": ') + len('"sensitivity": ')
    path.write_text(
        text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :], encoding="utf-8"
    )
    pytest.raises(FormatError, jaxcd.verify, path)
    command.refuses("", "verify", path)


def test_what_the_commands_write_can_be_verified(tmp_path: Path, command: CommandLine):
    table, domain = tmp_path / "t.csv", tmp_path / "d.json"
    np.savetxt(table, codes(), fmt="%d", delimiter=",", header="v0,v1,v2,v3", comments="")
    DISCRETE.write(domain)
    pairs = tmp_path / "pair.csv"
    np.savetxt(pairs, cubic()[:, :2], delimiter=",", header="x,y", comments="")
    spent = ("--delta 1e-5 --epsilon 2 --out", tmp_path / "report")
    randomised = ("--mechanism krr --epsilon-ldp 2 --out", tmp_path / "r.csv")
    bounds = "--method reci --epsilon 2 --x x --y y --bounds -1 1 -1 1"
    commands = {
        "report/privacy.json": ("discover", table, "--domain", domain, spent),
        "g.json": (
            "privatize",
            table,
            "--domain",
            domain,
            randomised,
            "--guarantee-out",
            tmp_path / "g.json",
        ),
        "pair.json": ("direction", pairs, bounds, "--certificate-out", tmp_path / "pair.json"),
    }
    for name, words in commands.items():
        command.shows(words)
        code, out, err = command("verify", tmp_path / name)
        assert "checks hold" in out and "FAIL" not in out and "stated as proved" in out
        assert (code, err) == (0, "")
        assert jaxcd.verify(tmp_path / name).proven
        content = json.loads(
            (tmp_path / name).read_text(encoding="utf-8"), parse_constant=pytest.fail
        )
        inner = content.get("certificate", content)
        assert inner["spent"]["epsilon"] == pytest.approx(2.0, rel=1e-6)
        inner["spent"]["epsilon"] = 1.0
        (tmp_path / "changed.json").write_text(json.dumps(content))
        code, out, err = command("verify", tmp_path / "changed.json", "--json")
        assert json.loads(out)["holds"] is False and (code, err) == (1, "")


# ---- changed by mistake


def numeric_leaves(
    node: Any, path: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Every number of a document and where it stands."""
    if isinstance(node, (dict, list)):
        for place, part in node.items() if isinstance(node, dict) else enumerate(node):
            yield from numeric_leaves(part, (*path, place))
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield path, node


def put(content: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    node: Any = content
    for place in path[:-1]:
        node = node[place]
    node[path[-1]] = value
    return content


def other_digits(value: float) -> list[float]:
    """The number with one digit of its text changed: each digit once."""
    text, found = json.dumps(value), []
    for match in re.finditer(r"\d", text):
        digit = (int(match[0]) + 1) % 10
        try:
            other = json.loads(text[: match.start()] + str(digit) + text[match.end() :])
        except ValueError:  # such as 05
            continue
        if other != value:
            found.append(other)
    return found


# Pure certificates are checked in no time; those that dp-accounting composes take a little longer,
# so fewer of their digits.
@pytest.mark.parametrize(
    ("name", "n_digits"),
    [
        ("release, histogram", 99),
        ("anm, propose-test-release", 4),
        ("reci", 99),
        ("pc, levelwise", 1),
    ],
)
def test_one_changed_digit_anywhere_is_found(name: str, n_digits: int):
    content, rng, n_changed = document(name), np.random.default_rng(0), 0
    for path, value in numeric_leaves(content):
        others = other_digits(value)
        assert others
        for other in (
            others
            if len(others) <= n_digits
            else rng.choice(others, n_digits, replace=False).tolist()
        ):
            assert fails(put(document(name), path, other)), f"{path}: {value} -> {other}"
            n_changed += 1
    assert n_changed > 40


@settings(max_examples=60, derandomize=True)
@given(data=st.data())
def test_any_changed_digit_is_found(data: st.DataObject):
    name = data.draw(
        st.sampled_from(
            [
                "release, second moments",
                "ci test",
                "discover, auto, three rows a person",
                "pc, sieve",
            ]
        )
    )
    path, value = data.draw(st.sampled_from(list(numeric_leaves(document(name)))))
    assert fails(put(document(name), path, data.draw(st.sampled_from(other_digits(value)))))


def test_changed_text_is_found():
    """Names, laws and the digest itself."""
    for path in (
        ("guarantee", "reason"),
        ("guarantee", "unit"),
        ("guarantee", "relation"),
        ("spent", "words"),
        ("ledger", 0, "label"),
        ("versions", "jaxcd"),
    ):
        assert fails(put(document("release, histogram"), path, "something else")), path
    digest = document("release, histogram")["digest"]
    for place in range(len(digest)):
        other = digest[:place] + ("0" if digest[place] != "0" else "1") + digest[place + 1 :]
        assert failing({**document("release, histogram"), "digest": other}) == {"digest"}
    without = document("release, histogram")
    del without["digest"]
    assert fails(without)


# ---- changed on purpose

ATTACKED = (
    "pc, levelwise",
    "pc, sparse vector",
    "pc, sieve of a subset",
    "pc, exponential",
    "pc, noisy rank",
    "release, histogram",
    "release, marginals",
    "release, features",
    "anm, propose-test-release",
    "reci",
    "discover, auto, three rows a person",
)


@pytest.mark.parametrize("name", ATTACKED)
def test_a_lower_total_does_not_follow_from_the_events(name: str):
    content = document(name)
    content["guarantee"]["epsilon"] = 0.9 * content["spent"]["epsilon"]
    assert "claim" in failing(sealed(content))
    content["spent"]["epsilon"] *= 0.9
    assert "total" in failing(sealed(content))
    content = document(name)
    if content["guarantee"]["delta"]:
        content["guarantee"]["delta"] /= 2
        content["spent"]["delta"] = min(content["spent"]["delta"], content["guarantee"]["delta"])
        assert fails(sealed(content))
    content = document(name)
    content["guarantee"]["max_rows_per_person"] += 1
    assert fails(sealed(content))


@pytest.mark.parametrize("name", ATTACKED)
def test_less_noise_does_not_buy_the_price(name: str):
    for place in range(len(document(name)["ledger"])):
        content = document(name)
        row = content["ledger"][place]
        if row["law"] == "failure probability":
            continue
        row["scales"] = [0.999 * scale for scale in row["scales"]]
        assert f"event {row['index']}" in failing(sealed(content)), row["label"]


@pytest.mark.parametrize("name", ATTACKED)
def test_a_larger_sensitivity_or_a_lower_price_does_not_fit_the_noise(name: str):
    for place, original in enumerate(document(name)["ledger"]):
        for entry in ("epsilon", "rho", "delta"):
            if original.get(entry):
                content = document(name)
                content["ledger"][place][entry] *= 0.999
                # a probability of failure is its own price
                check = "total" if entry == "delta" else f"event {original['index']}"
                assert check in failing(sealed(content)), (original["label"], entry)
        if original["sensitivity"]:
            content = document(name)
            content["ledger"][place]["sensitivity"] *= 2  # integers move by whole steps
            assert f"event {original['index']}" in failing(sealed(content)), original["label"]


@pytest.mark.parametrize("name", ATTACKED)
def test_a_smaller_sensitivity_does_not_fit_the_price(name: str):
    """A certificate states what was charged: a sensitivity from which another price follows is
    another statement.
    """
    for place, original in enumerate(document(name)["ledger"]):
        if original["sensitivity"]:
            content = document(name)
            content["ledger"][place]["sensitivity"] *= 0.5
            assert fails(sealed(content)), original["label"]


def test_a_smaller_count_does_not_fit_the_price():
    """The number of values of Gaussian noise is part of its price."""
    content = document("pc, levelwise")
    wide = [
        row
        for row in content["ledger"]
        if row["law"] == "discrete Gaussian" and row["dimension"] > 3 and not row["integral"]
    ]
    assert wide
    wide[0]["dimension"] = 1
    assert fails(sealed(content))


@pytest.mark.parametrize("name", ATTACKED)
def test_no_event_can_be_taken_out(name: str):
    for place in range(len(document(name)["ledger"])):
        content = document(name)
        del content["ledger"][place]
        assert fails(sealed(content)), place
    content = document(name)
    content["ledger"] = []
    assert fails(sealed(content))


@pytest.mark.parametrize("name", ["pc, levelwise", "release, histogram"])
def test_no_event_can_be_hidden_behind_another(name: str):
    """An event of a negative price, of an unknown law, or without what its price follows from."""
    rows = document(name)["ledger"]
    negative = {**rows[0], "index": len(rows), "sensitivity": -1e-9, "epsilon": -0.5, "rho": -0.01}
    for extra in (
        negative,
        {**rows[0], "law": "free of charge"},
        {"index": 9, "label": "?", "epsilon": 0.0, "rho": 0.0},
        rows[0],
    ):
        content = document(name)
        content["ledger"].append(extra)
        assert fails(sealed(content)), extra


@pytest.mark.parametrize(
    "name", ["pc, levelwise", "release, marginals", "discover, pc, three rows a person"]
)
def test_groups_follow_from_the_events(name: str):
    """A lower rho, and groups that fit it, while the events add up to more: what is said of groups
    would be false.
    """
    content = document(name)
    promised = content["guarantee"]
    unit, rows = promised["max_rows_per_person"], content["ledger"]
    assert math.fsum(row["rho"] for row in rows) * unit**2 > 0.1 * promised["rho"]
    promised["rho"] *= 0.01
    for group in content["groups"]:
        k = -(-group["rows"] // unit)
        group["epsilon"] = max(
            k * promised["epsilon"], epsilon_of(k**2 * promised["rho"], promised["delta"])
        )
    assert fails(sealed(content))


def test_a_check_of_rho_that_holds_reads_as_one():
    """A histogram keeps within epsilon, and has a rho that its delta would not allow."""
    data = discrete()
    budget = jaxcd.Budget(2.0, 1e-6)
    content = jaxcd.release(data, jaxcd.Histogram(), budget=budget).certificate()
    found = next(each for each in jaxcd.verify(content).checks if each.what == "rho")
    assert found.holds and found.words == "not needed: the epsilons add up to 2 of 2"
    tables = jaxcd.release(data, jaxcd.Marginals(), budget=budget).certificate()
    found = next(each for each in jaxcd.verify(tables).checks if each.what == "rho")
    assert found.holds and re.fullmatch(r"rho [.\d]+ of [.\d]+", found.words), found.words


@pytest.mark.parametrize(
    ("entry", "words"), [("unit", "a person with up to 9 rows"), ("relation", "any two data sets")]
)
def test_a_claim_is_not_for_more_than_its_numbers_are(entry: str, words: str):
    """Unit and relation stand in the verdict: they must be those that the prices are for."""
    content = document("release, histogram")
    content["guarantee"][entry] = words
    assert fails(sealed(content))


# ---- garbage


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


GARBAGE: tuple[Any, ...] = (
    b"",
    b"{",
    b"not json",
    b"[]",
    b"3",
    b"null",
    b'"text"',
    b"NaN",
    b"{}",
    b"\xff\xfe\x00",
    b"\x00" * 50,
    b"[" * 3000,
    b'{"format": "jaxcd.privacy"}',
    b'{"certificate": {}}',
    b'{"certificate": {"format": "jaxcd.privacy", "version": 2}}',
    b"jaxcd-ledger",
    b"jaxcd-ledger 1 2 3\n",
    b"9" * 6000,
)


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: repr(text[:20]))
def test_garbage_is_refused_in_plain_words(text: bytes, tmp_path: Path, command: CommandLine):
    path = tmp_path / "privacy.json"
    path.write_bytes(text)
    pytest.raises(FormatError, jaxcd.verify, path)
    command.refuses("", "verify", path)


@pytest.mark.parametrize("name", ["release, histogram", "pc, levelwise"])
def test_a_truncated_file_is_refused(name: str, tmp_path: Path, command: CommandLine):
    text, path = _text(name), tmp_path / "privacy.json"
    for length in np.linspace(1, len(text) - 1, 25).astype(int):
        path.write_text(text[:length], encoding="utf-8")
        pytest.raises(FormatError, jaxcd.verify, path)
        command.refuses("", "verify", path)


def paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(node, (dict, list)):
        for place, part in node.items() if isinstance(node, dict) else enumerate(node):
            yield from paths(part, (*path, place))


NEEDED = [("guarantee",), ("spent",), ("ledger",), ("format",), ("version",)]
NEEDED += [
    ("guarantee", name)
    for name in (
        "epsilon",
        "delta",
        "relation",
        "unit",
        "max_rows_per_person",
        "failure_delta",
        "proven",
        "reason",
    )
]
NEEDED += [("spent", name) for name in ("epsilon", "delta")]


@pytest.mark.parametrize("path", NEEDED, ids=str)
def test_a_missing_entry_is_a_format_error(
    path: tuple[Any, ...], tmp_path: Path, command: CommandLine
):
    content = document("release, histogram")
    node: Any = content
    for place in path[:-1]:
        node = node[place]
    del node[path[-1]]
    sealed(content)
    pytest.raises(FormatError, jaxcd.verify, content)
    (tmp_path / "privacy.json").write_text(json.dumps(content))
    command.refuses("", "verify", tmp_path / "privacy.json")


@pytest.mark.parametrize("name", ["release, histogram", "pc, levelwise", "pc, sieve of a subset"])
def test_an_event_without_a_part_of_its_price_fails(name: str):
    needed = {"law", "sensitivity", "pad", "grid", "integral", "scales", "dimension"}
    for entry in needed:
        content = document(name)
        gone = content["ledger"][0].pop(entry)
        if entry == "dimension" and content["ledger"][0]["law"].startswith("sparse vector"):
            assert gone == 1
            continue
        assert fails(sealed(content)), entry


MEASURES = (
    "epsilon",
    "delta",
    "rho",
    "sensitivity",
    "pad",
    "grid",
    "dimension",
    "scales",
    "rate",
    "max_rows_per_person",
    "rows",
)


@pytest.mark.parametrize(
    "odd", [math.nan, -math.inf, "nan", "-inf", "many", None, [], {}, True, -1, -1e-3], ids=repr
)
@pytest.mark.parametrize(
    "name", ["release, histogram", "pc, levelwise", "discover, pc, three rows a person"]
)
def test_no_number_can_be_something_else(name: str, odd: Any):
    """In the place of any number that a guarantee rests on; the digest fits.  Never an error of
    another kind.
    """
    passed = []
    for path, value in numeric_leaves(document(name)):
        if (
            path[0] not in ("guarantee", "spent", "groups", "ledger")
            or not set(path) & set(MEASURES)
            or (path[0] == "ledger" and path[1] > 0)
        ):
            continue
        if path[-1] == "rate" or value == 0:
            continue  # a rate is no part of most prices
        if odd is None and path[-1] in ("epsilon", "rho"):
            continue  # says that there is none
        if odd is True and value == 1:
            continue
        content = put(document(name), path, odd)
        try:
            sealed(content)
        except ValueError:  # no JSON
            content["digest"] = "0" * 64
        try:
            refused = fails(content)
        except Exception as error:
            refused, path = False, (*path, repr(error))
        if not refused:
            passed.append(path)
    assert not passed


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**300, 10**320),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.sampled_from(["1e999", "-0", "0x10", 1e308, -1e308, 5e-324, 2**70, {}, {"a": 1}]),
    st.dictionaries(st.text(max_size=3), st.floats(), max_size=2),
)


@settings(
    max_examples=150, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), again=st.booleans())
def test_junk_anywhere_is_a_failure_or_a_format_error(data: st.DataObject, again: bool):
    """Whatever stands wherever: a verdict, or jaxcd's own error; and a verdict that fails where
    nobody made a new digest.
    """
    name = data.draw(
        st.sampled_from(
            [
                "release, histogram",
                "ci test",
                "pc, sieve of a subset",
                "discover, tree",
                "anm, propose-test-release",
            ]
        )
    )
    content = document(name)
    path, value = data.draw(st.sampled_from(sorted(paths(content), key=str))), data.draw(junk)
    before = content
    for place in path:
        before = before[place]
    put(content, path, value)
    if again:
        try:
            sealed(content)
        except ValueError:
            pass
    try:
        held = jaxcd.verify(content).holds
    except FormatError:
        return
    assert again or not held or json.dumps(before) == json.dumps(value)


@settings(
    max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=st.binary(max_size=80)
    | st.text(max_size=40).map(str.encode)
    | st.recursive(junk, lambda part: st.lists(part) | st.dictionaries(st.text(), part)).map(
        lambda part: json.dumps(part).encode()
    )
)
def test_no_file_makes_the_command_fail_otherwise(text: bytes, folder: Path, command: CommandLine):
    path = folder / "privacy.json"
    path.write_bytes(text)
    command.refuses("", "verify", path)
    pytest.raises(FormatError, jaxcd.verify, path)


@pytest.mark.parametrize(
    "rows", [0, 0.5, -1, 1e308, 10**400], ids=lambda rows: f"{rows:.3g}" if rows < 1e300 else "huge"
)
def test_a_person_has_a_number_of_rows(rows: float):
    content = put(document("release, histogram"), ("guarantee", "max_rows_per_person"), rows)
    assert fails(sealed(content))


@pytest.mark.parametrize("entry", ["scales", "grid", "sensitivity", "pad", "rho", "epsilon"])
@pytest.mark.parametrize("value", [10**310, 1e308, 5e-324], ids=["10**310", "1e308", "5e-324"])
def test_numbers_of_any_size_are_a_verdict(
    entry: str, value: float, tmp_path: Path, command: CommandLine
):
    """A Gaussian event among others with one number far too large or small; no digest was made."""
    content = document("pc, levelwise")
    content["ledger"][0][entry] = [value] if entry == "scales" else value
    assert fails(content)
    (tmp_path / "privacy.json").write_text(json.dumps(content))
    assert command("verify", tmp_path / "privacy.json")[0] in (1, 2)


def test_a_file_that_is_not_there(tmp_path: Path, command: CommandLine):
    pytest.raises(DataError, jaxcd.verify, tmp_path / "nothing.json")
    command.refuses("", "verify", tmp_path / "nothing.json")
    command.refuses("", "verify", tmp_path)


# ---- verification is independent

# Budgets that no other test has: what is cached of a lie stays here.
LIED_TO = jaxcd.Budget(3.21, 1.7e-5, accounting=ZCDP)


@pytest.fixture
def lied_to() -> Iterator[None]:
    for cached in (conversion._rho_to_epsilon, conversion._epsilon_to_rho):
        cached.cache_clear()
    yield
    for cached in (conversion._rho_to_epsilon, conversion._epsilon_to_rho):
        cached.cache_clear()


def lied(monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    if lie == "conversion":
        told = conversion.rho_to_epsilon
        monkeypatch.setattr(limits, "rho_to_epsilon", lambda rho, delta: 0.9 * told(rho, delta))
    elif lie == "room":
        told_rho = conversion.epsilon_to_rho
        monkeypatch.setattr(
            limits, "epsilon_to_rho", lambda epsilon, delta: 1.5 * told_rho(epsilon, delta)
        )
    elif lie == "sums":
        monkeypatch.setattr(limits.Sums, "plus", lambda sums, event, accounting: sums)
    elif lie == "half":
        monkeypatch.setattr(
            limits,
            "_add",
            lambda total, part: (
                None if total is None or math.isinf(part) else total + Fraction(part) / 2
            ),
        )
    elif lie == "sensitivity":
        told_bound = mechanisms.integer_sensitivity
        monkeypatch.setattr(
            mechanisms,
            "integer_sensitivity",
            lambda *args, **more: told_bound(*args, **more) * Fraction(9, 10),
        )
    else:
        raise AssertionError(lie)


@pytest.mark.usefixtures("lied_to")
@pytest.mark.parametrize(
    ("lie", "run"),
    [
        *(
            (lie, run)
            for lie in ("sums", "half", "sensitivity", "room")
            for run in ("levelwise", "marginals", "noisy threshold")
        ),
        # the other's total is a sum of epsilons
        *(("conversion", run) for run in ("levelwise", "marginals")),
    ],
)
def test_a_ledger_that_lies_is_found_out(lie: str, run: str, monkeypatch: pytest.MonkeyPatch):
    """The certificate is written by a jaxcd whose arithmetic is wrong, and read by one as wrong."""
    lied(monkeypatch, lie)
    if run == "marginals":
        made: Any = jaxcd.release(
            discrete(), jaxcd.Marginals(), budget=LIED_TO, noise=options()["noise"]
        )
    elif run == "levelwise":
        made = by_tests(jaxcd.LevelwiseGaussian(), budget=LIED_TO)()
    else:
        made = by_tests(jaxcd.NoisyThreshold(n_queries=20), budget=LIED_TO)()
    assert fails(json.loads(json.dumps(made.certificate())))


def epsilon_to_rho(budget: jaxcd.Budget) -> float:
    low, high = 1e-9, 10.0
    for _ in range(100):
        low, high = (
            ((low + high) / 2, high)
            if epsilon_of((low + high) / 2, budget.delta) <= budget.epsilon
            else (low, (low + high) / 2)
        )
    return low


def test_verification_uses_none_of_the_ledgers_arithmetic(monkeypatch: pytest.MonkeyPatch):
    contents = [
        document(name)
        for name in (
            "pc, levelwise",
            "release, histogram",
            "pc, sieve of a subset",
            "anm, propose-test-release",
        )
    ]

    def broken(*_: Any, **__: Any) -> Any:
        raise AssertionError("the ledger's arithmetic was used")

    for module, names in (
        (
            conversion,
            (
                "rho_to_epsilon",
                "_rho_to_epsilon",
                "epsilon_to_rho",
                "pure_to_rho",
                "subsampled_epsilon",
                "exponential_to_rho",
            ),
        ),
        (
            limits,
            (
                "rho_to_epsilon",
                "epsilon_to_rho",
                "gdp_rho_to_epsilon",
                "epsilon_to_gdp_rho",
                "total_spent",
                "total_guarantee",
                "_add",
                "Sums",
                "Limits",
            ),
        ),
        (ledgers, ("total_spent", "total_guarantee", "Sums", "Limits", "Ledger")),
        (mechanisms, ("integer_sensitivity", "noise_scale", "gaussian_sigma")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, broken)
    for content in contents:
        assert jaxcd.verify(content).holds


def test_the_total_is_that_of_dp_accounting(monkeypatch: pytest.MonkeyPatch):
    content = document("pc, levelwise")
    assert "dp-accounting" in {check.what for check in jaxcd.verify(content).checks}
    told = dp_accounting.rdp.RdpAccountant.get_epsilon
    monkeypatch.setattr(
        dp_accounting.rdp.RdpAccountant,
        "get_epsilon",
        lambda self, delta: told(self, delta) * (1 + 1e-6),
    )
    assert failing(content) == {"dp-accounting"}


@pytest.mark.parametrize(
    "name",
    [
        "pc, levelwise",
        "release, marginals",
        "release, second moments",
        "release, features",
        "discover, tree",
    ],
)
def test_dp_accounting_agrees_from_the_scales_alone(name: str):
    """Gaussian noise by its ratio of scale to sensitivity, everything else by its zCDP; no word of
    jaxcd is taken for it.
    """
    content, accountant = (
        document(name),
        dp_accounting.rdp.RdpAccountant(
            list(1 + np.geomspace(0.5, 200, 4000)), dp_accounting.NeighboringRelation.REPLACE_ONE
        ),
    )
    for row in content["ledger"]:
        if row["law"] == "discrete Gaussian":
            root = math.sqrt(row["dimension"])
            steps = row["sensitivity"] / row["grid"]
            d = steps if row["integral"] else steps + 2 * root * row["pad"] / row["grid"] + root
            accountant.compose(dp_accounting.GaussianDpEvent(row["scales"][0] / d))
        else:
            accountant.compose(dp_accounting.ZCDpEvent(row["rho"]))
    assert content["spent"]["epsilon"] == pytest.approx(
        accountant.get_epsilon(content["spent"]["delta"]), rel=1e-5
    )


# ---- groups

ROWS_OF_GROUPS = (2, 3, 5, 10, 20, 50)


@pytest.mark.parametrize(
    "name", ["release, histogram", "reci", "ci test", "release, marginals, pure"]
)
def test_groups_of_a_pure_run(name: str):
    content = document(name)
    epsilon = content["guarantee"]["epsilon"]
    assert [group["rows"] for group in content["groups"]] == list(ROWS_OF_GROUPS)
    for group in content["groups"]:
        assert group["epsilon"] == pytest.approx(group["rows"] * epsilon, rel=1e-12) and group[
            "epsilon"
        ] >= group["rows"] * epsilon * (1 - 1e-15)
        assert group["delta"] == 0


@pytest.mark.parametrize(
    "name",
    ["pc, levelwise", "release, marginals", "discover, tree", "discover, pc, three rows a person"],
)
def test_groups_of_a_run_with_delta(name: str):
    """From k^2 rho, at the same delta; right for what the events add up to, by dp-accounting's own
    zCDP.
    """
    content = document(name)
    promised, unit = content["guarantee"], content["guarantee"]["max_rows_per_person"]
    epsilon, delta, rho = promised["epsilon"], promised["delta"], promised["rho"]
    assert rho == pytest.approx(epsilon_to_rho(jaxcd.Budget(epsilon, delta)), rel=1e-6)
    assert [group["rows"] for group in content["groups"]] == [k for k in ROWS_OF_GROUPS if k > unit]
    used = math.fsum(row["rho"] for row in content["ledger"])
    for group in content["groups"]:
        k = -(-group["rows"] // unit)
        assert group["delta"] == delta
        assert group["epsilon"] == pytest.approx(
            max(k * epsilon, epsilon_of(k**2 * rho, delta)), rel=1e-9
        )
        accountant = dp_accounting.rdp.RdpAccountant(
            list(1 + np.geomspace(1e-3, 100, 2000)), dp_accounting.NeighboringRelation.REPLACE_ONE
        )
        accountant.compose(dp_accounting.ZCDpEvent(used * group["rows"] ** 2))
        if k * unit == group["rows"]:
            assert accountant.get_epsilon(delta) <= group["epsilon"] * (1 + 1e-4)


def test_groups_where_no_rho_is_known():
    """k epsilon and delta (exp(k epsilon) - 1) / (exp(epsilon) - 1); nothing where that is no
    probability.
    """
    content = document("anm, propose-test-release")
    epsilon, delta = content["guarantee"]["epsilon"], content["guarantee"]["delta"]
    assert content["guarantee"]["rho"] is None and delta == 1e-3
    seen = set()
    for group in content["groups"]:
        k = group["rows"]
        grown = delta * (math.exp(k * epsilon) - 1) / (math.exp(epsilon) - 1)
        seen.add(grown < 1)
        if grown < 1:
            assert group["epsilon"] == pytest.approx(k * epsilon, rel=1e-12) and group[
                "delta"
            ] == pytest.approx(grown, rel=1e-9)
            assert group["delta"] >= grown * (1 - 1e-12)
        else:
            assert float(group["epsilon"]) == math.inf
    assert seen == {True, False}


@pytest.mark.parametrize(
    "name",
    [
        "release, histogram",
        "pc, levelwise",
        "anm, propose-test-release",
        "discover, auto, three rows a person",
    ],
)
def test_a_better_promise_to_groups_is_found_out(name: str):
    for place, group in enumerate(document(name)["groups"]):
        if group["epsilon"] == "inf":
            for claimed in (5.0, 1e9):
                content = document(name)
                content["groups"][place]["epsilon"] = claimed
                assert "groups" in failing(sealed(content))
            continue
        for entry in ("epsilon", "delta"):
            if group[entry]:
                content = document(name)
                content["groups"][place][entry] *= 0.99
                assert "groups" in failing(sealed(content)), (group, entry)
        content = document(name)
        content["groups"][place]["rows"] *= 10
        assert "groups" in failing(sealed(content)), group


@pytest.mark.parametrize("rows", [2.5, -2, 0, "2"])
def test_groups_have_a_number_of_rows(rows: Any):
    content = document("release, marginals")
    content["groups"][0]["rows"] = rows
    assert "groups" in failing(sealed(content))


@pytest.mark.parametrize("epsilon", [1e306, 1e307, 1.7e308])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_group_of_a_budget_at_the_end_of_floats_has_no_promise(epsilon: float, delta: float):
    """And no error after the charge."""
    budget = jaxcd.Budget(epsilon, delta, accounting="zcdp")
    bought = jaxcd.release(
        sampled("cancer", 100), jaxcd.Histogram(), budget=budget, noise=simulated()
    )
    assert bought.cost.for_group(50).epsilon >= 50 * epsilon
    verified = jaxcd.verify(bought.certificate())
    assert verified.holds, str(verified)


def test_copies_are_free():
    """What a caller does with a certificate changes no other."""
    first = result("release, histogram").certificate()
    kept = copy.deepcopy(first)
    first["guarantee"]["epsilon"] = 0.0
    first["ledger"].clear()
    assert result("release, histogram").certificate() == kept


def test_a_name_twice_is_refused(tmp_path: Path):
    """Most readers of JSON keep the last of two equal names, and a person reads the first."""
    data = jaxcd.networks.load("cancer").sample(500, key=jax.random.key(0))
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0))
    text = json.dumps(bought.certificate(), allow_nan=False)
    path = tmp_path / "privacy.json"
    path.write_text(text)
    assert jaxcd.verify(path).holds
    path.write_text(text.replace("{", '{"guarantee": {"epsilon": 0.1}, ', 1))
    with pytest.raises(FormatError, match="'guarantee' is given twice"):
        jaxcd.verify(path)
