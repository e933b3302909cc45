"""Every door that takes the path of a file refuses, by name, what is none."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pandas as pd
import pytest

import jaxcd
from jaxcd.data.checking import check_file
from jaxcd.data.drafting import draft_of_file
from jaxcd.effects import forest_plot
from jaxcd.errors import JaxcdError, OptionError
from jaxcd.local import KaryResponse, privatize
from jaxcd.pairwise.pairs import tuebingen
from tests.helpers import coded, levelled

DATA = coded([[0, 0], [1, 1], [0, 1], [1, 0]] * 5, 2, 2)
DOMAIN = levelled(2, 2)
PURCHASE = jaxcd.Budget(1.0)
BOUGHT = jaxcd.release(DATA, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
RUN = jaxcd.search(BOUGHT)
LAKE: dict[str, Any] = {"domain": DOMAIN, "n_samples": 20, "snapshot": "v1"}

READ: dict[str, Callable[[Any], Any]] = {
    "Release.load": jaxcd.Release.load,
    "verify": jaxcd.verify,
    "DiscoveryResult.load": jaxcd.DiscoveryResult.load,
    "Domain.read": jaxcd.Domain.read,
    "read_csv": jaxcd.read_csv,
    "check_file": lambda path: check_file(path, domain=DOMAIN),
    "draft_of_file": draft_of_file,
    "read_bif": jaxcd.networks.read_bif,
    "Table.parquet": lambda path: jaxcd.Table.parquet(path, **LAKE),
    "Table.parquet of several": lambda path: jaxcd.Table.parquet([path], **LAKE),
    "tuebingen": tuebingen,
}
WRITTEN: dict[str, Callable[[Any], Any]] = {
    "Release.save": BOUGHT.save,
    "DiscoveryResult.save": RUN.save,
    "Domain.write": DOMAIN.write,
    "LedgerFile": lambda path: jaxcd.LedgerFile(path, data_set="people", budget=PURCHASE),
    "discover": lambda path: jaxcd.discover(DATA, budget=PURCHASE, key=None, release_out=path),
    "privatize": lambda path: privatize(
        DATA, KaryResponse(epsilon=1.0), out=path, guarantee_out="guarantee.json"
    ),
}


@pytest.mark.parametrize("door", [*READ, *WRITTEN])
@pytest.mark.parametrize("given", [3, b"file", ["\0"], "file\0", "f" * 300], ids=repr)
def test_what_is_no_path_is_refused_by_name(door: str, given: Any) -> None:
    if given == ["\0"] and not door.startswith("Table"):
        given = [given]
    with pytest.raises(OptionError, match=r"path|folder|out|source"):
        (READ | WRITTEN)[door](given)


@pytest.mark.parametrize("door", [*READ, *WRITTEN])
def test_rows_in_the_place_of_a_path_are_not_shown(door: str) -> None:
    frame = pd.DataFrame({"age": [77], "note": ["Smith"]})
    rows = "age,note\n77,Smith\n"
    for given in (frame, frame.to_numpy(), rows, rows * 50):
        with pytest.raises(JaxcdError) as told:
            (READ | WRITTEN)[door](given)
        assert "Smith" not in str(told.value) and "77" not in str(told.value)


def test_objects_that_stand_for_a_path_are_read(tmp_path: Path) -> None:
    file = tmp_path / "domain.json"
    DOMAIN.write(pathlib.PurePosixPath(file))
    data = tmp_path / "data.csv"
    DATA.to_frame().to_csv(data, index=False)
    read = jaxcd.read_csv(pathlib.PurePosixPath(data), domain=pathlib.PurePosixPath(file))
    assert read.codes.tolist() == DATA.codes.tolist()


def test_a_domain_needs_a_folder_that_exists(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"path .* is no file in a folder that exists; give one"):
        DOMAIN.write(tmp_path / "none" / "domain.json")
    with pytest.raises(OptionError, match=r"path .* is no file in a folder that exists; give one"):
        DOMAIN.write(tmp_path)


def test_a_picture_of_effects_needs_a_path_of_a_picture(tmp_path: Path) -> None:
    network = jaxcd.networks.load("cancer")
    data = network.sample(2_000, key=jax.random.key(0))
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    effect = jaxcd.effect(bought, treatment="Smoker", outcome="Cancer", graph=network.dag)
    for path in (3, tmp_path, tmp_path / "none" / "effects.png"):
        with pytest.raises(OptionError, match=r"^path .* give one such as 'effects.png'"):
            effect.plot(path)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"path .* no picture is written as \.odd; .*\.png"):
        forest_plot([effect], path=tmp_path / "effects.odd")
    effect.plot(tmp_path / "effects.PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["effects.PNG"]
