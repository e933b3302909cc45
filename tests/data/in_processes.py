"""One of several processes on this machine: ADDRESS, how many, which, and a folder.

Run by ``test_shards.py``: releases and searches of rows that the processes share; writes what each
process got.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).resolve().parents[2]))
import jaxcd  # noqa: E402
from benchmarks.shards import reading_programs  # noqa: E402
from jaxcd.errors import OptionError  # noqa: E402
from jaxcd.ops.tilted_moments import gram_steps  # noqa: E402

BUDGET = jaxcd.Budget(2.0, 1e-6)
KINDS = {
    "tables": {
        "histogram": jaxcd.Histogram(),
        "marginals": jaxcd.Marginals(),
        "log-linear": jaxcd.LogLinear(),
    },
    "numbers": {
        "moments": jaxcd.SecondMoments(),
        "signs": jaxcd.Tetrachoric(),
        "features": jaxcd.Features(),
        "bins": jaxcd.Discretised(),
    },
}


def rows_of(folder: Path, name: str, groups: Any = None) -> jaxcd.Dataset:
    """Some row groups of a file, or all."""
    file = pq.ParquetFile(folder / f"{name}.parquet")
    read = file.read() if groups is None else file.read_row_groups(list(groups))
    return jaxcd.Dataset.from_frame(read, domain=jaxcd.Domain.read(folder / f"{name}.json"))


def answers(rows: dict[str, Any], folder: Path, process: int) -> None:
    """Writes what simulated noise makes of the rows."""
    for name, kinds in KINDS.items():
        for word, kind in kinds.items():
            # Every process is given noise of its own, as secure noise is.
            noise = jaxcd.SimulatedNoise(jax.random.key(process))
            bought = jaxcd.release(rows[name], kind, budget=BUDGET, noise=noise)
            bought.save(folder / f"{word}-{process}.npz")
    run = jaxcd.pc(
        rows["tables"],
        test=jaxcd.CovarianceNorm(),
        decider=jaxcd.LevelwiseGaussian(alpha=0.05),
        budget=BUDGET,
        key=None,
        noise=jaxcd.SimulatedNoise(jax.random.key(process)),
    )
    free = jaxcd.pc(
        rows["tables"],
        test=jaxcd.ChiSquare(),
        decider=jaxcd.Threshold(alpha=0.05),
        budget=jaxcd.NO_PRIVACY,
        key=None,
    )
    # the bits of one device, which those of the data set itself are not
    numbers = rows["numbers"]
    if isinstance(numbers, jaxcd.Dataset):
        numbers = numbers.on(jax.sharding.Mesh(np.array(jax.devices()[:1]), ("rows",)))
    asked = [
        jaxcd.ci_test(
            numbers,
            "a",
            "b",
            given=given,
            test=test,
            budget=jaxcd.NO_PRIVACY,
            key=jax.random.key(2),
        )
        for test, given in (
            (jaxcd.RCIT(rank=20), ["c"]),
            (jaxcd.GCM(rank=20), ["c"]),
            (jaxcd.KendallTau(), []),
            (jaxcd.FisherZ(), ["c"]),
        )
    ]
    counts = rows["tables"].counts([(0, 1), (2, 1, 0), tuple(range(8)), ()])
    np.savez(
        folder / f"plain-{process}.npz",
        private=run.graph.marks,
        free=free.graph.marks,
        numbers=np.array([(one.statistic, one.log_pvalue, one.margin) for one in asked]),
        **{f"counts{i}": table for i, table in enumerate(counts)},
    )


def refused(call: Any) -> str:
    try:
        call()
    except OptionError as error:
        return str(error)
    return "not refused"


def main() -> None:
    address, n_processes, process = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    folder = Path(sys.argv[4])
    jax.distributed.initialize(address, n_processes, process)
    mesh = jax.make_mesh((jax.device_count(),), ("rows",))
    rows = {}
    for name in KINDS:
        n_groups = pq.ParquetFile(folder / f"{name}.parquet").num_row_groups
        rows[name] = rows_of(folder, name, range(process, n_groups, n_processes)).on(mesh)
    answers(rows, folder, process)

    # Secure noise: the first process draws, and charges the ledger.
    ledger = None
    if process == 0:
        ledger = jaxcd.LedgerFile(folder / "ledger", data_set="asia", budget=BUDGET)
    secure = jaxcd.release(
        rows["tables"], jaxcd.Marginals(), budget=jaxcd.Budget(1.0, 1e-6), ledger=ledger
    )
    secure.save(folder / f"secure-{process}.npz")
    names = rows["numbers"].names
    with reading_programs() as programs:
        rows["numbers"].sums(
            names,
            lambda block: gram_steps(block.values(names), rate=1.0, anchor=1.0, empty=block.empty),
        )
        rows["tables"].counts([(0, 1)])
    told = {
        "programs": programs,
        "devices": jax.device_count(),
        "repr": repr(rows["tables"]),
        "proven": secure.cost.proven,
        "subsample": refused(lambda: rows["tables"].where(np.ones(5, dtype=bool))),
        "occupied": refused(lambda: rows["tables"].occupied((0, 1))),
        "part": refused(
            lambda: (
                jaxcd.KendallTau()
                .prepare(rows["numbers"])
                .restrict(np.ones(rows["numbers"].n_samples, dtype=bool))
            )
        ),
        "site": refused(
            lambda: jaxcd.federated.Site(
                "a", rows["tables"], jaxcd.federated.Federation(("a", "b"), BUDGET)
            )
        ),
        # The last question: after it the processes do not agree on what comes next.
        "question": refused(lambda: rows["tables"].counts([(0, 1 + process)])),
    }
    (folder / f"told-{process}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
