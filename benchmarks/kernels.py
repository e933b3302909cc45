"""Kernel tests against n: time, memory and error, and how far they are from what the machine can
do.

``python -m benchmarks.kernels [--quick] [--peers] [--out FILE]``

HSIC with 100 permutations (two columns) and RCIT with |Z| = 5 and 100 permutations (one test,
nothing cached), after compilation; the exponent of the time in n, fitted in log-log from 10,000
rows on; the relative error of HSIC against the dense statistic, and of residuals against the exact
solve, where n allows.  A PNG beside the JSON shows the times.

Limit: the time that the formula's operations and bytes would take at the machine's measured speeds,
the larger of (operations at the peak of a square matrix product of their precision) and (bytes at
the speed of a copy).  With n rows, r features a column, s = min(r, 16) leading components of them,
k permutations: HSIC has 2 n (2 r (r + s) + s^2 (k + 1)) operations in float32 and moves 32 n r + 24
n s bytes (features and components written and read, one column's also doubled).  RCIT adds in
float64, with rank m, g penalties and t = 2 targets, 2 n m (|Z| + 2.75 m + g (t + 1) + 3 t)
operations (Gram columns, factor, half of its Gram matrix, basis, leave-one-out comparison,
residuals) and 88 n m bytes (Gram columns written and read, factor written and read three times,
basis written and read four times): one regression of all rows, where the test makes up to four, and
compares up to fourteen on fewer rows.

``--peers`` runs the same data in the same process through causal-learn's KCI and RCIT (n = 1,000 to
6,000, |Z| = 5), hyppo's Hsic and dcor's distance covariance test (n = 1,000, 100 permutations),
those that are installed (:mod:`benchmarks.kernel_peers`).  Runs on a GPU where JAX has one.
"""

from __future__ import annotations

import resource
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

import jaxcd
from benchmarks import experiment as ex
from benchmarks.kernel_peers import MATCHES, PEER_COLUMNS, PERMUTATIONS, columns, dataset, measure
from jaxcd.citests import Query
from jaxcd.citests.regressions import PENALTIES
from jaxcd.ops import double_precision, features, gram, hsic, ridge

N_GIVEN = 5
N_PENALTIES = len(PENALTIES)
SIZES = (1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
RCIT_SIZES = (2_000, 8_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
#: the exponent is fitted from here on, where the fixed cost of a call no longer shows
FIRST_FITTED = 10_000


@dataclass(frozen=True)
class Machine:
    """Measured speeds: giga operations a second of matrix products, giga bytes a second (read and
    written) of a copy.
    """

    float32: float
    float64: float
    copy: float


def machine(*, size: int, n_copied: int) -> Machine:
    """Speeds of size x size products at full precision and of passing over n_copied float32
    numbers.
    """

    def product(kind: str) -> float:
        a = jnp.ones((size, size), kind)
        compiled = jax.jit(lambda x: jnp.matmul(x, x, precision=jax.lax.Precision.HIGHEST))
        return 2 * size**3 / ex.best(lambda: np.asarray(compiled(a)[0, 0])) / 1e9

    values = jnp.ones(n_copied, jnp.float32)
    passed = jax.jit(lambda x: x + 1)
    copy = 8 * n_copied / ex.best(lambda: passed(values).block_until_ready()) / 1e9
    with double_precision():
        double = product("float64")
    return Machine(product("float32"), double, copy)


def row_of(
    seconds: float, speeds: Machine, *, single: float, double: float, n_bytes: float
) -> dict[str, Any]:
    """One measurement with its limit.  seconds: after compilation, the best of the runs.  limit:
    seconds at the machine's measured speeds.

    giga_operations, giga_bytes: by formula.  peak_memory_gib: of the process so far.
    """
    limit = max(single / speeds.float32 + double / speeds.float64, n_bytes / speeds.copy) / 1e9
    return {
        "seconds": seconds,
        "giga_operations_float32": single / 1e9,
        "giga_operations_float64": double / 1e9,
        "giga_bytes": n_bytes / 1e9,
        "limit": limit,
        "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def _hsic_costs(n: int, n_features: int) -> tuple[float, float]:
    """Operations and bytes: covariance and leading components of two columns' features, and the
    shifts' products of those.
    """
    kept = min(n_features, hsic.N_LEADING)
    return 2.0 * n * (
        2 * n_features * (n_features + kept) + kept**2 * (PERMUTATIONS + 1)
    ), 32.0 * n * n_features + 24.0 * n * kept


def hsic_row(n: int, speeds: Machine) -> dict[str, Any]:
    """HSIC and its null on two columns, features included."""
    values = jnp.asarray(columns(n, 0)[:, :2], jnp.float32)
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0)
    shifts = {"first": -PERMUTATIONS // 2, "count": PERMUTATIONS + 1}

    def run() -> float:
        both = (hsic.centred_features(jnp.clip(values[:, j], -5, 5), kernel) for j in (0, 1))
        phi, psi = (hsic.leading_features(part) for part in both)
        return float(hsic.hsic_shifted(phi, psi, **shifts).max())

    single, n_bytes = _hsic_costs(n, kernel.n_features - 1)
    return row_of(ex.best(run), speeds, single=single, double=0.0, n_bytes=n_bytes)


def rcit_row(n: int, speeds: Machine) -> dict[str, Any]:
    """One RCIT: factorisation, two residuals, HSIC and null; a fresh prepared test each time,
    preparation not timed.
    """
    test, query = jaxcd.RCIT(n_permutations=PERMUTATIONS), Query.of(0, 1, range(2, N_GIVEN + 2))
    data = dataset(columns(n, N_GIVEN))
    waiting = [test.prepare(data, key=jax.random.key(0)) for _ in range(4)]
    seconds = ex.best(lambda: waiting.pop().evaluate(query.given, [query], alpha=0.05))
    n_features = features.fourier_kernel(length=10.0, bandwidth=test.bandwidth).n_features - 1
    single, n_bytes = _hsic_costs(n, n_features)
    double = 2.0 * n * test.rank * (N_GIVEN + 2.75 * test.rank + 3 * N_PENALTIES + 6)
    n_bytes += 88.0 * n * test.rank
    return row_of(seconds, speeds, single=single, double=double, n_bytes=n_bytes)


def errors(n: int, n_residuals: int) -> dict[str, float]:
    """Relative errors of HSIC against dense (n rows, both precisions), and residuals against the
    exact solve.
    """
    values = np.clip(columns(n, 0)[:, :2], -5, 5)
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0)
    found = {}
    with double_precision():
        dense = float(
            hsic.hsic_dense(
                *(jnp.exp(-((c[:, None] - c[None, :]) ** 2) / 2) for c in jnp.asarray(values).T)
            )
        )
        for kind in ("float32", "float64"):
            phi, psi = (hsic.centred_features(jnp.asarray(c, kind), kernel) for c in values.T)
            found[f"HSIC {kind}"] = abs(float(hsic.hsic(phi, psi)) / dense - 1)
            if kind == "float32":
                short = (hsic.leading_features(part) for part in (phi, psi))
                found["HSIC float32, leading features"] = abs(float(hsic.hsic(*short)) / dense - 1)
        table = columns(n_residuals, N_GIVEN)
        z, y = jnp.asarray(table[:, 2:]), jnp.asarray(table[:, :2])
        width, penalty = (
            float(gram.median_distance(z[:500])),
            ridge.penalty_of_objective(1.0, n_residuals),
        )
        exact = ridge.exact_residuals(gram.gaussian_gram(z, z, width), y, penalty)
        low_rank = ridge.residuals(
            ridge.spectrum(gram.nystroem(z, width, rank=200).factor), y, penalty
        )
        found["residuals, lambda = 1, rank 200, largest difference"] = float(
            jnp.abs(exact - low_rank).max()
        )
    return found


def exponents(rows: Sequence[ex.Row]) -> dict[str, float]:
    """The slope of log seconds in log n for each routine, from ``FIRST_FITTED`` rows on where two
    sizes are.
    """
    found = {}
    for what in dict.fromkeys(row.what for row in rows):
        line = [(row.n_samples, row.seconds) for row in rows if row.what == what]
        fitted = [point for point in line if point[0] >= FIRST_FITTED]
        n, seconds = np.log(np.array(fitted if len(fitted) > 1 else line)).T
        found[what] = float(np.polyfit(n, seconds, 1)[0])
    return found


def plot(rows: Sequence[ex.Row], path: Path) -> None:
    """Seconds (solid) and limit (dotted) against n, log-log."""
    rows = [row for row in rows if not row.get("peer")]
    figure, axes = ex.panels(1, 1, width=5.6, height=3.4)
    ax = axes[0, 0]
    for i, (what, slope) in enumerate(exponents(rows).items()):
        line = [row for row in rows if row.what == what]
        n, look = [row.n_samples for row in line], {"color": f"C{i}"}
        ax.plot(n, [row.seconds for row in line], "o-", label=f"{what}: n^{slope:.2f}", **look)
        ax.plot(n, [row.limit for row in line], ":", label="the machine's limit", **look)
    ax.set(xscale="log", yscale="log", xlabel="records", ylabel="seconds")
    ax.legend(fontsize=8)
    ex.save_picture(figure, path)


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """Both tests at every size, and the peers on a fifth of their rows with ``--quick``."""
    size, copied = (512, 22) if chosen.quick else (2048, 26)
    speeds = machine(size=size, n_copied=1 << copied)
    record.write(machine=asdict(speeds))
    hsic_sizes = chosen.sizes or ((1_000, 10_000) if chosen.quick else SIZES)
    rcit_sizes = chosen.sizes or ((1_000, 4_000) if chosen.quick else RCIT_SIZES)
    for what, measured, sizes in (
        (f"HSIC, {PERMUTATIONS} permutations", hsic_row, hsic_sizes),
        (f"RCIT, |Z| = {N_GIVEN}, {PERMUTATIONS} permutations", rcit_row, rcit_sizes),
    ):
        for n in sizes:
            yield (what, n, False), measured, n, speeds
    for match in MATCHES if chosen.peers else ():
        n = match.n_samples // (5 if chosen.quick else 1)
        yield (match.peer, n, True), measure, match, n


def finish(record: ex.Record, chosen: Namespace, console: Console) -> Mapping[str, Any]:
    """The tables, the errors and the exponents."""
    ours, peers = ([row for row in record.rows if row.peer is is_peer] for is_peer in (False, True))
    console.print(
        ex.table_of(ours, COLUMNS, "kernel tests; limit: at the machine's measured speeds")
    )
    if peers:
        console.print(
            ex.table_of(peers, PEER_COLUMNS, "peers: seconds a test, same data, same run")
        )
    found, slopes = errors(*((500, 1_000) if chosen.quick else (2_000, 4_000))), exponents(ours)
    for name, value in found.items():
        print(f"{name}: {value:.1e}")
    for name, value in slopes.items():
        print(f"exponent in n of {name}: {value:.2f}")
    return {"errors": found, "exponents": slopes}


COLUMNS = ex.columns_of(
    "what; rows=n_samples:,; seconds:.4f; Gop 32=giga_operations_float32:.3g; "
    "Gop 64=giga_operations_float64:.3g; GB=giga_bytes:.3g; limit:.4f",
    ex.Column("of limit", lambda row: row.limit / row.seconds, ".0%"),
    "GiB so far=peak_memory_gib:.2f",
)
EXPERIMENT = ex.Experiment(
    "kernels",
    __doc__,
    ("what", "n_samples", "peer"),
    jobs,
    options=(
        ex.counts("--sizes", "records"),
        ex.Option("--peers", "also run the peers that are installed (minutes)", flag=True),
    ),
    finish=finish,
    draw=plot,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
