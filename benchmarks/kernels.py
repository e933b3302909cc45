"""Kernel tests against n: time, memory and error, with the fraction of the machine's matrix-product speed.

``python -m benchmarks.kernels [--quick] [--peers] [--out FILE]``

HSIC with 100 permutations (two columns) and RCIT with |Z| = 5 and 100 permutations (one test, nothing cached), after compilation;
the relative error of HSIC against the dense statistic, and of residuals against the exact solve, where n allows; and operations
against the measured peak of a square matrix product.  ``--peers`` also runs causal-learn's KCI and hyppo's Hsic where they are
installed.  Runs on a GPU where JAX has one.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from benchmarks import common
from jaxcd.citests import Query
from jaxcd.ops import double_precision, features, gram, hsic, ridge

OUT = Path(__file__).parent / "results" / "kernels.json"
PERMUTATIONS = 100


@dataclass(frozen=True)
class Row:
    """One measurement: seconds after compilation (the best of the runs), and operations a second where they are counted."""

    what: str
    n_samples: int
    seconds: float
    giga_operations: float | None = None
    peak_memory_gib: float | None = None


def best(function: Callable[[], Any], n_runs: int = 3) -> float:
    """The shortest of ``n_runs`` runs after one that compiles; ``function`` returns host values."""
    function()
    times = []
    for _ in range(n_runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_product(size: int = 2048) -> float:
    """Giga operations a second of a float32 matrix product at full precision."""
    a = jnp.ones((size, size), jnp.float32)
    product = jax.jit(lambda x: jnp.matmul(x, x, precision=jax.lax.Precision.HIGHEST))
    return 2 * size**3 / best(lambda: np.asarray(product(a)[0, 0])) / 1e9


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _columns(n: int, n_given: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    z = rng.normal(size=(n, n_given))
    index = z.sum(axis=1) / np.sqrt(max(n_given, 1))
    return np.column_stack([np.sin(index) + rng.normal(size=n), np.tanh(index) + rng.normal(size=n), z])


def hsic_row(n: int) -> Row:
    """HSIC and its null on two columns, features included."""
    values = jnp.asarray(_columns(n, 0)[:, :2], jnp.float32)
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0)
    shifts = hsic.draw_shifts(jax.random.key(0), n, PERMUTATIONS)

    def run() -> float:
        phi, psi = (hsic.centred_features(jnp.clip(values[:, j], -5, 5), kernel) for j in (0, 1))
        return float(hsic.hsic(phi, psi)) + float(hsic.hsic_shifted(phi, psi, shifts).max())

    seconds = best(run)
    operations = 2 * n * (kernel.n_features - 1) ** 2 * (PERMUTATIONS + 1)
    return Row("HSIC, 100 permutations", n, seconds, operations / seconds / 1e9, _memory())


def rcit_row(n: int, n_given: int = 5) -> Row:
    """One RCIT: factorisation, two residuals, HSIC and null; a fresh prepared test each time, preparation not timed."""
    names = [f"x{j}" for j in range(n_given + 2)]
    domain = jaxcd.Domain({name: jaxcd.Numeric() for name in names})
    data = jaxcd.Dataset.from_array(_columns(n, n_given), names=names, domain=domain)
    test, query = jaxcd.RCIT(n_permutations=PERMUTATIONS), Query.of(0, 1, range(2, n_given + 2))
    times = []
    for _ in range(4):
        prepared = test.prepare(data, key=jax.random.key(0))
        start = time.perf_counter()
        prepared.evaluate(query.given, [query], alpha=0.05)
        times.append(time.perf_counter() - start)
    return Row(f"RCIT, |Z| = {n_given}, 100 permutations", n, min(times[1:]), None, _memory())


def errors() -> dict[str, float]:
    """Relative errors: HSIC against dense (n = 2000, both precisions), residuals against the exact solve (n = 4000)."""
    values = np.clip(_columns(2000, 0)[:, :2], -5, 5)
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0)
    found = {}
    with double_precision():
        dense = float(hsic.hsic_dense(*(jnp.exp(-((c[:, None] - c[None, :]) ** 2) / 2) for c in jnp.asarray(values).T)))
        for kind in ("float32", "float64"):
            phi, psi = (hsic.centred_features(jnp.asarray(c, kind), kernel) for c in values.T)
            found[f"HSIC {kind}"] = abs(float(hsic.hsic(phi, psi)) / dense - 1)
        columns = _columns(4000, 5)
        z, y = jnp.asarray(columns[:, 2:]), jnp.asarray(columns[:, :2])
        width = float(gram.median_distance(z[:500]))
        exact = ridge.exact_residuals(gram.gaussian_gram(z, z, width), y, 2000.0)
        low_rank = ridge.residuals(ridge.spectrum(gram.pivoted_cholesky(z, width, rank=200).factor), y, 2000.0)
        found["residuals, lambda = 1, rank 200, largest difference"] = float(jnp.abs(exact - low_rank).max())
    return found


def peer_rows() -> list[Row]:
    """causal-learn's KCI at n = 2,000, |Z| = 5, and hyppo's Hsic at n = 1,000, where they are installed."""
    rows = []
    if importlib.util.find_spec("causallearn"):
        from causallearn.utils.cit import CIT

        columns = _columns(2000, 5)
        start = time.perf_counter()
        CIT(columns, "kci")(0, 1, [2, 3, 4, 5, 6])
        rows.append(Row("causal-learn KCI, |Z| = 5", 2000, time.perf_counter() - start))
    if importlib.util.find_spec("hyppo"):
        from hyppo.independence import Hsic

        columns = _columns(1000, 0)
        start = time.perf_counter()
        Hsic().test(columns[:, 0], columns[:, 1], reps=PERMUTATIONS, auto=False)
        rows.append(Row("hyppo Hsic, 100 permutations", 1000, time.perf_counter() - start))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="up to 10,000 rows")
    options.add_argument("--peers", action="store_true", help="also run the peers that are installed")
    options.add_argument("--out", type=Path, default=OUT)
    chosen = options.parse_args(arguments)
    sizes = [1_000, 10_000] if chosen.quick else [1_000, 10_000, 100_000, 1_000_000]
    rows = [hsic_row(n) for n in sizes]
    rows += [rcit_row(n) for n in ([2_000, 8_000] if chosen.quick else [2_000, 8_000, 100_000])]
    rows += peer_rows() if chosen.peers else []
    peak = peak_product()
    table = Table("what", "rows", "seconds", "GF/s", "of peak", "memory GiB", title=f"peak product: {peak:.0f} GF/s")
    for row in rows:
        speed = row.giga_operations
        table.add_row(
            row.what, f"{row.n_samples:,}", f"{row.seconds:.3f}", "" if speed is None else f"{speed:.0f}",
            "" if speed is None else f"{speed / peak:.0%}", "" if row.peak_memory_gib is None else f"{row.peak_memory_gib:.2f}",
        )  # fmt: skip
    found = errors()
    Console().print(table)
    for name, value in found.items():
        print(f"{name}: {value:.1e}")
    common.write_json(
        chosen.out,
        {"environment": common.environment(), "peak_gflops": peak, "errors": found, "rows": [asdict(row) for row in rows]},
    )


if __name__ == "__main__":
    main()
