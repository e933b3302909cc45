"""From shares of draws to how often edges return: the map, its numbers, and what shows that it is
wrong.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import jaxcd
from benchmarks import experiment as ex
from benchmarks import reliability, reliability_fit
from jaxcd.discovery import recalibration
from jaxcd.discovery.confidence import DRAWS_SENTENCE, RECALIBRATED_SENTENCE
from tests.helpers import simulated, words_of

DRAWS, RUNS = 20, 12


def planted(line: recalibration.Line, *, seed: int, n_pairs: int = 4000) -> np.ndarray:
    """Pairs (share of draws, found, returned, runs) that return as a map says."""
    rng = np.random.default_rng(seed)
    shares = rng.binomial(DRAWS, rng.uniform(0.3, 1, n_pairs)) / DRAWS
    returned = rng.binomial(RUNS, recalibration.mapped(shares, DRAWS, line))
    return np.column_stack([shares, np.ones(n_pairs), returned, np.full(n_pairs, RUNS)])


@pytest.mark.parametrize("slopes", [(0.0, 1.0, 0.1), (-1.5, 0.6, 1.0), (0.4, 1.8, 0.6)])
def test_the_fit_recovers_a_planted_map(slopes: tuple[float, float, float]) -> None:
    constant, slope, step = slopes
    pairs = planted((constant, np.log(slope), np.log(step)), seed=1)
    found = recalibration.fit_map(pairs[:, 0], pairs[:, 2], pairs[:, 3], DRAWS)
    assert found[0] == pytest.approx(constant, abs=0.08)
    assert np.exp(found[1]) == pytest.approx(slope, abs=0.08)
    assert np.exp(found[2]) == pytest.approx(step, abs=0.4)  # few pairs are in every draw


def test_the_fit_ends_at_the_optimum() -> None:
    """Wherever it begins, and where a slope wants to be 0: rounding decides nothing.

    The loss is written out here, with derivatives by differences.
    """
    rng = np.random.default_rng(8)
    facts = np.minimum(rng.normal(size=(1, 500)), 0)
    shares = rng.integers(DRAWS + 1, size=500) / DRAWS
    runs = np.full(500, RUNS)
    returned = rng.binomial(RUNS, np.where(facts[0] < 0, 0.5, (shares + 1) / 3))
    line = np.array(recalibration.fit_map(shares, returned, runs, DRAWS, facts))

    def loss(numbers: np.ndarray) -> float:
        p = recalibration.mapped(shares, DRAWS, tuple(numbers), facts)
        likelihood = stats.binom.logpmf(returned, RUNS, p).sum()
        return float(recalibration._PULL / 2 * (numbers**2).sum() - likelihood)

    step = 1e-4 * np.eye(len(line))
    slopes = [(loss(line + one) - loss(line - one)) / 2e-4 for one in step]
    np.testing.assert_allclose(slopes, 0, atol=1e-3)
    other = recalibration.fit_map(shares, returned + 1e-9, runs, DRAWS, facts)
    np.testing.assert_allclose(other, line, atol=1e-6)


def test_the_fit_recovers_what_facts_are_worth() -> None:
    """Also of fewer draws; and without them the scores of a part of the pairs are wrong."""
    rng, line = np.random.default_rng(6), (-0.5, 0.6, -0.4, -0.2, 0.2, 0.1, -0.2, 0.3, 0.0)
    facts = np.array([rng.normal(size=4000), rng.integers(3, size=4000)])
    shares = rng.binomial(DRAWS, np.minimum(rng.uniform(0.3, 1.2, 4000), 1)) / DRAWS
    returned = rng.binomial(RUNS, recalibration.mapped(shares, DRAWS, line, facts))
    runs = np.full(4000, RUNS)
    found = recalibration.fit_map(shares, returned, runs, DRAWS, facts)
    np.testing.assert_allclose(found[:6], line[:6], atol=0.08)
    np.testing.assert_allclose(found[6:], line[6:], atol=0.3)
    pairs = np.column_stack([shares, np.ones(4000), returned, runs, facts.T])
    few = reliability_fit.line_of(reliability_fit.thinned(pairs, DRAWS, 5), 5)
    kept = (
        rng.hypergeometric(
            np.rint(shares * DRAWS).astype(int), DRAWS - np.rint(shares * DRAWS).astype(int), 5
        )
        / 5
    )
    high, rates = facts[0] > 1, returned / RUNS
    scores = recalibration.scored(kept, 5, {"1": few, "5": few}, facts)
    assert scores[high].mean() == pytest.approx(rates[high].mean(), abs=0.03)
    blind = recalibration.mapped(
        shares, DRAWS, recalibration.fit_map(shares, returned, runs, DRAWS)
    )
    assert blind[high].mean() < rates[high].mean() - 0.05


def test_what_a_release_of_features_says_of_its_pairs() -> None:
    """Public numbers within their limits: discrete columns count, rare levels do, so do rows."""

    def facts(n: int, epsilon: float) -> np.ndarray:
        rng = np.random.default_rng(3)
        frame = {
            "x": rng.normal(size=n),
            "y": rng.integers(2, size=n),
            "z": rng.integers(3, size=n),
        }
        frame["z"] = np.where(np.arange(n) < 5, 3, frame["z"])  # a level of five people
        domain = {
            "x": jaxcd.Numeric(-5, 5),
            "y": jaxcd.Categorical((0, 1)),
            "z": jaxcd.Categorical((0, 1, 2, 3)),
        }
        data = jaxcd.Dataset.from_frame(pd.DataFrame(frame), domain=jaxcd.Domain(domain))
        budget = jaxcd.Budget(epsilon, 1e-6)
        return jaxcd.release(
            data, jaxcd.Features(), budget=budget, noise=simulated(2)
        ).facts_of_pairs()

    few, many, pooled, discrete = facts(2_000, 4.0)
    np.testing.assert_allclose(pooled, np.log(2))
    assert discrete[np.triu_indices(3, 1)].tolist() == [1, 1, 2]
    assert (few == 0).all() and (many == many[0, 0]).all()
    assert facts(4_000, 4.0)[1, 0, 0] > many[0, 0] > 0
    np.testing.assert_allclose(facts(2_000, 0.001)[:2, 0, 0], (np.log(10 / 300), 0))
    np.testing.assert_allclose(facts(100_000, 8.0)[:2, 0, 0], (0, np.log(5_000 / 300)))


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear()])
def test_rows_are_worth_less_the_more_noise_there_is(kind: jaxcd.ReleaseKind) -> None:
    """n over the standard deviation of the noise: as n, and as epsilon."""
    network = jaxcd.networks.load("cancer")

    def fact(n: int, epsilon: float) -> float:
        data, budget = network.sample(n, key=jax.random.key(0)), jaxcd.Budget(epsilon)
        found = jaxcd.release(data, kind, budget=budget, noise=simulated(1)).facts_of_pairs()
        assert found.shape == (2, 5, 5) and (found == found[:, :1, :1]).all()
        few, many = found[:, 0, 0]
        assert min(few, 0) == few and max(many, 0) == many and few * many == 0
        return float(few + many)

    assert fact(8_000, 0.5) - fact(2_000, 0.5) == pytest.approx(np.log(4))
    assert fact(4_000, 0.6) - fact(4_000, 0.2) == pytest.approx(np.log(3), abs=0.02)


def test_fewer_draws_are_a_part_of_more() -> None:
    """The chances are hypergeometric; and a line for fewer draws keeps the mean of its runs."""
    chances = recalibration.thinned(20, 5)
    np.testing.assert_allclose(
        chances, stats.hypergeom.pmf(np.arange(6), 20, np.arange(21)[:, None], 5), atol=1e-12
    )
    np.testing.assert_allclose(recalibration.thinned(7, 7), np.eye(8), atol=1e-12)
    pairs = planted((-1.0, 0.0, 0.0), seed=4)
    few = reliability_fit.thinned(pairs, DRAWS, 5)
    np.testing.assert_allclose(few[:, 2:].sum(0), pairs[:, 2:].sum(0))
    lines = {
        str(kept): recalibration.fit_map(
            *reliability_fit.thinned(pairs, DRAWS, kept)[:, (0, 2, 3)].T, kept
        )
        for kept in recalibration.DRAWS
    }
    rng = np.random.default_rng(5)
    for n_draws in (3, 5, 12, 20):  # draws of the same pairs, fewer of them
        shares = (
            rng.hypergeometric(
                np.rint(pairs[:, 0] * DRAWS).astype(int),
                np.rint((1 - pairs[:, 0]) * DRAWS).astype(int),
                n_draws,
            )
            / n_draws
        )
        scores = recalibration.scored(shares, n_draws, lines)
        assert scores.mean() == pytest.approx((pairs[:, 2] / pairs[:, 3]).mean(), abs=0.01)


def test_a_planted_miscalibration_is_caught_and_mended() -> None:
    """Scores that overstate show a gap of more than .05; the map fitted on one half closes it on
    the other.
    """
    half, other = planted((-2.0, 0.0, -9.0), seed=2), planted((-2.0, 0.0, -9.0), seed=3)
    truths = np.arange(len(other))
    before = reliability_fit.curve(other[:, 0], other, truths)
    assert max(abs(part["score"] - part["returned"]) for part in before) > 0.2
    line = recalibration.fit_map(half[:, 0], half[:, 2], half[:, 3], DRAWS)
    after = reliability_fit.curve(recalibration.mapped(other[:, 0], DRAWS, line), other, truths)
    assert max(abs(part["score"] - part["returned"]) for part in after) < 0.05


def test_the_curve_is_that_of_the_pairs() -> None:
    pairs = np.array([[0.6, 1, 3, 10], [0.6, 1, 5, 10], [0.4, 1, 9, 10], [1.0, 1, 10, 10]])
    first, last = reliability_fit.curve(pairs[:, 0], pairs, np.array([0, 1, 1, 1]))
    assert (first["score"], first["returned"], first["n_edges"]) == (0.6, 0.4, 2)
    assert first["error"] == pytest.approx(np.sqrt(0.3**2 + 0.1**2) / 2)
    (whole,) = reliability_fit.curve(pairs[:2, 0], pairs[:2], np.zeros(2, dtype=int))
    assert whole["error"] == pytest.approx(0.4 / 2)  # pairs of one truth are one
    assert (last["score"], last["returned"], last["n_edges"]) == (1.0, 1.0, 1)


@pytest.mark.parametrize("kind", recalibration.kinds())
def test_maps_rise_with_the_share_and_leave_zero_alone(kind: str) -> None:
    for draws, fact in itertools.product((1, 4, DRAWS, 50), (-3.4, 0.0, 2.8)):
        shares = np.arange(draws + 1) / draws
        facts = np.full((4 if kind == "features" else 2, len(shares)), fact)
        for found in (True, False):
            scores = recalibration.recalibrated(
                shares, np.full(shares.shape, found), n_draws=draws, kind=kind, facts=facts
            )
            assert scores[0] == 0 and (np.diff(scores) >= -1e-12).all() and scores[-1] <= 1


@pytest.mark.slow
def test_the_numbers_are_those_of_the_committed_results() -> None:
    rows = ex.read_rows(ex.RESULTS / "reliability.json")
    stored = json.loads(reliability_fit.MAPS.read_text())["maps"]
    again = reliability_fit.fitted(rows)
    assert set(stored) == set(again) == set(reliability_fit.RELEASES.values())
    for kind, maps in again.items():
        mine = [r for r in rows if reliability_fit.RELEASES[r.kind] == kind and r.part == "fitted"]
        pairs = reliability_fit.pairs_of(mine)
        for name, lines in maps.items():
            some = pairs[pairs[:, 1] == (name == "found")]
            for draws, line in lines.items():
                # What the lines say of the pairs: where the likelihood is flat a processor's
                # rounding moves the coefficients along.
                kept = reliability_fit.thinned(some, mine[0].n_draws, int(draws))
                one, other = (
                    recalibration.mapped(kept[:, 0], int(draws), tuple(found), kept[:, 4:].T)
                    for found in (stored[kind][name][draws], line)
                )
                assert np.abs(one - other).max() < 0.02
                assert np.average(np.abs(one - other), weights=kept[:, 3]) < 1e-3


def test_found_edges_return_as_often_as_their_score_says() -> None:
    """On the truths that fitted nothing: of each kind over [.5, 1] whole, in the highest bin and
    over [.5, .95), where it takes enough edges to tell; of all kinds together in each bin.
    """
    rows = [row for row in ex.read_rows(ex.RESULTS / "reliability.json") if row.part == "held-out"]
    maps = json.loads(reliability_fit.MAPS.read_text())["maps"]
    judged = set()
    for entry in reliability_fit.reported(rows, maps):
        if entry["stage"] == "recalibrated":
            parts = [entry["whole"], entry["uncertain"], entry["curve"][-1]]
            parts += entry["curve"] if entry["kind"] == "all" else []
            for part in parts:
                assert abs(part["score"] - part["returned"]) < 0.05, (entry["kind"], part)
            assert entry["uncertain"]["error"] < 0.05, entry["kind"]
            judged.add(entry["kind"])
    assert judged == {*reliability.KINDS, "all"}


def test_edge_confidence_says_what_its_numbers_are() -> None:
    data = jaxcd.networks.load("cancer").sample(4000, key=jax.random.key(0))
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated(3))
    run = jaxcd.search(bought)
    raw = jaxcd.edge_confidence(bought, run, n_draws=4, calibrated=False)
    mended = jaxcd.edge_confidence(bought, run, n_draws=4, calibrated=True)
    np.testing.assert_allclose(
        mended.adjacency,
        recalibration.recalibrated(
            raw.adjacency,
            run.graph.adjacency,
            n_draws=4,
            kind="histogram",
            facts=bought.facts_of_pairs(),
        ),
    )
    assert raw.meaning == DRAWS_SENTENCE and mended.meaning == RECALIBRATED_SENTENCE
    assert mended.directed is not None and raw.directed is not None
    joined = raw.adjacency > 0  # of an edge that returns, the directions are as in the draws
    np.testing.assert_allclose(
        (mended.directed / np.where(joined, mended.adjacency, 1))[joined],
        (raw.directed / np.where(joined, raw.adjacency, 1))[joined],
    )
    other = jaxcd.ges(bought)  # no map was fitted for other searches
    assert (
        jaxcd.edge_confidence(bought, other, n_draws=2, calibrated=True).meaning == DRAWS_SENTENCE
    )
    given = jaxcd.edge_confidence(bought, run, n_draws=2, search=jaxcd.search, calibrated=True)
    assert given.meaning == DRAWS_SENTENCE


def test_mapped_is_a_line_in_logits() -> None:
    expected = special.expit(-1 + 0.5 * special.logit(np.array([10.5, 20.5]) / 21) + [0, 2])
    found = recalibration.mapped(np.array([0.5, 1.0]), 20, (-1.0, np.log(0.5), np.log(2.0)))
    np.testing.assert_allclose(found, expected)


def test_the_benchmark_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "reliability.json"
    reliability.main(words_of("--quick --kinds moments features rare --out", out))
    rows = ex.read_rows(out)
    assert [(row.kind, row.part) for row in rows] == [
        (kind, part) for part in ("fitted", "held-out") for kind in ("moments", "features", "rare")
    ]
    pairs = np.concatenate([reliability_fit.pairs_of([row])[:, :4] for row in rows])
    assert [len(row.facts) for row in rows] == [2, 4, 4] * 2
    assert ((pairs[:, 0] >= 0) & (pairs[:, 0] <= 1) & (pairs[:, 2] <= pairs[:, 3])).all()
    reliability_fit.main(words_of("--results", out))
    assert "held-out  recalibrated" in capsys.readouterr().out
