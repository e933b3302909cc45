"""Cause or effect: every pairwise method on pairs with known answers, beside other libraries.

``python -m benchmarks.pairs [--quick] [--data FOLDER] [--rows N] [--peer-pairs K] [--out FILE]``

Data: the Tuebingen pairs under the weights of both versions, SIM and SIM-c of Mooij et al. 2016,
and the challenge's third supplementary set.  Columns: weighted accuracy with its 95 % interval,
area under accuracy against decision rate, seconds of one pass over the collection after a pass that
compiles.  A pair that a method refuses counts as undecided.

**Private rows measure the noise only.**  Nobody declared bounds of these variables, so each pair's
own range, rounded outwards to a tenth of its power of ten, stands in for them: a real run has to
know them beforehand.  A method is run once at an epsilon so large that its answer is the exact
difference of scores; the noise of a smaller epsilon is then drawn from the law that the method
states, ``DRAWS`` times (the tests compare this with repeated runs of the mechanism).  The numbers
are means over the draws.

Peers, each left out with a line where it is not installed: causal-learn's ANM on the first pairs of
SIM, for its seconds; lingam's DirectLiNGAM on all.  RECI with a support vector machine and with a
neural network needs scikit-learn, and is left out alike.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxcd
from benchmarks import experiment as ex
from jaxcd.errors import JaxcdError
from jaxcd.pairwise import (
    BoundedPolynomial,
    CausePair,
    Direction,
    Estimator,
    Logistic,
    Monomial,
    NeuralNetwork,
    PairResult,
    Polynomial,
    Reference,
    Simulation,
    SupportVector,
    challenge,
    pair_accuracy_of,
    simulated,
    tuebingen,
)
from jaxcd.pairwise.anm import anm_batch
from jaxcd.pairwise.anm_scores import (
    AnmScore,
    HSICScore,
    KendallScore,
    LogIQRScore,
    Protect,
    SpearmanScore,
)
from jaxcd.pairwise.pairs import TuebingenVersion
from jaxcd.privacy import NO_PRIVACY, Budget, Ledger, SimulatedNoise

EPSILONS = (0.5, 1.0, 2.0)
#: at which the noise is far below every difference of scores
EXACT = 1e6
DRAWS = 200
#: at which curves are kept
RATES = tuple(round(0.05 * i, 2) for i in range(1, 21))
SCORES: dict[str, AnmScore] = {
    "HSIC": HSICScore(),
    "Spearman": SpearmanScore(),
    "Kendall": KendallScore(),
    "log IQR": LogIQRScore(),
}
DRAWN = (
    "ANM, HSIC",
    "RECI, polynomial 3",
    "IGCI, uniform, slope",
    "CDS",
    "DirectLiNGAM (lingam)",
    "private RECI",
    "private ANM, HSIC, all rows",
)
Pairs = Sequence[CausePair]
#: answers to pairs, and for private methods the scale of the Laplace noise at epsilon 1, one a pair
Answers = tuple[list[PairResult], list[float] | None]


@dataclass(frozen=True)
class Method:
    """answer: of many pairs.  private: answers are exact differences with a noise scale.  compiles:
    a first pass is not counted.
    """

    label: str
    answer: Callable[[Pairs], Answers]
    private: bool = False
    compiles: bool = False


def outwards(values: np.ndarray) -> tuple[float, float]:
    """The range of the values, rounded outwards to a tenth of its power of ten."""
    low, high = float(values.min()), float(values.max())
    step = 10.0 ** (np.floor(np.log10(high - low)) - 1)
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step)


def bounds_of(pair: CausePair) -> tuple[tuple[float, float], tuple[float, float]]:
    """What stands in for public bounds: these measure the noise only."""
    return outwards(pair.x), outwards(pair.y)


def unscored(direction: Direction = Direction.UNDECIDED) -> PairResult:
    """An answer without a score."""
    ledger = Ledger(NO_PRIVACY)
    return PairResult(direction, 0.0, None, None, None, ledger.guarantee, ledger.spent)


def _each(function: Callable[..., PairResult], **options: Any) -> Callable[[Pairs], Answers]:
    def answer(pairs: Pairs) -> Answers:
        results = []
        for pair in pairs:
            try:
                results.append(function(pair.x, pair.y, budget=NO_PRIVACY, **options))
            except JaxcdError:
                results.append(unscored())
        return results, None

    return answer


def _anm(score: AnmScore) -> Callable[[Pairs], Answers]:
    return lambda pairs: (
        list(
            anm_batch(
                [(p.x, p.y) for p in pairs], budget=NO_PRIVACY, key=jax.random.key(0), score=score
            )
        ),
        None,
    )


def exact_answers(results: Iterable[PairResult]) -> Answers:
    """Answers at epsilon = ``EXACT``, and their noise at epsilon 1."""
    listed = list(results)
    return listed, [result.info["noise_scale"] * EXACT for result in listed]


def exact_anm(
    pairs: Pairs, *, score: AnmScore, protect: Protect, seed: int = 0, penalty: float | None = None
) -> Answers:
    """Exact differences of a private ANM's scores: its split, bandwidths and penalty, and the scale
    of its noise.
    """
    return exact_answers(
        anm_batch(
            [(pair.x, pair.y) for pair in pairs],
            budget=Budget(EXACT),
            key=jax.random.key(seed),
            score=score,
            protect=protect,
            bounds=[bounds_of(pair) for pair in pairs],
            noise=SimulatedNoise(jax.random.key(1)),
            penalty=penalty,
            same_people=False,
        )
    )


def exact_reci(pairs: Pairs) -> Answers:
    """Exact differences of a private RECI's errors, and the scale of its noise."""
    noise = SimulatedNoise(jax.random.key(1))
    return exact_answers(
        jaxcd.reci(
            pair.x,
            pair.y,
            budget=Budget(EXACT),
            regressor=BoundedPolynomial(),
            bounds=bounds_of(pair),
            noise=noise,
        )
        for pair in pairs
    )


def _lingam(pairs: Pairs) -> Answers:
    import lingam

    found = []
    for pair in pairs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = lingam.DirectLiNGAM().fit(np.column_stack([pair.x, pair.y])).causal_order_[0]
        found.append(unscored(Direction.X_TO_Y if first == 0 else Direction.Y_TO_X))
    return found, None


def methods(*, quick: bool) -> list[Method]:
    """All of them; peers where they are installed."""
    found = [Method(f"ANM, {name}", _anm(score), compiles=True) for name, score in SCORES.items()]
    regressors = {"polynomial 3": Polynomial(3), "bounded polynomial": BoundedPolynomial()}
    if not quick:
        regressors |= {
            "linear": Polynomial(1),
            "polynomial 2": Polynomial(2),
            "polynomial 5": Polynomial(5),
        }
        regressors |= {"monomial 2": Monomial(2), "monomial 3": Monomial(3), "logistic": Logistic()}
        if importlib.util.find_spec("sklearn") is None:
            print(
                "RECI with a support vector machine and a neural network is left out: "
                "scikit-learn is not installed (pip install scikit-learn)"
            )
        else:
            regressors |= {"support vector": SupportVector(), "neural network": NeuralNetwork()}
    found += [
        Method(f"RECI, {name}", _each(jaxcd.reci, regressor=regressor))
        for name, regressor in regressors.items()
    ]
    found += [
        Method(
            f"IGCI, {reference.value}, {estimator.value}",
            _each(jaxcd.igci, reference=reference, estimator=estimator),
        )
        for reference in Reference
        for estimator in Estimator
    ]
    found.append(Method("CDS", _each(jaxcd.cds)))
    found.append(Method("private RECI", exact_reci, private=True))
    for protect, words in ((Protect.BOTH, "all rows"), (Protect.TEST, "test half")):
        for name, score in SCORES.items():
            if protect is Protect.TEST or name in ("HSIC", "log IQR"):
                label = f"private ANM, {name}, {words}"
                found.append(
                    Method(
                        label,
                        lambda pairs, s=score, p=protect: exact_anm(pairs, score=s, protect=p),
                        True,
                        True,
                    )
                )
    if importlib.util.find_spec("lingam") is None:
        print("lingam is left out: it is not installed (pip install lingam)")
    else:
        found.append(Method("DirectLiNGAM (lingam)", _lingam))
    return found


def noisy(answers: Answers, *, epsilon: float, rng: np.random.Generator) -> list[PairResult]:
    """Exact differences with fresh Laplace noise."""
    results, scales = answers
    assert scales is not None
    drawn = []
    for result, scale in zip(results, scales, strict=True):
        sign = 1.0 if result.direction is Direction.X_TO_Y else -1.0
        value = (sign * result.margin) + rng.laplace(0.0, scale / epsilon)
        drawn.append(
            dataclasses.replace(
                result,
                direction=Direction.X_TO_Y if value > 0 else Direction.Y_TO_X,
                margin=abs(value),
            )
        )
    return drawn


def evaluate(results: Sequence[Sequence[PairResult]], pairs: Pairs) -> dict[str, Any]:
    """Means over several lists of answers to the same pairs; the interval too is a mean."""
    each = [pair_accuracy_of(drawn, pairs) for drawn in results]
    curves = [np.interp(RATES, found.decision_rates, found.accuracies) for found in each]
    return {
        **{
            name: ex.mean(getattr(found, name) for found in each)
            for name in ("accuracy", "lower", "upper", "area")
        },
        "n_pairs": each[0].n_pairs,
        "curve": [round(float(value), 4) for value in np.mean(curves, axis=0)],
    }


def collections(data: Path, *, rows: int | None, quick: bool) -> dict[str, list[CausePair]]:
    """The pairs of each collection; with ``rows`` a random part of the longer ones, with ``quick``
    the first 12.
    """
    found = {
        "Tuebingen": tuebingen(data).pairs,
        "SIM": simulated(data, Simulation.SIM).pairs,
        "SIM-c": simulated(data, Simulation.SIM_C).pairs,
        "challenge": challenge(data).pairs,
    }
    return {
        name: [thinned(pair, rows) for pair in (pairs[:12] if quick else pairs)]
        for name, pairs in found.items()
    }


def thinned(pair: CausePair, rows: int | None) -> CausePair:
    """At most ``rows`` records, the same ones each time; fewer are left as they are."""
    if rows is None or pair.n <= rows:
        return pair
    kept = np.sort(np.random.default_rng(0).choice(pair.n, rows, replace=False))
    if min(np.ptp(pair.x[kept]), np.ptp(pair.y[kept])) == 0:
        return pair
    return dataclasses.replace(pair, x=pair.x[kept], y=pair.y[kept])


def plot(rows: Sequence[ex.Row], path: Path) -> None:
    """Accuracy against decision rate, a panel a collection."""
    sets = list(dict.fromkeys(row.data for row in rows))
    figure, axes = ex.panels(1, len(sets), width=3.2, height=3.2, sharey=True)
    for ax, name in zip(axes[0], sets, strict=True):
        for row in rows:
            shown = row.data == name and row.method in DRAWN and row.curve is not None
            if shown and row.epsilon in (None, 1.0):
                words, style = ("", "-") if row.epsilon is None else (", epsilon = 1", "--")
                look = {"color": f"C{DRAWN.index(row.method)}", "label": row.method + words}
                ax.plot(RATES, row.curve, style, **look)
        ax.axhline(0.5, color="grey", linewidth=0.8)
        ax.set(title=name, xlabel="decision rate", ylim=(0, 1.03))
    axes[0, 0].set_ylabel("weighted accuracy")
    ex.save_picture(figure, path, legend=3)


def measure(
    method: Method, name: str, pairs: list[CausePair], other_weights: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The method's rows on a collection; on Tuebingen under both versions' weights."""
    if method.compiles:
        method.answer(pairs)
    with ex.Clock() as clock:
        answers = method.answer(pairs)
    versions = {name: pairs}
    if name == "Tuebingen":
        reweighted = [
            dataclasses.replace(pair, weight=other_weights.get(pair.name, 0.0)) for pair in pairs
        ]
        versions = {"Tuebingen, 108": pairs, "Tuebingen, 100": reweighted}
    rows = []
    for label, weighted in versions.items():
        for epsilon in EPSILONS if method.private else (None,):
            several = [answers[0]]
            if epsilon is not None:
                rng = np.random.default_rng(7)
                several = [noisy(answers, epsilon=epsilon, rng=rng) for _ in range(DRAWS)]
            found = evaluate(several, weighted)
            if not any(result.margin for result in answers[0]):
                found |= {"area": None, "curve": None}  # no scores to rank by
            rows.append({"data": label, "epsilon": epsilon, **found, "seconds": clock.seconds})
    return rows


def measure_peer(pairs: list[CausePair]) -> dict[str, Any]:
    """Seconds a pair of causal-learn's ANM and of ours, in turn on the same pairs."""
    if importlib.util.find_spec("causallearn") is None:
        raise ex.LeftOut("causal-learn is not installed (pip install causal-learn)")
    from causallearn.search.FCMBased.ANM.ANM import ANM

    def theirs(pair: CausePair) -> Direction:
        columns = ((c[:, None] - c.mean()) / c.std() for c in (pair.x, pair.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forward, backward = ANM().cause_or_effect(*columns)
        return Direction.X_TO_Y if forward > backward else Direction.Y_TO_X

    theirs(dataclasses.replace(pairs[0], x=pairs[0].x[:60], y=pairs[0].y[:60]))  # imports
    with ex.Clock() as clock:
        answers = [theirs(pair) for pair in pairs]
    ours = ex.best(lambda: _anm(HSICScore())(pairs))
    return {
        "peer": "ANM (causal-learn)",
        "ours": "ANM, HSIC",
        "n_pairs": len(pairs),
        "n_samples": pairs[0].n,
        "right": sum(answer is pair.direction for answer, pair in zip(answers, pairs, strict=True)),
        "seconds_per_pair": clock.seconds / len(pairs),
        "our_seconds_per_pair": ours / len(pairs),
        "ratio": clock.seconds / ours,
    }


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Every method on every collection."""
    sets = collections(chosen.data, rows=chosen.rows, quick=chosen.quick)
    others = tuebingen(chosen.data, version=TuebingenVersion.PAIRS_100).pairs
    weights = {pair.name: pair.weight for pair in others}
    for method in methods(quick=chosen.quick):
        if chosen.methods is None or any(word in method.label for word in chosen.methods):
            for name, pairs in sets.items():
                yield (name, method.label), measure, method, name, pairs, weights
    peers = []
    if chosen.peer_pairs > 0:
        try:
            peers.append(measure_peer(sets["SIM"][: chosen.peer_pairs]))
        except ex.LeftOut as reason:
            print(f"causal-learn is left out: {reason}")
    record.write(peers=peers, rates=RATES)
    for row in peers:
        print(
            f"{row['peer']}: {row['seconds_per_pair']:.3g} s a pair of {row['n_samples']} rows, "
            f"{row['right']} of {row['n_pairs']} right; {row['ours']}: "
            f"{row['our_seconds_per_pair']:.3g} s a pair; ratio {row['ratio']:.3g}"
        )


#: ``--data`` of all benchmarks on pairs
PAIRS = ex.data_option(
    "cause_effect_pairs and kaggle_cause_effect",
    needed="no pairs: give --data FOLDER or set JAXCD_DATA",
)
EXPERIMENT = ex.Experiment(
    "pairs",
    __doc__,
    ("collection", "method", "data", "epsilon"),
    jobs,
    columns=ex.columns_of(
        "data; method; epsilon:g; accuracy:.3f",
        ex.Column("95 % interval", lambda row: f"{row.lower:.2f} to {row.upper:.2f}"),
        "area:.3f; seconds:.2f",
    ),
    options=(
        PAIRS,
        ex.one_count("--rows", "most records of a pair", quick=300),
        ex.names("--methods", "only methods whose label contains one of these words"),
        ex.Option("--peer-pairs", "pairs for causal-learn's ANM, 0 for none", 5, 1, kind=int),
    ),
    settings=ex.kept(
        "rows", draws=DRAWS, bounds="the pair's own range rounded outwards: measures the noise only"
    ),
    draw=plot,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
