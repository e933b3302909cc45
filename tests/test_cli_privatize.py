"""``jaxcd privatize``: what it writes, and what it refuses in one line of plain words."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxcd
from jaxcd import local
from jaxcd.cli.privatize import MECHANISMS, _binned
from tests.helpers import CommandLine, simulated

LEVELS = ("low", "middle", "high")
DOMAIN = jaxcd.Domain(
    {
        "grade": jaxcd.Ordinal(LEVELS),
        "sex": jaxcd.Categorical(("f", "m")),
        "height": jaxcd.Numeric(150.0, 200.0),
    }
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """people.csv of 400 rows and domain.json."""
    rng = np.random.default_rng(0)
    lines = ["grade,sex,height"]
    lines += [
        f"{LEVELS[rng.integers(3)]},{'fm'[rng.integers(2)]},{rng.uniform(150, 200):.2f}"
        for _ in range(400)
    ]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    DOMAIN.write(tmp_path / "domain.json")
    return tmp_path


def words(folder: Path, *more: Any, out: str = "randomised.csv") -> list[Any]:
    files = [folder / "people.csv", "--domain", folder / "domain.json", "--out", folder / out]
    return ["privatize", *files, more]


BINS = "--bins 5"
KRR = "--mechanism krr --epsilon-ldp 2"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("level", ["--p-max 0.3", "--epsilon-ldp 3", "--d-privacy 0.5"])
def test_table_and_guarantee(
    folder: Path, command: CommandLine, mechanism: str, level: str
) -> None:
    code, out, err = command(words(folder, "--mechanism", mechanism, level, BINS))
    assert (code, err) == (0, "") and "randomised.csv" in out
    content = json.loads(
        (folder / "randomised.guarantee.json").read_text(), parse_constant=pytest.fail
    )
    guarantee = content["guarantee"]
    assert guarantee["proved"] and content["secure_noise"] and content["n_samples"] == 400
    name, value = level.split()
    name = {"--p-max": "p_truth_largest"}.get(name, name[2:].replace("-", "_"))
    assert guarantee[name] == pytest.approx(float(value), rel=1e-6)
    assert [len(column["levels"]) for column in content["columns"].values()] == [3, 2, 5]
    # What was written is a table of the domain that the guarantee file declares.
    kinds = {"ordinal": jaxcd.Ordinal, "categorical": jaxcd.Categorical}
    domain = jaxcd.Domain(
        {
            key: kinds[column["type"]](tuple(column["levels"]))
            for key, column in content["columns"].items()
        }
    )
    randomised = jaxcd.read_csv(folder / "randomised.csv", domain=domain)
    assert randomised.n_samples == 400 and randomised.names == ("grade", "sex", "height")


def test_the_epsilon_of_the_file_is_that_of_the_channel(folder: Path, command: CommandLine) -> None:
    combined = "--mechanism geometric-combined --p-max 0.4 --distance euclidean"
    command.shows(words(folder, combined, BINS))
    content = json.loads((folder / "randomised.guarantee.json").read_text())
    cells = jaxcd.Domain(
        {
            "grade": jaxcd.Ordinal(LEVELS),
            "sex": DOMAIN["sex"],
            "height": jaxcd.Ordinal((1, 2, 3, 4, 5)),
        }
    )
    channel = local.joint_channel(
        local.CombinedGeometric(content["mechanism"]["p_max"], local.Distance.EUCLIDEAN), cells
    )
    losses = np.log(channel.max(axis=0) / channel.min(axis=0))
    assert content["guarantee"]["epsilon_ldp"] == pytest.approx(losses.max(), abs=1e-6)


def test_simulated_noise_repeats_and_is_not_proved(folder: Path, command: CommandLine) -> None:
    for out in ("a.csv", "b.csv"):
        printed = command.json(words(folder, KRR, BINS, "--simulated-noise --seed 3", out=out))
        assert not printed["guarantee"]["proved"] and not printed["secure_noise"]
    assert (folder / "a.csv").read_text() == (folder / "b.csv").read_text()
    data = local.discretise_columns(jaxcd.read_csv(folder / "people.csv", domain=DOMAIN), bins=5)
    known = local.randomise(data, local.KaryResponse(2.0), noise=simulated(3))
    read = jaxcd.read_csv(folder / "a.csv", domain=known.domain)
    assert np.array_equal(read.codes, known.codes) and not np.array_equal(read.codes, data.codes)


def test_almost_no_noise_gives_the_data_back(folder: Path, command: CommandLine) -> None:
    command.shows(words(folder, "--mechanism krr --epsilon-ldp 300 --bins 7 --bins height=4"))
    data = local.discretise_columns(
        jaxcd.read_csv(folder / "people.csv", domain=DOMAIN), bins={"height": 4}
    )
    assert np.array_equal(
        jaxcd.read_csv(folder / "randomised.csv", domain=data.domain).codes, data.codes
    )


def test_the_domain_file_beside_it_reads_what_was_written(
    folder: Path, command: CommandLine
) -> None:
    """Levels, bins, numbers that were cut and missing cells; with almost no noise all of them."""
    domain = jaxcd.Domain(
        {
            "grade": jaxcd.Ordinal(LEVELS, missing=("?",)),
            "sex": jaxcd.Categorical(("f", "m"), other="m"),
            "height": jaxcd.Binned((150.0, 170.0, 180.0, 200.0), missing=(999,)),
            "weight": jaxcd.Numeric(40.0, 120.0, missing=(0,)),
        }
    )
    domain.write(folder / "domain.json")
    rows = ["?,f,150,40", "low,m,179.5,119", "high,f,999,", "middle,m,200,0"] * 9
    (folder / "people.csv").write_text("\n".join(["grade,sex,height,weight", *rows]) + "\n")
    command.shows(words(folder, "--mechanism krr --epsilon-ldp 300", BINS))
    result = folder / "randomised.domain.json"
    command.shows(["check", folder / "randomised.csv", "--domain", result])  # exit code 0: all fit
    given = local.discretise_columns(jaxcd.read_csv(folder / "people.csv", domain=domain), bins=5)
    read = jaxcd.read_csv(folder / "randomised.csv", domain=jaxcd.Domain.read(result), strict=True)
    assert np.array_equal(read.codes, given.codes)
    assert read.domain.cardinalities == given.domain.cardinalities
    assert given.column("weight")[:4].tolist() == [0, 4, 5, 5]  # missing numbers are no middle ones
    # what the mechanism was set to before anything was read
    assert _binned(domain, {"weight": 5}).columns == given.domain.columns
    assert read.domain["sex"] == domain["sex"]
    content = json.loads((folder / "randomised.guarantee.json").read_text())
    assert content["columns"] == json.loads(result.read_text())["columns"]
    refused = words(folder, KRR, BINS, "--force --domain-out", folder / "domain.json")
    command.refuses("is what --domain names, too", refused)


def test_existing_files_are_kept_unless_forced(folder: Path, command: CommandLine) -> None:
    command.shows(words(folder, KRR, BINS))
    before = (folder / "randomised.csv").read_text()
    command.refuses("--force", words(folder, KRR, BINS))
    assert (folder / "randomised.csv").read_text() == before
    command.shows(words(folder, KRR, BINS, "--force"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        *(
            (f"{KRR} {more}", said)
            for more, said in (
                ("", "--bins is missing for the numeric columns height"),
                ("--bins 1", "is no number of bins"),
                ("--bins sex=5", "no numeric column 'sex'"),
                ("--bins 5 --bins 6", "two numbers"),
                ("--bins height=5 --bins height=6", "given twice"),
            )
        ),
        *(
            (f"{more} {BINS}", said)
            for more, said in (
                ("--mechanism krr", "no level of privacy"),
                ("--mechanism laplace --p-max 0.3", "'laplace' is unknown"),
                ("--mechanism krr --epsilon-ldp 0", "--epsilon-ldp must be"),
                ("--mechanism krr --epsilon-ldp nan", "--epsilon-ldp must be"),
                ("--mechanism krr --epsilon-ldp -1", "--epsilon-ldp must be"),
                ("--mechanism geometric --p-max 0.001", "at least 1/30"),
                ("--mechanism geometric --p-max 1.5", "--p-max must be above 0 and below 1"),
                ("--mechanism geometric --p-max much", "--p-max"),
                ("--mechanism geometric-combined --p-max 0.3 --distance far", "'far' is unknown"),
            )
        ),
        *(
            (f"{KRR} {BINS} {more}", said)
            for more, said in (
                ("--p-max 0.3", "--p-max and --epsilon-ldp are given"),
                ("--distance euclidean", "--distance is for"),
                ("--seed 3", "--seed is for --simulated-noise"),
                ("--seed -1 --simulated-noise", "is not a seed"),
            )
        ),
    ],
)
def test_bad_options(folder: Path, command: CommandLine, more: str, said: str) -> None:
    before = sorted(os.listdir(folder))
    command.refuses(said, words(folder, more))
    assert sorted(os.listdir(folder)) == before


def test_bad_files(folder: Path, command: CommandLine) -> None:
    def refused(said: str, *more: Any, out: str = "randomised.csv") -> None:
        command.refuses(said, words(folder, KRR, BINS, more, out=out))

    refused("is no csv file", out="randomised.txt")
    refused("no file in a folder", out="nowhere/randomised.csv")
    refused("is what FILE names, too", "--force", out="people.csv")
    refused("is what --domain names, too", "--force --guarantee-out", folder / "domain.json")
    refused("is what --out names, too", "--guarantee-out", folder / "randomised.csv")
    people = (folder / "people.csv").read_text()
    (folder / "people.csv").write_text(people + "low,f,250\n")
    command.shows(words(folder, KRR, BINS, "--clip"))
    (folder / "people.csv").write_text(people + "lowest,f,160\n")
    command.shows(words(folder, KRR, BINS, out="another.csv"))
    jaxcd.Domain(dict(DOMAIN.columns), declared=False).write(folder / "domain.json")
    refused("draft", out="other.csv")
    jaxcd.Domain({**DOMAIN.columns, "height": jaxcd.Numeric()}).write(folder / "domain.json")
    refused("height", out="other.csv")
    (folder / "domain.json").unlink()
    refused("does not exist", out="other.csv")


def test_the_frequency_of_the_truth_is_that_promised(folder: Path, command: CommandLine) -> None:
    data = local.discretise_columns(jaxcd.read_csv(folder / "people.csv", domain=DOMAIN), bins=5)
    kept = 0
    for seed in range(1, 11):
        more = "--mechanism krr-combined --p-max 0.3 --force --simulated-noise --seed"
        command.shows(words(folder, BINS, more, seed))
        randomised = jaxcd.read_csv(folder / "randomised.csv", domain=data.domain)
        kept += int((randomised.codes == data.codes).all(axis=1).sum())
    assert abs(kept - 4000 * 0.3) < 4 * math.sqrt(4000 * 0.3 * 0.7)


def test_a_person_of_several_rows_is_not_promised_what_one_row_is(
    folder: Path, command: CommandLine
) -> None:
    """Until the domain says that one row is what is protected."""
    path = folder / "domain.json"
    content = json.loads(path.read_text())
    content["columns"] |= {"sex": {"person": True}}
    path.write_text(json.dumps(content))
    code, out, err = command(words(folder, KRR, BINS))
    assert (code, out) == (2, "") and "column 'sex'" in err and '"ignore": true' in err
    assert not (folder / "randomised.csv").exists()
    data = local.discretise_columns(
        jaxcd.read_csv(folder / "people.csv", domain=jaxcd.Domain.read(path)), bins=5
    )
    with pytest.raises(jaxcd.errors.PrivacyError, match="several rows"):
        local.randomise(data, local.KaryResponse(2.0))
    content["columns"] |= {"sex": {"ignore": True}}
    path.write_text(json.dumps(content))
    assert command(words(folder, KRR, BINS))[::2] == (0, "")


def test_a_screen_that_fails_leaves_the_files_and_no_other(
    folder: Path, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that was paid for is in them."""
    monkeypatch.chdir(folder)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jaxcd.cli.privatize._show", full)
    code, _, err = command(words(folder, KRR, BINS))
    assert code == 2 and err.splitlines() == [
        f"jaxcd: {folder / 'randomised.csv'} is written, and so is what goes with it",
        "jaxcd: No space left on device",
    ]
    assert len((folder / "randomised.csv").read_text().splitlines()) == 401
    assert not list(folder.glob("jaxcd-bought-*"))
