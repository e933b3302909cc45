"""The claims of :mod:`benchmarks.papers`: what five papers print, and newer ones state.  Those on
local privacy, pairs and FCI are in :mod:`benchmarks.papers_local`.
"""

from __future__ import annotations

from functools import partial

from benchmarks.papers_local import LOCAL, PAIRS, PRIV_FCI
from benchmarks.papers_results import Claim, Found, Results, Verdict, close, shown
from benchmarks.papers_theory import NEWER, PCD_THEORY, PRIV_PC_THEORY, PRIVATE_ANM
from benchmarks.pcd_figure2 import RUNS
from benchmarks.priv_pc_tests import ORDERS, PUBLISHED_TESTS

REPRODUCED, CONTRADICTED = Verdict.REPRODUCED, Verdict.CONTRADICTED
NOT_COMPARABLE = Verdict.NOT_COMPARABLE
NOT_AT_HAND = "number not at hand"
#: networks on which Priv-PC was not run at all prices
FURTHER = ("child", "alarm")
OWN = ("cancer", "earthquake", "survey", "asia", "sachs", "child", "alarm")


def _priv_pc(
    network: str, entry: str, method: str = "Priv-PC, published", epsilon: float | None = 1.0
):
    return lambda results: results.mean(
        "priv_pc", entry, network=network, method=method, epsilon=epsilon
    )


def _speed(network: str):
    return lambda results: (
        _priv_pc(network, "seconds", "EM-PC, published")(results)
        / _priv_pc(network, "seconds")(results)
    )


def _perfect(network: str):
    """Reproduced where the largest mean over the prices of Priv-PC is within .02 of 1."""

    def found(results: Results) -> Found:
        rows = results.rows("priv_pc", network=network, method="Priv-PC, published")
        best = max(row.arc_f1_non_private for row in rows)
        words = f"{best:.2f} (of {len(rows)} prices"
        near = [row for row in rows if abs(row.arc_f1_non_private - 1) <= 0.02]
        if near:
            first = min(near, key=lambda row: row.epsilon)
            words += f"; first at {first.epsilon:g} a round, a total of {first.total_epsilon:,.0f}"
        return f"{words})", REPRODUCED if near else CONTRADICTED

    return found


def _against_truth(network: str):
    """Largest over the prices of Priv-PC, and PC without privacy with its test."""
    return shown(
        lambda results: max(
            row.arc_f1
            for row in results.rows("priv_pc", network=network, method="Priv-PC, published")
        ),
        _priv_pc(network, "arc_f1", "PC, ConditionalTau", None),
    )


def _at_totals(network: str, *methods: str):
    """Arc F1 of methods at epsilon 1 a round, each with its total."""

    def found(results: Results) -> Found:
        words = (
            f"{_priv_pc(network, 'arc_f1', method)(results):.2f} (total "
            f"{_priv_pc(network, 'total_epsilon', method)(results):,.0f})"
            for method in methods
        )
        return " / ".join(words), NOT_COMPARABLE

    return found


def _tests(
    network: str, results: Results, *, algorithm: str = "Priv-PC", epsilon: float | None = 1.0
) -> float:
    """The tests at the largest level."""
    rows = results.rows("priv_pc_tests", network=network, algorithm=algorithm, epsilon=epsilon)
    return max(rows, key=lambda row: row.max_level).tests


def _all_tests(network: str, published: int):
    """Ours, and what comes nearest in any way of counting."""

    def found(results: Results) -> Found:
        near = min(
            (
                row
                for row in results.rows("priv_pc_tests", "nearest", network=network)
                if row.published == published
            ),
            key=lambda row: abs(row.ours - published),
        )
        ours = _tests(network, results)
        words = (
            f"{ours:,.0f}; nearest way of counting {near.ours:,.0f} ({near.algorithm}, "
            f"{near.counted}, level {near.max_level}, epsilon {near.epsilon:g})"
        )
        return words, NOT_COMPARABLE

    return found


def _one_way(results: Results) -> Found:
    """The one way of counting that comes nearest to all published numbers, and by how much."""
    found: dict[tuple[str, str, float, str], dict[str, float]] = {}
    for name in PUBLISHED_TESTS:
        rows = results.rows("priv_pc_tests", network=name)
        most = max(row.max_level for row in rows)
        for row in (row for row in rows if row.epsilon is not None):
            level = "largest level" if row.max_level == most else f"level {row.max_level}"
            for way in ("tests", "sieve", "different"):
                one = row.algorithm, level, row.epsilon, way
                found.setdefault(one, {})[name] = row[way]

    def off(numbers: dict[str, float]) -> float:
        return max(abs(numbers[name] / wanted - 1) for name, wanted in PUBLISHED_TESTS.items())

    whole = [entry for entry in found.items() if len(entry[1]) == len(PUBLISHED_TESTS)]
    (algorithm, level, epsilon, way), numbers = min(whole, key=lambda entry: off(entry[1]))
    counts = " / ".join(f"{numbers[name]:,.0f}" for name in PUBLISHED_TESTS)
    words = f"{counts} ({algorithm}, {way}, {level}, epsilon {epsilon:g}; off by up to"
    return f"{words} {off(numbers):.0%})", NOT_COMPARABLE


SECOND_HAND = "The number as it was reported to us; the paper's own table was not at hand."
COUNTED = (
    "What the table counts, and at which epsilon, is not known to us, and the code's data files "
    "were not at hand. Ours counts as the authors' code does: original order, both ends of a pair, "
    "sieve and examination apart, at epsilon 1 a round and the code's largest level. The number "
    "moves with all of these: each published one is near some way of counting. All in "
    "priv_pc_tests.json. " + SECOND_HAND
)
PRIV_PC = (
    *(
        Claim(
            f"table 3, {name.capitalize()}",
            "tests of Priv-PC",
            f"{number:,}",
            NOT_COMPARABLE,
            _all_tests(name, number),
            COUNTED if name == "asia" else "As Asia.",
        )
        for name, number in PUBLISHED_TESTS.items()
    ),
    Claim(
        "table 3, all three",
        "the one way of counting that comes nearest to all three together",
        "95 / 165 / 1,843",
        NOT_COMPARABLE,
        _one_way,
        "On data sampled from the networks. No algorithm, level, epsilon and way of counting that "
        "we tried gives all three.",
    ),
    Claim(
        "table 3, order",
        "tests of PC without privacy, each pair and set once, original / stable order, for Asia, "
        "Sachs and Alarm",
        "95, 165, 1,843 (of Priv-PC)",
        NOT_COMPARABLE,
        shown(
            *(
                partial(_tests, name, algorithm=order, epsilon=None)
                for name in PUBLISHED_TESTS
                for order in ORDERS
            ),
            form=",.0f",
        ),
        "The order alone moves the number by a tenth (Asia, Sachs) or a fifth (Alarm), which does "
        "not explain that ours of Priv-PC is 1.6, 4.0 and 2.0 times the published one.",
    ),
    Claim(
        "abstract; run-time table",
        "times faster than EM-PC (Cancer / Earthquake / Survey / Asia / Sachs / Child / Alarm)",
        "10.61 to 293.87",
        NOT_COMPARABLE,
        shown(*map(_speed, OWN), form=".1f"),
        "Both are ours, compiled, and their ratio is that of our programs, on a machine with other "
        "work, more of it at some times than at others. Published: abstract, NeurIPS version.",
    ),
    Claim(
        "abstract, first version",
        "the same",
        "10.61 to 32.85",
        NOT_COMPARABLE,
        shown(*map(_speed, OWN), form=".1f"),
        "As above; the arXiv version of June 2020 had four data sets.",
    ),
    *(
        Claim(
            f"figure of F1, {name.capitalize()}",
            "Priv-PC reaches perfect accuracy: largest arc F1 over the prices, against PC without "
            "privacy with the same test",
            "1.00",
            REPRODUCED,
            _perfect(name),
            "Within .02. The paper's graphs to compare with are, by its code, graphs that a test "
            "found. The totals are the method's own, which is not proved.",
        )
        for name in OWN
    ),
    *(
        Claim(
            f"figure of F1, {name.capitalize()}",
            "the same against the true CPDAG: Priv-PC / PC without privacy with the same test",
            "(not in the paper)",
            NOT_COMPARABLE,
            _against_truth(name),
            "The 1.00 above is against the graph of a test. PC without privacy does not reach 1 "
            "either."
            if name != "earthquake"
            else "The 1.00 above is against the graph of a test, which is the truth here.",
        )
        for name in OWN
    ),
    *(
        Claim(
            f"figure of F1, {name.capitalize()}",
            "arc F1 against the truth at epsilon 1 a round, and the total that it comes to",
            NOT_AT_HAND,
            NOT_COMPARABLE,
            shown(_priv_pc(name, "arc_f1"), _priv_pc(name, "total_epsilon")),
            "Further prices, not all 21, for their time: priv_pc.json and the list below."
            if name in FURTHER
            else "All 21 prices of the authors' code: priv_pc.json.",
        )
        for name in OWN
    ),
    *(
        Claim(
            f"table 2, {name.capitalize()}",
            "arc F1 against the truth, epsilon 1 a round: Priv-PC / no subsample / SVT-PC / EM-PC",
            NOT_AT_HAND,
            NOT_COMPARABLE,
            _at_totals(
                name,
                "Priv-PC, published",
                "Priv-PC, published, no subsample",
                "SVT-PC, published",
                "EM-PC, published",
            ),
            "Equal prices of a round are not equal totals.",
        )
        for name in OWN
    ),
    *PRIV_PC_THEORY,
)


def _figure_1(method: str, entry: str, n: int, level: int, epsilon: float | None = None):
    return lambda results: results.mean(
        "pcd_figure1", entry, method=method, n_samples=n, level=level, epsilon=epsilon
    )


def _figure_2(name: str, n: int, method: str, epsilon: float | None):
    return lambda results: results.mean(
        "pcd_figure2", "arc_f1", structure=name, n_samples=n, method=method, epsilon=epsilon
    )


FIGURE_2 = (
    ("RCIT without privacy", "PC, RCIT, no privacy", None),
    ("K + I, no noise", "PCD, K + I", None),
    ("K + I, epsilon 1", "PCD, K + I", 1.0),
    ("n lambda / 2, no noise", "PCD, n lambda / 2", None),
    ("n lambda / 2, epsilon 1", "PCD, n lambda / 2", 1.0),
)
LAMBDA, IDENTITY = "PCD's RCIT, n lambda / 2", "PCD's RCIT, K + I"
PCD = (
    *(
        Claim(
            f"figure 1, type I, n = {n}",
            f"level .05, |Z| = {level}, no noise; {reading}",
            ".05 (the level)",
            verdict,
            close(_figure_1(f"{method}, no privacy", "type_1", n, level), 0.05, within=0.05),
            why + " 100 data sets; the figure itself was not at hand.",
        )
        for n in (200, 500)
        for level in (1, 3, 5)
        for reading, method, verdict, why in (
            (
                "K + I",
                IDENTITY,
                CONTRADICTED if level == 5 else REPRODUCED,
                "The sine of a sum of five columns is regressed too little."
                if level == 5
                else "Within .05 of the level.",
            ),
            (
                "n lambda / 2",
                LAMBDA,
                CONTRADICTED,
                "The objective as printed, with lambda = 1, hardly regresses and rejects every "
                "true null (PRIVACY.md H5). The other reading of lambda = 1 keeps the "
                "level with up to three columns.",
            ),
        )
    ),
    *(
        Claim(
            f"figure 1, type II, n = {n}",
            f"|Z| = {level}, no noise; K + I",
            "about .01",
            REPRODUCED,
            close(_figure_1(f"{IDENTITY}, no privacy", "type_2", n, level), 0.01, within=0.02),
            "Within .02. The number as it was reported to us; the figure itself was not at hand.",
        )
        for n in (200, 500)
        for level in (1, 3, 5)
    ),
    *(
        Claim(
            f"figure 1, type II, n = {n}",
            "|Z| = 3, epsilon = 1; K + I",
            "about .01",
            NOT_COMPARABLE,
            shown(_figure_1(f"{IDENTITY}, published noise", "type_2", n, 3, 1.0), form=".3f"),
            "Our noise may not be the paper's: Delta_P = B - p is a reconstruction, as the text "
            "was not at hand. With it B is 1 at these sizes, as Delta_R is above the statistic, "
            "so that the noise has the scale 4 / epsilon and hides everything: no epsilon up to "
            "20 comes below .3.",
        )
        for n in (200, 500)
    ),
    Claim(
        "figure 1, Kendall",
        "type I with Priv-PC's noise at epsilon 1, n = 500, |Z| = 1 / 3 / 5",
        NOT_AT_HAND,
        NOT_COMPARABLE,
        shown(*(_figure_1("Kendall, Priv-PC's noise", "type_1", 500, z, 1.0) for z in (1, 3, 5))),
        "Without noise it is .03 / 1.00 / 1.00: strata are cells of Z, too coarse to separate "
        "three columns and more.",
    ),
    *(
        Claim(
            f"figure 2, {name.capitalize()}",
            f"arc F1 at n = {n:,}: " + " / ".join(words for words, *_ in FIGURE_2[first:]),
            NOT_AT_HAND,
            NOT_COMPARABLE,
            shown(*(_figure_2(name, n, *line[1:]) for line in FIGURE_2[first:])),
            f"Models: {RUNS[name]}. The figure's curves could not be read; all rows are in "
            "pcd_figure2.json, and those that were not run in the list below.",
        )
        for name, n, first in (
            ("cancer", 8_000, 0),
            ("asia", 8_000, 0),
            ("child", 2_000, 0),
            ("child", 4_000, 1),
            ("alarm", 2_000, 1),
        )
    ),
    Claim(
        "figure 3, Sachs",
        "arc F1 of 17 arcs: K + I, no noise / K + I at epsilon 1 a test / Kendall (Priv-PC) at 1 a "
        "round; no total is proved, ours are 83 and 73",
        NOT_AT_HAND,
        NOT_COMPARABLE,
        shown(
            *(
                lambda r, m=method, e=epsilon: r.mean("pcd_sachs", "arc_f1", method=m, epsilon=e)
                for method, epsilon in (
                    ("PCD, K + I", None),
                    ("PCD, K + I", 1.0),
                    ("Priv-PC, published", 1.0),
                )
            )
        ),
        "Which edge list and which cells the paper takes was not at hand.",
    ),
    *PCD_THEORY,
)


PAPERS = (
    ("Priv-PC: Wang, Pang, Song 2020", PRIV_PC),
    ("PCD: Zhang, Xia, Ren, Guan, Zhou 2023", PCD),
    ("Private ANM: Kusner, Sun, Sridharan, Weinberger 2016", PRIVATE_ANM),
    ("Local privacy: Binkyte et al. 2024", LOCAL),
    ("The pairwise methods of that study, as others published them", PAIRS),
    ("Priv-FCI: Varici 2022", PRIV_FCI),
    ("Newer work", NEWER),
)
