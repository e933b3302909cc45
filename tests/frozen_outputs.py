"""What every search, release, decider and test gives at fixed keys and simulated noise, written
down.

``python -m tests.frozen_outputs --write`` writes ``tests/frozen_outputs.json``;
``python -m tests.frozen_outputs`` compares bit by bit, on the machine that wrote it.
``tests/test_frozen_outputs.py`` compares what must be the same on every machine: names, graphs,
decisions; and numbers to five digits.  A change of structure must change nothing here.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxcd
from jaxcd import local, published
from jaxcd.graphs import MixedGraph
from jaxcd.pairwise import ScoreRelease
from jaxcd.pairwise.anm_scores import IQRMechanism

PATH = Path(__file__).with_suffix(".json")

KEY = jax.random.key(11)
NOISE = jaxcd.SimulatedNoise(jax.random.key(12))
BUDGET, PURE = jaxcd.Budget(2.0, 1e-5), jaxcd.Budget(2.0)
Outputs = Iterator[tuple[str, Callable[[], Any]]]


def planned(plan: jaxcd.advice.Plan) -> list[Any]:
    return [plan.noise, plan.smallest_share, plan.words]


def plain(value: Any) -> Any:
    """As JSON: numbers as they are, arrays as a few of their numbers and their sum, graphs as
    edges.
    """
    if isinstance(value, MixedGraph):
        return sorted(str(edge) for edge in value.edges())
    if isinstance(value, (bool, str, int)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.ndarray):
        array = np.asarray(value, dtype=np.float64).ravel()
        return {
            "shape": list(value.shape),
            "first": array[:4].tolist(),
            "sum": float(array.sum()),
            "norm": float(np.sqrt((array**2).sum())),
        }
    if isinstance(value, Mapping):
        return {
            name if isinstance(name, str) else " ".join(map(str, sorted(name))): plain(part)
            for name, part in value.items()
        }
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return str(value)


def discovered(run: jaxcd.DiscoveryResult) -> Any:
    """Graph, sets, spending, and what was released of margins and scores."""
    info = {
        name: run.info[name]
        for name in ("released_margins", "score", "ambiguous_triples", "noise_scale")
        if name in run.info
    }
    found = {
        "graph": run.graph,
        "sets": run.separating_sets,
        "exhausted": run.exhausted,
        "spent": run.spent.epsilon,
        "info": info,
    }
    if run.confidence is not None:
        found["confidence"] = run.confidence.adjacency
    return plain(found)


def paired(result: jaxcd.pairwise.PairResult) -> Any:
    """Direction and what was released."""
    return plain(
        {
            "direction": result.direction.value,
            "margin": result.margin,
            "scores": [result.forward, result.backward],
        }
    )


def discrete(n: int = 2_000) -> jaxcd.Dataset:
    return jaxcd.networks.load("asia").sample(n, key=jax.random.key(0))


def numeric(n: int = 600) -> jaxcd.Dataset:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, n))
    c = np.sin(a) + 0.5 * b + 0.3 * rng.normal(size=n)
    d = 0.8 * c + 0.4 * rng.normal(size=n)
    columns = np.clip(np.column_stack([a, b, c, d]), -4, 4)
    return jaxcd.Dataset.from_array(
        columns,
        names=list("abcd"),
        domain=jaxcd.Domain({name: jaxcd.Numeric(-4, 4) for name in "abcd"}),
    )


def mixed(n: int = 800) -> jaxcd.Dataset:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=n), rng.integers(0, 3, n)
    c = a + (b == 1) + 0.4 * rng.normal(size=n)
    columns = np.column_stack([np.clip(a, -4, 4), b, np.clip(c, -4, 4)])
    domain = jaxcd.Domain(
        {"a": jaxcd.Numeric(-4, 4), "b": jaxcd.Categorical((0, 1, 2)), "c": jaxcd.Numeric(-4, 4)}
    )
    return jaxcd.Dataset.from_array(columns, names=list("abc"), domain=domain)


def by_tests() -> Outputs:
    data, numbers = discrete(), numeric()
    private = {
        "CovarianceNorm": jaxcd.CovarianceNorm(),
        "PooledCovariance": jaxcd.PooledCovariance(),
        "KendallTau": jaxcd.KendallTau(),
        "Spearman": jaxcd.Spearman(),
    }
    public = {**private, "ChiSquare": jaxcd.ChiSquare(), "GTest": jaxcd.GTest()}
    of_numbers = {
        "FisherZ": jaxcd.FisherZ(),
        "StratifiedRanks": jaxcd.StratifiedRanks(),
        "HSIC": jaxcd.HSIC(),
        "RCIT": jaxcd.RCIT(),
        "GCM": jaxcd.GCM(),
        "KCI": jaxcd.KCI(),
        "BoundedRCIT": jaxcd.BoundedRCIT(n_features=20, n_permutations=19),
    }

    def one(data: Any, test: Any, given: tuple[str, ...], budget: Any) -> Any:
        x, y = data.names[0], data.names[-1]
        answer = jaxcd.ci_test(
            data,
            x,
            y,
            given=given,
            test=test,
            budget=budget,
            key=KEY,
            noise=None if budget is jaxcd.NO_PRIVACY else NOISE,
        )
        return plain([answer.statistic, answer.pvalue, answer.margin, answer.independent])

    for name, test in public.items():
        yield (
            f"ci_test {name}",
            lambda test=test: one(data, test, (data.names[2],), jaxcd.NO_PRIVACY),
        )
    for name, test in of_numbers.items():
        given = () if name == "HSIC" else ("c",)
        yield (
            f"ci_test {name}",
            lambda test=test, given=given: one(numbers, test, given, jaxcd.NO_PRIVACY),
        )
    for name, test in private.items():
        yield (
            f"ci_test {name}, private",
            lambda test=test: one(data, test, (data.names[2],), BUDGET),
        )
    deciders = {
        "Threshold": jaxcd.Threshold(),
        "LevelwiseGaussian": jaxcd.LevelwiseGaussian(),
        "SparseVector": jaxcd.SparseVector(),
        "SieveAndExamine": jaxcd.SieveAndExamine(),
        "NoisyThreshold": jaxcd.NoisyThreshold(),
        "ExponentialSelect": jaxcd.ExponentialSelect(),
        "NoisyThreshold, Gaussian": jaxcd.NoisyThreshold(
            noise=jaxcd.decisions.Noise.GAUSSIAN, n_queries=40
        ),
        "Scheduled SparseVector": jaxcd.Scheduled(jaxcd.SparseVector()),
        "Scheduled NoisyThreshold": jaxcd.Scheduled(jaxcd.NoisyThreshold()),
        "Scheduled ExponentialSelect": jaxcd.Scheduled(jaxcd.ExponentialSelect()),
        "Scheduled SieveAndExamine": jaxcd.Scheduled(jaxcd.SieveAndExamine()),
    }
    for search in (jaxcd.pc, jaxcd.fci):
        for name, decider in deciders.items():
            budget = jaxcd.NO_PRIVACY if name == "Threshold" else jaxcd.Budget(20.0, 1e-5)
            noise = None if name == "Threshold" else NOISE
            yield (
                f"{search.__name__} {name}",
                lambda search=search, decider=decider, budget=budget, noise=noise: discovered(
                    search(
                        data,
                        test=private["CovarianceNorm"],
                        decider=decider,
                        budget=budget,
                        key=KEY,
                        noise=noise,
                    )
                ),
            )
    yield (
        "pc NoisyRank",
        lambda: discovered(
            jaxcd.pc(
                numbers,
                test=of_numbers["BoundedRCIT"],
                decider=jaxcd.NoisyRank(),
                budget=jaxcd.Budget(1e4),
                key=KEY,
                noise=NOISE,
                max_level=1,
            )
        ),
    )
    for name in ("CovarianceNorm", "KendallTau"):
        yield (
            f"tree_pc {name}",
            lambda name=name: discovered(
                jaxcd.tree_pc(data, test=private[name], budget=BUDGET, key=KEY, noise=NOISE)
            ),
        )
    yield (
        "tree_pc StratifiedRanks",
        lambda: discovered(
            jaxcd.tree_pc(
                numbers,
                test=jaxcd.StratifiedRanks(),
                budget=jaxcd.Budget(50.0, 1e-5),
                key=KEY,
                noise=NOISE,
            )
        ),
    )
    for algorithm in (
        jaxcd.Algorithm.AUTO,
        jaxcd.Algorithm.FCI,
        jaxcd.Algorithm.TREE,
        jaxcd.Algorithm.PC,
    ):
        yield (
            f"discover {algorithm.value}",
            lambda algorithm=algorithm: discovered(
                jaxcd.discover(data, algorithm=algorithm, budget=BUDGET, key=KEY, noise=NOISE)
            ),
        )
    yield (
        "discover numeric",
        lambda: discovered(jaxcd.discover(numbers, budget=BUDGET, key=KEY, noise=NOISE)),
    )
    yield (
        "discover mixed",
        lambda: discovered(
            jaxcd.discover(mixed(), budget=BUDGET, key=KEY, noise=NOISE, n_confidence_draws=2)
        ),
    )
    yield (
        "recommend",
        lambda: [
            str(jaxcd.recommend(each.domain, 10_000, budget=budget))
            for each in (data, numbers, mixed())
            for budget in (PURE, BUDGET)
            if each is data or budget.delta
        ],
    )


def bought(kind: Any, data: jaxcd.Dataset, budget: Any) -> Any:
    return jaxcd.release(data, kind, budget=budget, noise=NOISE)


def by_releases() -> Outputs:
    data, numbers, both = discrete(5_000), numeric(3_000), mixed(3_000)
    cases = {
        "Histogram": (jaxcd.Histogram(), data, PURE),
        "Marginals": (jaxcd.Marginals(), data, BUDGET),
        "Marginals, pure": (jaxcd.Marginals(), data, jaxcd.Budget(20.0)),
        "SecondMoments": (jaxcd.SecondMoments(), numbers, BUDGET),
        "SecondMoments, public units": (
            jaxcd.SecondMoments(
                centres=dict.fromkeys("abcd", 0.0), scales=dict.fromkeys("abcd", 1.0)
            ),
            numbers,
            BUDGET,
        ),
        "Features": (jaxcd.Features(), both, BUDGET),
    }
    tests = {
        "ChiSquare": jaxcd.ChiSquare(),
        "GTest": jaxcd.GTest(),
        "KendallTau": jaxcd.KendallTau(),
        "FisherZ": jaxcd.FisherZ(),
        "CanonicalCorrelation": jaxcd.releases.CanonicalCorrelation(),
    }
    for name, (kind, rows, budget) in cases.items():
        noisy = bought(kind, rows, budget)

        def numbers_of(noisy: Any = noisy) -> Any:
            _, arrays = noisy._parts()
            return plain(
                {
                    "ledger": [[row["label"], row["epsilon"], row["rho"]] for row in noisy.ledger],
                    **arrays,
                }
            )

        yield f"release {name}", numbers_of
        yield f"search {name}", lambda noisy=noisy: discovered(jaxcd.search(noisy))
        if "units" not in name and "pure" not in name:
            yield (
                f"edge_confidence {name}",
                lambda noisy=noisy: plain(
                    jaxcd.edge_confidence(
                        noisy, jaxcd.search(noisy), n_draws=2, calibrated=False
                    ).adjacency
                ),
            )
        for test, config in tests.items():
            yield (
                f"pc {test} on {name}",
                lambda noisy=noisy, config=config: _or_refusal(
                    lambda: discovered(
                        jaxcd.pc(
                            noisy, test=config, decider=jaxcd.Threshold(0.01), key=KEY, max_level=2
                        )
                    )
                ),
            )
        for score in (jaxcd.BIC(), jaxcd.BDeu()):
            for search in (jaxcd.ges, jaxcd.mmhc, jaxcd.exact_search):
                yield (
                    f"{search.__name__} {type(score).__name__} on {name}",
                    lambda noisy=noisy, score=score, search=search: _or_refusal(
                        lambda: discovered(search(noisy, score=score, key=KEY))
                    ),
                )
        yield (
            f"plan_release {name}",
            lambda kind=kind, rows=rows, budget=budget: planned(
                jaxcd.plan_release(rows.domain, rows.n_samples, kind=kind, budget=budget)
            ),
        )
    small = discrete(1_000)
    for score in (jaxcd.BIC(), jaxcd.BDeu()):
        for search in (jaxcd.ges, jaxcd.mmhc, jaxcd.exact_search):
            yield (
                f"{search.__name__} {type(score).__name__}",
                lambda score=score, search=search: discovered(
                    search(small, score=score, budget=jaxcd.NO_PRIVACY, key=KEY)
                ),
            )
    yield (
        "order_mcmc",
        lambda: discovered(
            jaxcd.order_mcmc(small, budget=jaxcd.NO_PRIVACY, key=KEY, n_steps=300, burn_in=100)
        ),
    )
    yield (
        "order_mcmc on Histogram",
        lambda: discovered(
            jaxcd.order_mcmc(
                bought(jaxcd.Histogram(), data, PURE), key=KEY, n_steps=300, burn_in=100
            )
        ),
    )


def _or_refusal(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except jaxcd.errors.JaxcdError as error:
        return f"refused: {type(error).__name__}"


def by_pairs() -> Outputs:
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 300)
    y = np.clip(x**3 + 0.2 * rng.normal(size=300), -1, 1)
    bounds = ((-1.0, 1.0), (-1.0, 1.0))
    shared: dict[str, Any] = {"bounds": bounds, "key": KEY, "noise": NOISE}
    scores = {
        "HSIC": (jaxcd.pairwise.HSICScore(), jaxcd.pairwise.Protect.BOTH, PURE),
        "Spearman": (jaxcd.pairwise.SpearmanScore(), jaxcd.pairwise.Protect.TEST, PURE),
        "Kendall": (jaxcd.pairwise.KendallScore(), jaxcd.pairwise.Protect.TEST, PURE),
        "IQR": (jaxcd.pairwise.LogIQRScore(), jaxcd.pairwise.Protect.BOTH, PURE),
        "IQR, stable": (
            jaxcd.pairwise.LogIQRScore(mechanism=IQRMechanism.PROPOSE_TEST_RELEASE),
            jaxcd.pairwise.Protect.BOTH,
            BUDGET,
        ),
        "IQR, quartiles": (
            jaxcd.pairwise.LogIQRScore(mechanism=IQRMechanism.EXPONENTIAL),
            jaxcd.pairwise.Protect.TEST,
            PURE,
        ),
    }
    for name, (score, protect, budget) in scores.items():
        for release in ScoreRelease:
            yield (
                f"anm {name}, {release.value}",
                lambda score=score, protect=protect, budget=budget, release=release: _or_refusal(
                    lambda: paired(
                        jaxcd.anm(
                            x,
                            y,
                            budget=budget,
                            score=score,
                            protect=protect,
                            release=release,
                            **shared,
                        )
                    )
                ),
            )
    yield "anm, no privacy", lambda: paired(jaxcd.anm(x, y, budget=jaxcd.NO_PRIVACY, key=KEY))
    yield "reci", lambda: paired(jaxcd.reci(x, y, budget=PURE, bounds=bounds, noise=NOISE))
    yield "reci, no privacy", lambda: paired(jaxcd.reci(x, y, budget=jaxcd.NO_PRIVACY))
    yield "igci", lambda: paired(jaxcd.igci(x, y, budget=jaxcd.NO_PRIVACY))
    yield "cds", lambda: paired(jaxcd.cds(x, y, budget=jaxcd.NO_PRIVACY))


def by_others() -> Outputs:
    data = discrete(400).select(["asia", "tub", "smoke", "lung"])
    mechanisms = (
        local.KaryResponse(2.0),
        local.CombinedKaryResponse(2.0),
        local.BoundedGeometric(0.7),
        local.ClippedGeometric(1.0),
        local.CombinedGeometric(0.3, local.Distance.MANHATTAN),
    )
    for mechanism in mechanisms:
        yield (
            f"randomise {type(mechanism).__name__}",
            lambda mechanism=mechanism: plain(local.randomise(data, mechanism, noise=NOISE).codes),
        )
    whole = discrete(1_000)
    yield "priv_pc", lambda: discovered(published.priv_pc(whole, epsilon=1.0, key=KEY))
    yield "svt_pc", lambda: discovered(published.svt_pc(whole, epsilon=1.0, key=KEY))
    yield "em_pc", lambda: discovered(published.em_pc(whole, epsilon=1.0, key=KEY))
    yield "pcd", lambda: discovered(published.pcd(numeric(200), epsilon=1.0, key=KEY))


def after_the_graph() -> Outputs:
    """Effects, falsification, GFCI; one release of several owners, and rows over devices."""
    dag = jaxcd.networks.load("asia").dag
    data, parts = discrete(5_000), [discrete(n) for n in (300, 500)]
    sold = bought(jaxcd.Histogram(), data, PURE)

    def estimated(**options: Any) -> Any:
        found = jaxcd.effect(sold, treatment="smoke", outcome="dysp", **options)
        estimate = None if math.isnan(found.estimate) else found.estimate
        return plain([estimate, found.low, found.high, found.adjustment])

    def fallen() -> Any:
        found = jaxcd.falsify(sold, dag.reverse(), n_permutations=20)
        return plain(
            [found.falsified, [[each.x, each.y, *each.given] for each in found.violations]]
        )

    def together(kind: Any) -> Any:
        sites = dict(zip("ab", parts, strict=True))
        noisy = jaxcd.federate(sites, kind, budget=BUDGET, noise=NOISE)
        return discovered(jaxcd.search(noisy))

    def on_devices() -> Any:
        rows = data.on(jax.sharding.Mesh(np.array(jax.devices()[:1]), ("rows",)))
        return discovered(jaxcd.search(bought(jaxcd.Marginals(), rows, BUDGET)))

    def tau() -> Any:
        answer = jaxcd.ci_test(
            numeric(),
            "a",
            "d",
            given=("c",),
            test=jaxcd.StratifiedTau(),
            budget=PURE,
            key=KEY,
            noise=NOISE,
        )
        return plain([answer.pvalue, answer.margin, answer.independent])

    yield "effect", lambda: estimated(graph=dag)
    yield "effect, graph of the release", lambda: estimated(n_draws=2)
    yield "falsify", fallen
    yield "gfci on Histogram", lambda: discovered(jaxcd.gfci(sold, key=KEY))
    yield "gfci, no privacy", lambda: discovered(jaxcd.gfci(data, budget=jaxcd.NO_PRIVACY, key=KEY))
    for kind in (jaxcd.Histogram(), jaxcd.Marginals()):
        yield f"federate {type(kind).__name__}", lambda kind=kind: together(kind)
    yield "Dataset.on(mesh)", on_devices
    yield "ci_test StratifiedTau, private", tau


def outputs() -> Outputs:
    """Every output by name."""
    for part in (by_tests, by_releases, by_pairs, by_others, after_the_graph):
        yield from part()


def computed() -> dict[str, Any]:
    """All outputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: call() for name, call in outputs()}


def main() -> int:
    """Writes or compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    now = json.loads(json.dumps(computed()))
    if arguments.write:
        PATH.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    before = json.loads(PATH.read_text(encoding="utf-8"))
    different = sorted(
        name for name in before.keys() | now.keys() if before.get(name) != now.get(name)
    )
    print(f"{len(before)} outputs, {len(different)} differ", *different, sep="\n  ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
