"""Text files that are no UTF-8: read as the encoding says that the user names, and as no other."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.data import Categorical, Domain, Ordinal, read_csv
from jaxcd.data.checking import check_file
from jaxcd.data.drafting import draft_of_file
from jaxcd.errors import DataError, OptionError
from jaxcd.federated import Coordinator, Federation, LocalLine, SiteFile
from tests.helpers import CommandLine, refused, simulated

DOMAIN = Domain({"größe": Categorical(("groß", "klein")), "stufe": Ordinal((1, 2))})
TEXT = "größe,stufe\n" + "groß,1\nklein,2\n" * 20
ENCODED = ("latin-1", "ISO-8859-15", "windows-1252", "cp1250", "utf-8")


def written(folder: Path, encoding: str = "latin-1", name: str = "t.csv") -> Path:
    content = TEXT.encode(encoding)
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_file_is_read_in_the_encoding_that_is_named(
    tmp_path: Path, encoding: str, strict: bool, name: str
) -> None:
    file = written(tmp_path, encoding, name)
    data = read_csv(file, domain=DOMAIN, strict=strict, encoding=encoding)
    assert data.codes.tolist() == [[0, 0], [1, 1]] * 20
    assert check_file(file, domain=DOMAIN, encoding=encoding).clean
    assert draft_of_file(file, encoding=encoding).domain.names == DOMAIN.names


@pytest.mark.parametrize("strict", [False, True])
def test_a_header_that_is_no_utf_8_names_the_cure(tmp_path: Path, strict: bool) -> None:
    """The header is public.  A domain that was drafted from the same bytes fits them."""
    file = written(tmp_path)
    words = r"file .*t\.csv.*encoding='latin1'"
    refused(DataError, words, read_csv, file, domain=DOMAIN, strict=strict)
    drafted = Domain({"gr\ufffd\ufffde": Categorical(("klein",)), "stufe": Ordinal((1, 2))})
    assert read_csv(file, domain=drafted, strict=False).n_samples == 40


def test_a_parquet_file_is_in_no_encoding(tmp_path: Path) -> None:
    """Names that were damaged before it was written are unknown columns, with another cure."""
    pd.DataFrame({"gr\ufffde": ["klein"], "stufe": [1]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="größe") as caught:
        read_csv(tmp_path / "t.parquet", domain=DOMAIN)
    assert "encoding" not in str(caught.value)


def test_a_large_file_is_read_so_too(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_bytes(file.read_bytes() + "groß,1\n".encode("latin-1") * 20_000)
    data = read_csv(file, domain=DOMAIN, encoding="latin-1")
    assert data.n_samples == 20_040 and data.column("größe").tolist()[40:] == [0] * 20_000


def test_bytes_of_a_cell_stay_in_it(tmp_path: Path) -> None:
    """Each byte is one letter: none takes the end of its line, or of its cell, along."""
    file = tmp_path / "t.csv"
    for byte in range(128, 256):
        for encoding in ("latin-1", "windows-1252"):
            file.write_bytes(b"a,b\n" + bytes([byte]) + b",1\nx,2\n")
            domain = Domain({"a": Categorical(("x", "else"), other="else"), "b": Ordinal((1, 2))})
            assert read_csv(file, domain=domain, encoding=encoding).codes.tolist() == [
                [1, 0],
                [0, 1],
            ]


@pytest.mark.parametrize(
    "encoding", ["", "latin99", "utf-16", "shift_jis", "gb18030", "rot13", 3, None]
)
def test_an_encoding_of_other_kinds_is_refused(tmp_path: Path, encoding: Any) -> None:
    """One whose letters have several bytes could take the end of a line along."""
    refused(OptionError, "^encoding = .*latin1", read_csv, written(tmp_path), encoding=encoding)


def test_what_no_encoding_is_for(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    refused(OptionError, "encoding", read_csv, tmp_path / "t.parquet", encoding="latin-1")
    (tmp_path / "t.csv").write_text("\ufeff" + TEXT, encoding="utf-8")
    refused(DataError, "begins as UTF-8", read_csv, tmp_path / "t.csv", encoding="latin-1")
    refused(
        DataError, r"read_csv\(path, encoding='latin1'\)", read_csv, written(tmp_path), strict=True
    )


def test_every_command_that_reads_a_text_file_takes_it(
    command: CommandLine, tmp_path: Path
) -> None:
    file, domain = written(tmp_path), tmp_path / "d.json"
    DOMAIN.write(domain)
    named = ["--encoding", "latin-1"]
    shown = command.shows("domain", file, "--out", tmp_path / "draft.json", named)
    assert shown.count(f"{file} --encoding latin-1") == 2  # the commands that follow
    assert command("check", file, "--domain", domain)[0] == 1
    command.shows("check", file, "--domain", domain, named)
    command.refuses("name its encoding: --encoding latin1\n", "discover --no-privacy --quiet", file)
    command.shows("discover --no-privacy --quiet", file, "--domain", domain, named)
    command.shows("discover --epsilon 1 --quiet", file, "--domain", domain, named)
    out = ["--out", tmp_path / "out.csv", "--mechanism krr --epsilon-ldp 2", named]
    command.shows("privatize", file, "--domain", domain, out)
    other = shutil.copy(file, tmp_path / "u.csv")
    release = ["--out", tmp_path / "r.npz", "--epsilon 1 --encoding utf-16"]
    command.refuses("--encoding 'utf-16'", "federate", file, other, "--domain", domain, release)
    owners = Federation(("t", "u"), jaxcd.Budget(500.0))
    sites = [SiteFile(n, file, domain, owners, seed=1, encoding="latin-1")() for n in owners.sites]
    lines = {name: LocalLine(site.answer) for name, site in zip(owners.sites, sites, strict=True)}
    bought = Coordinator(owners, DOMAIN, lines).release(jaxcd.Histogram(), noise=simulated())
    assert np.abs(bought.values - [[40, 0], [0, 40]]).max() < 1
    numbers = tmp_path / "n.csv"
    numbers.write_bytes("größe,y\n".encode("latin-1") + b"1,2\n2,3.5\n3,3\n4,5\n" * 10)
    pair = ["--x größe --y y --no-privacy --method reci", named]
    command.shows("direction", numbers, pair)
    for words in (
        "discover --network cancer --no-privacy",
        f"domain {tmp_path / 'lake.duckdb'} --table t",
    ):
        command.refuses("encoding", words, named)
    command.refuses("--encoding", "domain", file, "--encoding utf-16", "--out", tmp_path / "x.json")


def test_the_default_is_utf_8(tmp_path: Path) -> None:
    file = written(tmp_path, "utf-8")
    assert jaxcd.read_csv(file, domain=DOMAIN).codes.tolist() == [[0, 0], [1, 1]] * 20
