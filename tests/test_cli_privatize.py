"""``jaxcd privatize``: what it writes, and what it refuses in one line of plain words."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

import jaxcd
from jaxcd import local
from jaxcd.cli import main
from jaxcd.cli.privatize import MECHANISMS
from tests.helpers import simulated

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


def words(folder: Path, *more: str, out: str = "randomised.csv") -> list[str]:
    files = [
        str(folder / "people.csv"),
        "--domain",
        str(folder / "domain.json"),
        "--out",
        str(folder / out),
    ]
    return ["privatize", *files, *more]


BINS = ("--bins", "5")
KRR = ("--mechanism", "krr", "--epsilon-ldp", "2")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "level", [("--p-max", "0.3"), ("--epsilon-ldp", "3"), ("--d-privacy", "0.5")]
)
def test_table_and_guarantee(
    folder: Path, capsys: pytest.CaptureFixture[str], mechanism: str, level: tuple[str, str]
) -> None:
    assert main(words(folder, "--mechanism", mechanism, *level, *BINS)) == 0
    out, err = capsys.readouterr()
    assert err == "" and "randomised.csv" in out
    content = json.loads(
        (folder / "randomised.guarantee.json").read_text(), parse_constant=pytest.fail
    )
    guarantee = content["guarantee"]
    assert guarantee["proved"] and content["secure_noise"] and content["n_samples"] == 400
    name = {
        "--p-max": "p_truth_largest",
        "--epsilon-ldp": "epsilon_ldp",
        "--d-privacy": "d_privacy",
    }[level[0]]
    assert guarantee[name] == pytest.approx(float(level[1]), rel=1e-6)
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


def test_the_epsilon_of_the_file_is_that_of_the_channel(folder: Path) -> None:
    assert (
        main(
            words(
                folder,
                "--mechanism",
                "geometric-combined",
                "--p-max",
                "0.4",
                "--distance",
                "euclidean",
                *BINS,
            )
        )
        == 0
    )
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


def test_simulated_noise_repeats_and_is_not_proved(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out in ("a.csv", "b.csv"):
        assert (
            main(words(folder, *KRR, *BINS, "--simulated-noise", "--seed", "3", "--json", out=out))
            == 0
        )
        printed = json.loads(capsys.readouterr().out)
        assert not printed["guarantee"]["proved"] and not printed["secure_noise"]
    assert (folder / "a.csv").read_text() == (folder / "b.csv").read_text()
    data = local.discretise_columns(jaxcd.read_csv(folder / "people.csv", domain=DOMAIN), bins=5)
    known = local.randomise(data, local.KaryResponse(2.0), noise=simulated(3))
    read = jaxcd.read_csv(folder / "a.csv", domain=known.domain)
    assert np.array_equal(read.codes, known.codes) and not np.array_equal(read.codes, data.codes)


def test_almost_no_noise_gives_the_data_back(folder: Path) -> None:
    assert (
        main(
            words(
                folder,
                "--mechanism",
                "krr",
                "--epsilon-ldp",
                "300",
                "--bins",
                "7",
                "--bins",
                "height=4",
            )
        )
        == 0
    )
    data = local.discretise_columns(
        jaxcd.read_csv(folder / "people.csv", domain=DOMAIN), bins={"height": 4}
    )
    assert np.array_equal(
        jaxcd.read_csv(folder / "randomised.csv", domain=data.domain).codes, data.codes
    )


def test_existing_files_are_kept_unless_forced(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(folder, *KRR, *BINS)) == 0
    before = (folder / "randomised.csv").read_text()
    assert main(words(folder, *KRR, *BINS)) == 2 and "--force" in capsys.readouterr().err
    assert (folder / "randomised.csv").read_text() == before
    assert main(words(folder, *KRR, *BINS, "--force")) == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((*KRR, "--p-max", "0.3", *BINS), "--p-max and --epsilon-ldp are given"),
        (("--mechanism", "krr", *BINS), "no level of privacy"),
        (("--mechanism", "laplace", "--p-max", "0.3", *BINS), "'laplace' is unknown"),
        (("--mechanism", "krr", "--epsilon-ldp", "0", *BINS), "epsilon_ldp must be"),
        (("--mechanism", "krr", "--epsilon-ldp", "nan", *BINS), "epsilon_ldp must be"),
        (("--mechanism", "krr", "--epsilon-ldp", "-1", *BINS), "epsilon_ldp must be"),
        (("--mechanism", "geometric", "--p-max", "0.001", *BINS), "at least 1/30"),
        (
            ("--mechanism", "geometric", "--p-max", "1.5", *BINS),
            "p_max must be above 0 and below 1",
        ),
        (("--mechanism", "geometric", "--p-max", "much", *BINS), "--p-max"),
        (KRR, "--bins is missing for the numeric columns height"),
        ((*KRR, "--bins", "1"), "is no number of bins"),
        ((*KRR, "--bins", "sex=5"), "no numeric column 'sex'"),
        ((*KRR, "--bins", "5", "--bins", "6"), "two numbers"),
        ((*KRR, "--bins", "height=5", "--bins", "height=6"), "given twice"),
        ((*KRR, *BINS, "--distance", "euclidean"), "--distance is for"),
        (
            ("--mechanism", "geometric-combined", "--p-max", "0.3", *BINS, "--distance", "far"),
            "'far' is unknown",
        ),
        ((*KRR, *BINS, "--seed", "3"), "--seed is for --simulated-noise"),
        ((*KRR, *BINS, "--seed", "-1", "--simulated-noise"), "is not a seed"),
    ],
)
def test_bad_options(
    folder: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    before = sorted(os.listdir(folder))
    assert main(words(folder, *more)) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("jaxcd: ") and err.count("\n") == 1 and said in err
    assert sorted(os.listdir(folder)) == before


def test_bad_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(said: str, *more: str, out: str = "randomised.csv") -> None:
        assert main(words(folder, *KRR, *BINS, *more, out=out)) == 2
        printed, err = capsys.readouterr()
        assert printed == "" and err.count("\n") == 1 and said in err, err

    refused("is no csv file", out="randomised.txt")
    refused("no file in a folder", out="nowhere/randomised.csv")
    refused("is an input", "--force", out="people.csv")
    refused("is an input", "--force", "--guarantee-out", str(folder / "domain.json"))
    refused("two files", "--guarantee-out", str(folder / "randomised.csv"))
    people = (folder / "people.csv").read_text()
    (folder / "people.csv").write_text(people + "low,f,250\n")
    assert main(words(folder, *KRR, *BINS, "--clip")) == 0
    capsys.readouterr()
    (folder / "people.csv").write_text(people + "lowest,f,160\n")
    assert main(words(folder, *KRR, *BINS, out="another.csv")) == 0
    capsys.readouterr()
    jaxcd.Domain(dict(DOMAIN.columns), declared=False).write(folder / "domain.json")
    refused("draft", out="other.csv")
    jaxcd.Domain({**DOMAIN.columns, "height": jaxcd.Numeric()}).write(folder / "domain.json")
    refused("height", out="other.csv")
    (folder / "domain.json").unlink()
    refused("does not exist", out="other.csv")


def test_the_frequency_of_the_truth_is_that_promised(folder: Path) -> None:
    data = local.discretise_columns(jaxcd.read_csv(folder / "people.csv", domain=DOMAIN), bins=5)
    kept = 0
    for seed in range(1, 11):
        more = (
            "--mechanism",
            "krr-combined",
            "--p-max",
            "0.3",
            *BINS,
            "--simulated-noise",
            "--seed",
            str(seed),
            "--force",
        )
        assert main(words(folder, *more)) == 0
        randomised = jaxcd.read_csv(folder / "randomised.csv", domain=data.domain)
        kept += int((randomised.codes == data.codes).all(axis=1).sum())
    assert abs(kept - 4000 * 0.3) < 4 * math.sqrt(4000 * 0.3 * 0.7)
