"""The command line on tables that are counted where they are."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import polars as pl
import pytest

import jaxcd
from jaxcd.cli import main

duckdb = pytest.importorskip("duckdb", reason="jaxcd[duckdb] is not installed")
N = 2_001


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two parquet files, a DuckDB file with the same rows, and their domain."""
    folder = tmp_path_factory.mktemp("lake")
    data = jaxcd.networks.load("cancer").sample(N, key=jax.random.key(0))
    frame = pl.from_pandas(data.to_frame()).with_columns(pl.all().cast(pl.String))
    (folder / "parts").mkdir()
    frame[:999].write_parquet(folder / "parts" / "a.parquet")
    frame[999:].write_parquet(folder / "parts" / "b.parquet")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.register("frame", frame.to_arrow())
        connection.execute("CREATE TABLE patients AS SELECT * FROM frame")
    data.domain.write(folder / "domain.json")
    return folder


def words(lake: Path, *more: str, **changed: str | None) -> list[str]:
    given = {"--domain": str(lake / "domain.json"), "--rows": str(N), "--snapshot": "v1"}
    given |= {"--epsilon": "1", "--delta": "1e-6"} | {f"--{k}": v for k, v in changed.items()}
    return ["discover", *more, *(w for k, v in given.items() if v is not None for w in (k, v))]


@pytest.mark.parametrize("source", ["parts/*.parquet", "clinic.duckdb"])
def test_a_lake_and_a_database_give_what_a_file_gives(
    lake: Path, source: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    table = ["--table", "patients"] if source.endswith("duckdb") else []
    out = tmp_path / "out"
    more = [str(lake / source), *table, "--simulated-noise", "--out", str(out)]
    assert main(words(lake, *more)) == 0
    assert f"{N:,} rows where they are" in capsys.readouterr().out
    privacy = json.loads((out / "privacy.json").read_text())
    assert '"v1"' in json.dumps(privacy)


@pytest.mark.parametrize(
    ("more", "changed", "said"),
    [
        (["parts/*.parquet"], {"rows": None}, "--rows is missing"),
        (["parts/*.parquet"], {"snapshot": None}, "--snapshot is missing"),
        (["parts/*.parquet"], {"domain": None}, "give the domain file that"),
        (["parts/*.parquet", "--table", "t"], {}, "no DuckDB file"),
        (["parts/*.pq"], {}, "no parquet file"),
        (["clinic.duckdb"], {}, "--table is missing"),
        (["clinic.duckdb", "--table", "nobody"], {}, "cannot be read"),
        (["parts/*.parquet"], {"rows": "2000"}, "do not add up"),
    ],
)
def test_what_is_missing_is_named(
    lake: Path,
    more: list[str],
    changed: dict[str, str | None],
    said: str,
    capsys: pytest.CaptureFixture,
) -> None:
    assert main(words(lake, str(lake / more[0]), *more[1:], **changed)) == 2
    assert said in capsys.readouterr().err
