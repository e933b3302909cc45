"""Files of releases: those of the first edition are read, and what goes wrong while writing leaves
the old file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.errors import FormatError
from jaxcd.releases import Release
from tests.helpers import refused

FIRST_EDITION = Path(__file__).parent / "version_1"
#: kind: epsilon, delta, rows, columns, and the edges that the first edition found
STORED = {
    "histogram": (1.0, 0.0, 500, 5, ["Smoker --- Cancer"]),
    "marginals": (2.0, 1e-5, 500, 5, []),
    "second-moments": (2.0, 1e-5, 400, 2, ["a --- b"]),
    "features": (2.0, 1e-5, 400, 2, []),
}


@pytest.mark.parametrize("kind", STORED)
def test_files_of_the_first_edition_are_read_and_searched(kind: str, tmp_path: Path) -> None:
    epsilon, delta, rows, columns, edges = STORED[kind]
    old = Release.load(FIRST_EDITION / f"{kind}.npz")
    assert (old.kind, old.cost.epsilon, old.cost.delta, old.n_samples, len(old.names)) == (
        kind,
        epsilon,
        delta,
        rows,
        columns,
    )
    assert old.bought is None and not old.cost.proven
    run = jaxcd.search(old)
    assert [str(edge) for edge in run.graph.edges()] == edges
    fresh = old.redraw(np.zeros((columns, columns), dtype=bool))(jax.random.key(0))
    assert type(fresh) is type(old) and fresh.n_samples == rows
    again = Release.load(old.save(tmp_path / "again.npz"))
    assert jaxcd.search(again).graph == run.graph and again.ledger == old.ledger


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Release.load(FIRST_EDITION / "histogram.npz")
    path = old.save(tmp_path / "kept.npz")
    before = path.read_bytes()

    def broken(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", broken)
    refused(OSError, "no space", old.save, path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (("kind",), ["marginals"]),
        (("cost", "epsilon"), 10**400),
        (("cost", "max_rows_per_person"), 1e308),
        (("charges", 0, "rho"), 10**400),
        (("columns", "Xray"), None),
        (("own", "sets", 0), [10**400]),
        (("own", "candidates", 0), [99]),
        (("own", "candidates", 0), [-1]),
        (("own", "candidates", 1), [0, 0]),
        (("own", "sets", 0), []),
        (("own", "sets", 0), [-1]),
        (("own", "sets", 1), [0]),
        (("n_samples",), 10**400),
        (("cost", "rho"), 0.0),
        (("cost", "rho"), np.nan),
        (("cost", "proven"), "no"),
        (("charges", 0, "rho"), "nan"),
        (("charges", 0, "epsilon"), np.nan),
        (("values",), np.nan),
        (("values",), np.inf),
        (("values",), 1e300),
        (("values",), "text"),
        (("values",), 1j),
    ],
)
def test_a_file_with_a_part_that_no_release_has_is_named(
    part: tuple[Any, ...], value: Any, tmp_path: Path
) -> None:
    data = jaxcd.networks.load("cancer").sample(300, key=jax.random.key(0))
    bought = jaxcd.release(data, jaxcd.Marginals(), budget=jaxcd.Budget(1.0, 1e-6))
    path = bought.save(tmp_path / "bought.npz")
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays["header"]))
    if part == ("values",):
        arrays["values"] = np.array([value, *arrays["values"][1:]])
    else:
        inside = header
        for name in part[:-1]:
            inside = inside[name]
        if value is None:
            del inside[part[-1]]
        else:
            inside[part[-1]] = value
    np.savez(path, **{**arrays, "header": np.array(json.dumps(header))})
    refused(FormatError, "file '", Release.load, path)


def test_a_header_in_which_a_name_is_twice_is_refused(tmp_path: Path) -> None:
    with np.load(FIRST_EDITION / "histogram.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    twice = str(arrays["header"])[:-1] + ', "n_samples": 400}'
    np.savez(tmp_path / "twice.npz", **{**arrays, "header": np.array(twice)})
    refused(FormatError, "'n_samples' is given twice", Release.load, tmp_path / "twice.npz")
