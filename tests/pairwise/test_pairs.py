"""The loaders against the collections' own figures, and against small files made here."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from jaxcd.errors import DataError, FormatError, OptionError
from jaxcd.pairwise import (
    CausePair,
    Direction,
    Simulation,
    TuebingenVersion,
    challenge,
    igci,
    over_pairs,
    simulated,
    tuebingen,
)
from jaxcd.privacy import NO_PRIVACY
from tests.helpers import refused

HEADER = "pair,cause_first,cause_last,effect_first,effect_last,weight,weight_100,n,columns,scalar\n"


def small(folder: Path, rows: str, **arrays: np.ndarray) -> Path:
    place = folder / "cause_effect_pairs"
    place.mkdir()
    (place / "tuebingen_meta.csv").write_text(HEADER + rows)
    np.savez(place / "tuebingen_pairs.npz", **arrays)
    return folder


def test_small_collection(tmp_path: Path):
    values = np.arange(20.0).reshape(10, 2)
    folder = small(
        tmp_path,
        "1,1,1,2,2,0.5,0.25,10,2,1\n2,2,2,1,1,1,0,10,2,1\n3,1,2,3,3,0,0,10,3,0\n",
        pair0001=values,
        pair0002=values,
        pair0003=np.zeros((10, 3)),
    )
    found = tuebingen(folder)
    assert [(p.name, p.direction, p.weight, p.n) for p in found.pairs] == [
        ("pair0001", Direction.X_TO_Y, 0.5, 10),
        ("pair0002", Direction.Y_TO_X, 1.0, 10),
    ]
    # the columns stay in the order of the file
    np.testing.assert_array_equal(found.pairs[1].x, values[:, 0])
    assert found.skipped == (
        ("pair0003", "multivariate (3 columns), and the methods compare two scalar variables"),
    )
    older = tuebingen(folder, version=TuebingenVersion.PAIRS_100)
    assert [p.weight for p in older.pairs] == [0.25]
    assert [name for name, _ in older.skipped] == ["pair0002", "pair0003"]
    results = over_pairs(partial(igci, budget=NO_PRIVACY), found)
    assert results == over_pairs(partial(igci, budget=NO_PRIVACY), found.pairs)
    assert len(results) == 2


@pytest.mark.parametrize(
    "rows",
    ["1,1,1,2,2,heavy,1,10,2,1\n", "2,1,1,2,2,1,1,10,2,1\n", "1,3,3,2,2,1,1,10,2,1\n", "1\n"],
    ids=["weight", "no array", "cause column", "short row"],
)
def test_malformed_files(tmp_path: Path, rows: str):
    folder = small(tmp_path, rows, pair0001=np.zeros((10, 2)))
    refused(FormatError, "tuebingen_meta.csv", tuebingen, folder)


def test_missing_and_broken_files(tmp_path: Path):
    for load in (tuebingen, partial(simulated, which=Simulation.SIM), challenge):
        refused(DataError, "folder: there is no file", load, tmp_path)
    folder = small(tmp_path, "", pair0001=np.zeros((10, 2)))
    (folder / "cause_effect_pairs" / "tuebingen_pairs.npz").write_bytes(b"no archive")
    refused(FormatError, "cannot be read", tuebingen, folder)


def test_options(tmp_path: Path):
    refused(OptionError, "version = 100", tuebingen, tmp_path, version=100)
    refused(OptionError, "which = 'SIM'", simulated, tmp_path, "SIM")


def test_pairs_are_checked_and_read_only():
    for x, y, weight in (
        (np.zeros((3, 2)), np.zeros(3), 1.0),
        (np.zeros(3), np.zeros(4), 1.0),
        (np.zeros(3), np.zeros(3), np.nan),
    ):
        refused(DataError, "pair 'a'", CausePair, "a", x, y, None, weight)
    with pytest.raises(ValueError, match="read-only"):
        CausePair("a", np.zeros(3), np.zeros(3), None).x[0] = 1


def test_tuebingen(data_folder: Path):
    """The sums of weights and the sizes are those that the collection's description states."""
    found = tuebingen(data_folder)
    assert len(found) == 102
    assert [name[-3:] for name, _ in found.skipped] == "052 053 054 055 071 105".split()
    # 38.998 less the multivariate pair 105
    assert sum(p.weight for p in found.pairs) == pytest.approx(38.498, abs=1e-3)
    assert (min(p.n for p in found.pairs), max(p.n for p in found.pairs)) == (94, 16382)
    older = tuebingen(data_folder, version=TuebingenVersion.PAIRS_100)
    assert len(older) == 95 and sum(p.weight for p in older.pairs) == pytest.approx(34.75, abs=1e-6)
    assert {p.direction for p in found.pairs} == {Direction.X_TO_Y, Direction.Y_TO_X}


def test_simulated(data_folder: Path):
    for which, forward in ((Simulation.SIM, 50), (Simulation.SIM_C, (47, 53))):
        found = simulated(data_folder, which)
        assert len(found) == 100 and {p.n for p in found.pairs} == {1000} and not found.skipped
        assert np.isin(sum(p.direction is Direction.X_TO_Y for p in found.pairs), forward)


def test_challenge(data_folder: Path):
    found = challenge(data_folder)
    assert [
        sum(p.direction is d for p in found.pairs) for d in (Direction.X_TO_Y, Direction.Y_TO_X)
    ] == [42, 39]
    assert len(found.skipped) == 81
    everything = challenge(data_folder, causal_only=False)
    assert len(everything) == 162 and sum(p.direction is None for p in everything.pairs) == 81
