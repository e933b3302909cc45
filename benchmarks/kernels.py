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
basis written and read four times).

``--peers`` runs the same data in the same process through causal-learn's KCI and RCIT (n = 2,000,
|Z| = 5), hyppo's Hsic and dcor's distance covariance test (n = 1,000, 100 permutations), those that
are installed (:mod:`benchmarks.kernel_peers`).  Runs on a GPU where JAX has one.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from benchmarks.kernel_peers import PERMUTATIONS, columns, dataset, peer_rows, peer_table
from jaxcd.citests import Query
from jaxcd.ops import double_precision, features, gram, hsic, ridge

OUT = common.RESULTS / "kernels.json"
N_GIVEN = 5
N_PENALTIES = 33
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


@dataclass(frozen=True)
class Row:
    """One measurement.  seconds: after compilation, the best of the runs.  limit: seconds at the
    machine's measured speeds.

    giga_operations, giga_bytes: by formula.  peak_memory_gib: of the process so far.
    """

    what: str
    n_samples: int
    seconds: float
    giga_operations_float32: float
    giga_operations_float64: float
    giga_bytes: float
    limit: float
    peak_memory_gib: float


def machine(*, size: int, n_copied: int) -> Machine:
    """Speeds of size x size products at full precision and of passing over n_copied float32
    numbers.
    """

    def product(kind: str) -> float:
        a = jnp.ones((size, size), kind)
        compiled = jax.jit(lambda x: jnp.matmul(x, x, precision=jax.lax.Precision.HIGHEST))
        return 2 * size**3 / common.best(lambda: np.asarray(compiled(a)[0, 0])) / 1e9

    values = jnp.ones(n_copied, jnp.float32)
    passed = jax.jit(lambda x: x + 1)
    copy = 8 * n_copied / common.best(lambda: passed(values).block_until_ready()) / 1e9
    with double_precision():
        double = product("float64")
    return Machine(product("float32"), double, copy)


def row_of(
    what: str,
    n: int,
    seconds: float,
    speeds: Machine,
    *,
    single: float,
    double: float,
    n_bytes: float,
) -> Row:
    """A row with its limit."""
    limit = max(single / speeds.float32 + double / speeds.float64, n_bytes / speeds.copy) / 1e9
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return Row(what, n, seconds, single / 1e9, double / 1e9, n_bytes / 1e9, limit, memory)


def _hsic_costs(n: int, n_features: int) -> tuple[float, float]:
    """Operations and bytes: covariance and leading components of two columns' features, and the
    shifts' products of those.
    """
    kept = min(n_features, hsic.N_LEADING)
    return 2.0 * n * (
        2 * n_features * (n_features + kept) + kept**2 * (PERMUTATIONS + 1)
    ), 32.0 * n * n_features + 24.0 * n * kept


def hsic_row(n: int, speeds: Machine) -> Row:
    """HSIC and its null on two columns, features included."""
    values = jnp.asarray(columns(n, 0)[:, :2], jnp.float32)
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0)

    def run() -> float:
        both = (hsic.centred_features(jnp.clip(values[:, j], -5, 5), kernel) for j in (0, 1))
        phi, psi = (hsic.leading_features(part) for part in both)
        return float(
            hsic.hsic_shifted(phi, psi, first=-PERMUTATIONS // 2, count=PERMUTATIONS + 1).max()
        )

    seconds = common.best(run)
    single, n_bytes = _hsic_costs(n, kernel.n_features - 1)
    return row_of(
        f"HSIC, {PERMUTATIONS} permutations",
        n,
        seconds,
        speeds,
        single=single,
        double=0.0,
        n_bytes=n_bytes,
    )


def rcit_row(n: int, speeds: Machine) -> Row:
    """One RCIT: factorisation, two residuals, HSIC and null; a fresh prepared test each time,
    preparation not timed.
    """
    test, query = jaxcd.RCIT(n_permutations=PERMUTATIONS), Query.of(0, 1, range(2, N_GIVEN + 2))
    data = dataset(columns(n, N_GIVEN))
    waiting = [test.prepare(data, key=jax.random.key(0)) for _ in range(4)]
    seconds = common.best(lambda: waiting.pop().evaluate(query.given, [query], alpha=0.05))
    n_features = features.fourier_kernel(length=10.0, bandwidth=test.bandwidth).n_features - 1
    single, n_bytes = _hsic_costs(n, n_features)
    double = 2.0 * n * test.rank * (N_GIVEN + 2.75 * test.rank + 3 * N_PENALTIES + 6)
    return row_of(
        f"RCIT, |Z| = {N_GIVEN}, {PERMUTATIONS} permutations",
        n,
        seconds,
        speeds,
        single=single,
        double=double,
        n_bytes=n_bytes + 88.0 * n * test.rank,
    )


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
            ridge.spectrum(gram.pivoted_cholesky(z, width, rank=200).factor), y, penalty
        )
        found["residuals, lambda = 1, rank 200, largest difference"] = float(
            jnp.abs(exact - low_rank).max()
        )
    return found


def exponents(rows: Sequence[Row]) -> dict[str, float]:
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


def plot(rows: Sequence[Row], slopes: dict[str, float], path: Path) -> None:
    """Seconds (solid) and limit (dotted) against n, log-log."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    for i, (what, slope) in enumerate(slopes.items()):
        line = [row for row in rows if row.what == what]
        n = [row.n_samples for row in line]
        ax.plot(
            n,
            [row.seconds for row in line],
            color=f"C{i}",
            marker="o",
            markersize=4,
            label=f"{what}: n^{slope:.2f}",
        )
        ax.plot(
            n,
            [row.limit for row in line],
            color=f"C{i}",
            linestyle=":",
            label="the machine's limit",
        )
    ax.set(xscale="log", yscale="log", xlabel="records", ylabel="seconds")
    ax.legend(fontsize=8)
    common.save_picture(figure, path)


def table_of(rows: Sequence[Row], speeds: Machine) -> Table:
    """The rows for the screen."""
    table = Table(
        title=f"product {speeds.float32:.0f} (float32) and {speeds.float64:.0f} (float64) Gop/s, "
        f"copy {speeds.copy:.0f} GB/s"
    )
    for i, column in enumerate(
        ("what", "rows", "seconds", "Gop 32", "Gop 64", "GB", "limit", "of limit", "GiB so far")
    ):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(
            row.what,
            f"{row.n_samples:,}",
            f"{row.seconds:.4f}",
            f"{row.giga_operations_float32:.3g}",
            f"{row.giga_operations_float64:.3g}",
            f"{row.giga_bytes:.3g}",
            f"{row.limit:.4f}",
            f"{row.limit / row.seconds:.0%}",
            f"{row.peak_memory_gib:.2f}",
        )
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark, prints tables, and writes JSON and PNG."""
    options = common.plain_parser("Kernel tests against n.", out=OUT)
    common.add_sizes(options)
    options.add_argument(
        "--peers", action="store_true", help="also run the peers that are installed (minutes)"
    )
    full = {"sizes": None}
    chosen = common.parse(options, arguments, full=full, quick=full)
    sizes = chosen.sizes or ((1_000, 10_000) if chosen.quick else SIZES)
    rcit_sizes = chosen.sizes or ((1_000, 4_000) if chosen.quick else RCIT_SIZES)
    console = Console(width=150)
    speeds = machine(size=512 if chosen.quick else 2048, n_copied=1 << (22 if chosen.quick else 26))
    rows = [hsic_row(n, speeds) for n in sizes] + [rcit_row(n, speeds) for n in rcit_sizes]
    console.print(table_of(rows, speeds))
    slopes = exponents(rows)
    found = errors(*((500, 1_000) if chosen.quick else (2_000, 4_000)))
    for name, value in found.items():
        print(f"{name}: {value:.1e}")
    for name, value in slopes.items():
        print(f"exponent in n of {name}: {value:.2f}")
    peers = peer_rows(quick=chosen.quick) if chosen.peers else []
    if peers:
        console.print(peer_table(peers))
    common.write_json(
        chosen.out,
        {
            "environment": common.environment(),
            "machine": asdict(speeds),
            "errors": found,
            "exponents": slopes,
            "rows": [asdict(row) for row in rows],
            "peers": [asdict(row) for row in peers],
        },
    )
    plot(rows, slopes, chosen.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
