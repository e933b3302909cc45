"""The command line on tables that are counted where they are."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import polars as pl
import pyarrow.parquet as pq
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


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DuckDB file whose columns are of its own types, and the same rows in parquet files."""
    folder = tmp_path_factory.mktemp("warehouse")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute("CREATE TYPE stage AS ENUM ('I', 'II', 'III')")
        connection.execute(
            """
            CREATE TABLE visits AS SELECT
                (i % 3)::TINYINT AS arm,
                (['I', 'II', 'III'])[1 + i % 3]::stage AS "the stage",
                i % 7 < 2 AS "is it ""so"", ill",
                ((i * 7919) % 1000 / 100)::DECIMAL(8, 3) AS dose,
                CASE WHEN i % 11 > 0 THEN 'ward ' || (i % 2) END AS "größe",
                (i + 10000000000)::HUGEINT AS id,
                TIMESTAMP '2026-01-01' + i * INTERVAL 1 MINUTE AS seen,
                i % 4 AS "group"
            FROM range(3000) rows(i)
            """
        )
        connection.execute('CREATE VIEW recent AS SELECT arm, dose, "group" FROM visits')
        connection.execute('CREATE VIEW broken AS SELECT arm, "größe"::INTEGER AS n FROM visits')
        rows = connection.table("visits").to_arrow_table()
    (folder / "lake").mkdir()
    for start in (0, 1_000):
        pq.write_table(rows[start : 1_000 + 2 * start], folder / "lake" / f"{start}.parquet")
    return folder


@pytest.mark.parametrize(
    "source",
    [["clinic.duckdb", "--table", "visits"], ["lake/*.parquet"], ["lake"]],
    ids=["database", "pattern", "folder"],
)
def test_a_draft_of_a_warehouse_is_the_way_into_a_run(
    warehouse: Path, source: list[str], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file, *table = str(warehouse / source[0]), *source[1:]
    out = tmp_path / "domain.json"
    assert main(["domain", file, *table, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    # The command that is printed is the one that runs below.
    assert "of 3,000 rows" in said and f"{' '.join(table)} --domain" in said
    assert "--rows 3000 --snapshot" in said
    draft = json.loads(out.read_text())
    kinds = {name: column.get("type") for name, column in draft["columns"].items()}
    assert kinds["arm"] == "ordinal" and kinds['is it "so", ill'] in ("ordinal", "categorical")
    assert draft["columns"]["größe"]["missing"] is True
    assert draft["columns"]["id"]["ignore"] and draft["columns"]["seen"]["ignore"]
    out.write_text(json.dumps(draft | {"declared": True}))
    assert main(["check", file, *table, "--domain", str(out)]) == 0
    assert "every cell fits" in capsys.readouterr().out
    run = ["--rows", "3000", "--snapshot", "v1", "--no-privacy", "--quiet"]
    assert main(["discover", file, *table, "--domain", str(out), *run]) == 0
    assert "arm" in capsys.readouterr().out


def test_a_check_of_a_warehouse_names_what_fits_no_declaration(
    warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    domain = jaxcd.Domain(
        {
            "arm": jaxcd.Ordinal((0, 1)),
            "dose": jaxcd.Numeric(0, 5),
            "group": jaxcd.Ordinal((0, 1, 2, 3)),
        }
    )
    domain.write(tmp_path / "domain.json")
    file = str(warehouse / "clinic.duckdb")
    words = ["check", file, "--table", "recent", "--domain", str(tmp_path / "domain.json")]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert "arm" in said and "1,000" in said and "dose" in said


@pytest.mark.parametrize("command", ["domain", "check"])
@pytest.mark.parametrize(
    ("file", "more", "said"),
    [
        ("clinic.duckdb", [], "--table is missing"),
        ("clinic.duckdb", ["--table", "nobody"], "cannot be read"),
        ("clinic.duckdb", ["--table", "broken"], "ConversionException"),
        ("lake", ["--table", "visits"], "no DuckDB file"),
        ("none/*.parquet", [], "no parquet file"),
    ],
)
def test_what_is_wrong_with_a_warehouse_is_named(
    warehouse: Path,
    command: str,
    file: str,
    more: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    domain = tmp_path / "domain.json"
    jaxcd.Domain({"arm": jaxcd.Ordinal((0, 1, 2))}).write(domain)
    option = {"check": ["--domain", str(domain)], "domain": ["--out", str(tmp_path / "d.json")]}
    assert main([command, str(warehouse / file), *more, *option[command]]) == 2
    assert said in capsys.readouterr().err
