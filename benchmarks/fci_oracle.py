"""FCI with a perfect oracle: is the PAG the true one, how long does it take, and which rules were
needed?

``python -m benchmarks.fci_oracle [--quick] [--seed S] [--graphs N] [--limit STEPS] [--no-peer]
[--out FILE]``

Each graph is a random DAG with 3 to 12 observed nodes, up to 5 latent ones, and selected nodes in
half of them; a third grow around a small graph that is known to need some rule or Possible-D-SEP.
The truth is the PAG by its definition: a search through the Markov equivalence class that knows no
orientation rule.  Where the class is too large for ``--limit`` steps, the skeleton and the marks
are compared with the MAG, of which the PAG's marks are a part.  Every graph is run in two orders of
its columns.

Beside it, where it is installed (``pip install causal-learn``), causal-learn's FCI with the same
answers in the same process.  Its test object remembers answers, as its own tests do.  Times are
processor time, of one run a graph.
"""

from __future__ import annotations

import contextlib
import io
import json
import signal
import statistics
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console

import jaxcd
from benchmarks import experiment as ex
from jaxcd.discovery import fci
from jaxcd.graphs import DSeparation, MixedGraph, from_causal_learn
from tests.discovery import fci_cases, pag_reference
from tests.discovery.fci_cases import Case

CORES = (*fci_cases.POSSIBLE_D_SEP, *(core for _, core in fci_cases.RULES))
RULES = tuple(f"R{k}" for k in range(11))
SECONDS_A_RUN = 60.0  # a peer that takes longer on a graph has failed there
Run = Callable[[Case], tuple[MixedGraph, dict[str, int]]]


@dataclass(frozen=True)
class Outcome:
    """One graph and one method.  correct: None where the class was too large to search and the MAG
    agrees.
    """

    method: str
    graph: int
    correct: bool | None
    skeleton_errors: int
    wrong_marks: int
    missing_marks: int
    changed_by_order: bool
    failed: str | None
    seconds: float
    rules: dict[str, int]


def draw(rng: np.random.Generator, max_observed: int) -> Case:
    """One graph of the benchmark."""
    core = CORES[int(rng.integers(len(CORES)))]
    if rng.random() < 1 / 3 and len(core.observed) <= max_observed:
        n_more = int(rng.integers(max_observed - len(core.observed) + 1))
        return fci_cases.planted_case(rng, core, n_more=min(n_more, 6))
    return fci_cases.random_case(
        rng,
        n_observed=int(rng.integers(3, max_observed + 1)),
        n_latent=int(rng.integers(6)),
        n_selected=int(rng.choice([0, 0, 0, 1, 2, 3])),
    )


def run_jaxcd(source: Case) -> tuple[MixedGraph, dict[str, int]]:
    """Our FCI."""
    result = fci(
        None,
        test=jaxcd.Oracle(source.dag, latent=source.latent, selected=source.selected),
        decider=jaxcd.Threshold(),
        budget=jaxcd.NO_PRIVACY,
        key=None,
    )
    return result.graph, dict(result.info["rule_counts"])


def causal_learn() -> tuple[str, Run] | None:
    """The version of causal-learn, and its FCI with an oracle; None where it is not installed."""
    try:
        from importlib.metadata import version

        from causallearn.search.ConstraintBased.FCI import fci as their_fci
        from causallearn.utils.cit import CIT_Base, register_ci_test
    except ImportError:
        return None

    class Separation(CIT_Base):  # type: ignore[misc]
        """d-separation given the selected nodes, as a p-value of 0 or 1."""

        def __init__(self, data: np.ndarray, *, source: Case) -> None:
            super().__init__(data)
            self.method = "separation in a known graph"
            nodes = list(source.dag)
            self._place = [nodes.index(name) for name in source.observed]
            self._separation = DSeparation(
                source.dag, selected=[nodes.index(name) for name in source.selected]
            )
            self._answers: dict[tuple[int, int, tuple[int, ...]], float] = {}

        def __call__(self, x: int, y: int, given: Sequence[int] | None = None) -> float:
            key = (min(x, y), max(x, y), tuple(sorted(given or ())))
            if key not in self._answers:
                places = [self._place[z] for z in key[2]]
                self._answers[key] = float(
                    self._separation.separated(self._place[x], self._place[y], places)
                )
            return self._answers[key]

    register_ci_test("separation in a known graph", Separation)

    def run(source: Case) -> tuple[MixedGraph, dict[str, int]]:
        # only its shape is looked at
        rows = np.zeros((len(source.observed) + 1, len(source.observed)))
        with contextlib.redirect_stdout(io.StringIO()):  # it prints visible edges
            graph, _ = their_fci(
                rows, "separation in a known graph", show_progress=False, source=source
            )
        return from_causal_learn(np.asarray(graph.graph).astype(int), names=source.observed), {}

    return version("causal-learn"), run


class _TookTooLong(BaseException):
    """Raised by the alarm; no Exception, so that a peer's handlers let it pass."""


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer"):  # no such alarm on this system: no limit
        yield
        return

    def stop(*_: object) -> None:
        raise _TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(
    method: str,
    run: Run,
    number: int,
    source: Case,
    permuted: Case,
    mag: np.ndarray,
    truth: np.ndarray | None,
) -> Outcome:
    """Runs a method on a graph in two orders, and compares."""
    start = time.process_time()
    try:
        with _within(SECONDS_A_RUN):
            graph, rules = run(source)
            seconds = time.process_time() - start
            again = run(permuted)[0].reordered(source.observed)
    except (_TookTooLong, Exception) as error:  # a failure is a result
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        return Outcome(method, number, False, 0, 0, 0, False, said, time.process_time() - start, {})
    marks, known = graph.marks, mag if truth is None else truth
    skeleton_errors = int(np.count_nonzero((marks == 0) != (mag == 0))) // 2
    joined = (marks != 0) & (mag != 0)
    definite = joined & (marks != pag_reference.CIRCLE)
    wrong = int(np.count_nonzero(definite & (marks != known)))
    missing = (
        0
        if truth is None
        else int(np.count_nonzero(joined & ~definite & (truth != pag_reference.CIRCLE)))
    )
    agrees = not (skeleton_errors or wrong or missing)
    correct = None if agrees and truth is None else agrees
    return Outcome(
        method,
        number,
        correct,
        skeleton_errors,
        wrong,
        missing,
        again != graph,
        None,
        seconds,
        rules,
    )


def sweep(
    methods: dict[str, Run], *, n_graphs: int, max_observed: int, seed: int, limit: int
) -> Iterator[Any]:
    """For each graph the case, whether its PAG is known, and an outcome a method."""
    rng = np.random.default_rng(seed)
    for number in range(n_graphs):
        source = draw(rng, max_observed)
        permuted = source.reordered(rng.permutation(len(source.dag)))
        mag = fci_cases.mag_of(source, by_ancestors=True)
        try:
            truth = np.array(pag_reference.pag_by_search(mag, limit=limit))
        except pag_reference.TooLarge:
            truth = None
        yield (
            source,
            truth is not None,
            [
                outcome(name, run, number, source, permuted, np.array(mag), truth)
                for name, run in methods.items()
            ],
        )


def summary(method: str, group: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """A line of the table."""
    seconds = [item.seconds for item in outcomes]
    return {
        "method": method,
        "graphs": group,
        "n_graphs": len(outcomes),
        "mismatches": sum(item.correct is False for item in outcomes),
        "skeleton": sum(item.skeleton_errors > 0 for item in outcomes),
        "wrong_marks": sum(item.wrong_marks > 0 for item in outcomes),
        "missing_marks": sum(item.missing_marks > 0 for item in outcomes),
        "changed_by_order": sum(item.changed_by_order for item in outcomes),
        "failed": sum(item.failed is not None for item in outcomes),
        "seconds": sum(seconds),
        "median_seconds": statistics.median(seconds) if seconds else None,
        "maximum_seconds": max(seconds, default=None),
    }


def rule_counts(outcomes: Sequence[Outcome]) -> tuple[Counter[str], Counter[str]]:
    """Marks that each rule wrote, and graphs in which it wrote one."""
    marks: Counter[str] = Counter()
    graphs: Counter[str] = Counter()
    for item in outcomes:
        marks.update(item.rules)
        graphs.update(rule for rule, count in item.rules.items() if count)
    return marks, graphs


def measure(chosen: Namespace, record: ex.Record) -> list[dict[str, Any]]:
    """The lines of the table; writes every mismatch, and prints ours."""
    methods: dict[str, Run] = {"jaxcd": run_jaxcd}
    peer = None if chosen.no_peer else causal_learn()
    if peer is not None:
        methods["causal-learn"] = peer[1]
    elif not chosen.no_peer:
        print("causal-learn is not installed: jaxcd alone")
    for run in methods.values():
        run(CORES[0])  # what is loaded at the first call is not timed
    outcomes: dict[str, list[Outcome]] = {name: [] for name in methods}
    selected, known, observed, mismatches = [], [], Counter[int](), []
    for source, is_known, found in sweep(
        methods,
        n_graphs=chosen.graphs,
        max_observed=_max_observed(chosen),
        seed=chosen.seed,
        limit=chosen.limit,
    ):
        selected.append(bool(source.selected))
        known.append(is_known)
        observed[len(source.observed)] += 1
        for item in found:
            outcomes[item.method].append(item)
            if item.correct is False or item.changed_by_order:
                mismatches.append({"case": str(source), **asdict(item)})
                if item.method == "jaxcd":
                    print(f"mismatch: {source}: {item}")
    print(f"{sum(known)} of {len(known)} PAGs known by definition")
    marks, graphs = rule_counts(outcomes["jaxcd"])
    record.write(
        peer=None if peer is None else f"causal-learn {peer[0]}",
        n_known=sum(known),
        n_observed={str(n): observed[n] for n in sorted(observed)},
        rules={rule: {"graphs": graphs[rule], "marks": marks[rule]} for rule in RULES},
        mismatches=mismatches,
    )
    groups = {
        "all": [True] * len(selected),
        "no selection": [not value for value in selected],
        "selection": selected,
    }
    return [
        summary(name, group, [item for item, inside in zip(items, members, strict=True) if inside])
        for name, items in outcomes.items()
        for group, members in groups.items()
    ]


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """The uses of the rules."""
    rules = json.loads(record.path.read_text())["rules"]
    lines = [
        {"": name, **{rule: rules[rule][name] for rule in RULES}} for name in ("graphs", "marks")
    ]
    columns = [ex.Column(""), *(ex.Column(rule, rule, "d") for rule in RULES)]
    console.print(ex.table_of(lines, columns, "Rules of jaxcd's FCI"))
    return {}


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """All graphs at once: their lines are sums."""
    yield (), measure, chosen, record


def _max_observed(chosen: Namespace) -> int:
    return 7 if chosen.quick else 12


def _milliseconds(name: str) -> ex.Column:
    head = f"{name.split('_')[0]} ms"
    return ex.Column(head, lambda line: 1e3 * (line[name] or 0), ".1f")


COUNTS = ("skeleton", "wrong_marks", "missing_marks", "changed_by_order", "failed")
EXPERIMENT = ex.Experiment(
    "fci_oracle",
    __doc__,
    ("method", "graphs"),
    jobs,
    columns=ex.columns_of(
        "method; graphs; n=n_graphs:d; mismatches:d",
        *(ex.Column(name.replace("_", " "), name, "d") for name in COUNTS),
        "s=seconds:.2f",
        _milliseconds("median_seconds"),
        _milliseconds("maximum_seconds"),
    ),
    title="Graphs that differ from the truth (by kind of error), and time",
    options=(
        ex.Option("--seed", "of the graphs", 0, kind=int),
        ex.one_count("--graphs", "number of graphs; with --quick of at most 7 nodes", 2000, 60),
        ex.one_count("--limit", "steps of one search for another member", 5_000),
        ex.Option("--no-peer", "without causal-learn", flag=True),
    ),
    settings=lambda chosen: {
        "seed": chosen.seed,
        "limit": chosen.limit,
        "max_observed": _max_observed(chosen),
    },
    finish=finish,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
