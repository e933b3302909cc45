"""``jaxcd direction``: what it answers, and what it refuses in one line of plain words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.pairwise import cds, igci, or_neither, reci
from jaxcd.pairwise.anm import anm
from jaxcd.pairwise.anm_scores import KendallScore, LogIQRScore, Protect, SpearmanScore
from tests.helpers import CommandLine

PAIR = "--x dose --y response"
BOUNDS = "--bounds -1 1 -1.5 1.5"
EDGES = ((-1.0, 1.0), (-1.5, 1.5))


@pytest.fixture(scope="module")
def columns() -> tuple[np.ndarray, np.ndarray]:
    """dose causes response."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 600)
    return x, x**3 + 0.1 * rng.normal(size=600)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, columns: tuple[np.ndarray, np.ndarray]) -> Path:
    path = tmp_path_factory.mktemp("table") / "doses.csv"
    pd.DataFrame({"response": columns[1], "name": "a", "dose": columns[0]}).to_csv(
        path, index=False
    )
    return path


# ---- what it does


def test_a_ledger_of_persons_is_refused_with_a_cure_there_is(
    command: CommandLine, file: Path, tmp_path: Path
) -> None:
    """``direction`` has no ``--unit``."""
    path = tmp_path / "people.ledger"
    command.shows("ledger", path, "--data-set doses --epsilon 4 --unit person")
    command.refuses(
        "is a person, and this run's a row; give another ledger",
        "direction",
        *(file, PAIR, BOUNDS, "--epsilon 1 --ledger", path),
    )


def test_a_private_answer(command: CommandLine, file: Path) -> None:
    code, out, err = command("direction", file, PAIR, "--method reci --epsilon 4", BOUNDS)
    assert (code, err) == (0, "")
    for pattern in (
        r"^data +.*doses\.csv, 600 rows, dose and response$",
        r"^method +reci BoundedPolynomial\(",
        r"^noise +secure, from the operating system$",
        r"^differs +from the method without privacy: columns are scaled by the bounds, ",
        r"^direction +no evidence for either \(it leans to dose -> response\)$",
        r"^margin +0\.0\d+; a direction is named above 0\.0\d+, which at most 10% of 81 public ",
        r"^agreement +(0\.9\d\d|1\.000), the probability that the same method .* the noise; ",
        r"^guarantee +epsilon=4, delta=0 \(replace-one; proved: ",
    ):
        assert re.search(pattern, out, re.MULTILINE), pattern
    assert "scores" not in out  # not released


@pytest.mark.parametrize("method", ["reci", "igci", "cds", "anm"])
def test_without_privacy_it_is_the_function(
    method: str, command: CommandLine, file: Path, columns: tuple[np.ndarray, np.ndarray]
) -> None:
    key = jax.random.fold_in(jax.random.key(0), 2)
    functions = {"reci": reci, "igci": igci, "cds": cds, "anm": anm}
    expected = (
        functions[method](*columns, budget=jaxcd.NO_PRIVACY, key=key)
        if method != "cds"
        else cds(*columns, budget=jaxcd.NO_PRIVACY)
    )
    found = command.json("direction", file, PAIR, "--method", method, "--no-privacy")
    names = {"x -> y": "dose -> response", "y -> x": "response -> dose"}
    assert found["leans_to"] == names[expected.direction.value] and found["method"] == method
    kept = or_neither(expected)
    named = names.get(kept.direction.value, "no evidence for either")
    assert found["direction"] == named and found["agreement_without_noise"] is None
    assert found["least_margin"] == kept.info["least_margin"]
    assert found["scores"] == pytest.approx([expected.forward, expected.backward], rel=1e-9)
    swapped = command.json(
        "direction", file, "--x response --y dose --method", method, "--no-privacy"
    )
    assert swapped["direction"] == found["direction"] and found["guarantee"]["epsilon"] == "inf"


@pytest.mark.parametrize(
    ("score", "protect", "kind"),
    [
        ("spearman", "test", SpearmanScore),
        ("kendall", "test", KendallScore),
        ("iqr", "both", LogIQRScore),
    ],
)
def test_simulated_noise_repeats(
    score: str,
    protect: str,
    kind: Any,
    command: CommandLine,
    file: Path,
    columns: tuple[np.ndarray, np.ndarray],
) -> None:
    words = [
        "direction",
        file,
        PAIR,
        "--epsilon 1",
        BOUNDS,
        "--score",
        score,
        "--protect",
        protect,
        "--simulated-noise --seed 3",
    ]
    first = command.json(words)
    key = jax.random.key(3)
    expected = anm(
        *columns,
        budget=jaxcd.Budget(1.0),
        key=jax.random.fold_in(key, 2),
        noise=jaxcd.SimulatedNoise(jax.random.fold_in(key, 1)),
        bounds=EDGES,
        score=kind(),
        protect=Protect(protect),
    )
    assert (first["margin"], first["agreement_without_noise"]) == pytest.approx(
        (expected.margin, expected.confidence)
    )
    assert first["scores"] is None and first["guarantee"]["proven"] is False
    assert set(first["spent"]) == {"epsilon", "delta", "words"}  # it claims nothing of its own
    assert command.json(words) == first
    assert "not for release" in command(words)[2]


def test_bounds_of_a_domain_file(command: CommandLine, file: Path, tmp_path: Path) -> None:
    domain = jaxcd.Domain({"dose": jaxcd.Numeric(-1.0, 1.0), "response": jaxcd.Numeric(-1.5, 1.5)})
    domain.write(tmp_path / "domain.json")
    words = ["direction", file, PAIR, "--method reci --epsilon 1 --simulated-noise"]
    assert command.json(words, "--domain", tmp_path / "domain.json") == command.json(words, BOUNDS)
    command.refuses("drop one of the two", words, BOUNDS, "--domain", tmp_path / "domain.json")
    jaxcd.Domain({"dose": jaxcd.Numeric(-1.0, 1.0), "response": jaxcd.Numeric()}).write(
        tmp_path / "open.json"
    )
    expected = "has no bounds of a numeric column 'response'"
    command.refuses(expected, words, "--domain", tmp_path / "open.json")
    words = ["direction", file, PAIR, "--method reci --no-privacy"]
    assert command.json(words, "--domain", tmp_path / "open.json") == command.json(words)


@pytest.mark.parametrize(
    ("method", "cell", "missing"),
    [("anm", "999", [999]), ("reci", "", True), ("igci", "unknown", ["unknown"]), ("cds", "", [9])],
)
def test_without_privacy_rows_with_a_declared_missing_cell_are_left_out(
    method: str, cell: str, missing: Any, command: CommandLine, file: Path, tmp_path: Path
) -> None:
    lines = file.read_text().splitlines()
    gone = np.random.default_rng(1).random(len(lines)) < 0.3
    gone[0] = False
    kept = [line for line, out in zip(lines, gone, strict=True) if not out]
    (tmp_path / "kept.csv").write_text("\n".join(kept) + "\n")
    coded = [
        f"{line.rpartition(',')[0]},{cell}" if out else line
        for line, out in zip(lines, gone, strict=True)
    ]
    (tmp_path / "coded.csv").write_text("\n".join(coded) + "\n")
    domain = tmp_path / "domain.json"
    jaxcd.Domain(
        {"dose": jaxcd.Numeric(-1, 1, missing=missing), "response": jaxcd.Numeric(-2, 2)}
    ).write(domain)
    words = [PAIR, "--no-privacy --method", method, "--domain", domain]
    expected = command.json("direction", tmp_path / "kept.csv", words)
    assert command.json("direction", tmp_path / "coded.csv", words) == expected
    out = command("direction", tmp_path / "coded.csv", words)[1]
    assert f"{len(kept) - 1} rows without missing cells, {gone.sum()} left out" in out


@pytest.mark.parametrize("ending", [".csv.gz", ".parquet"])
def test_other_files(ending: str, command: CommandLine, file: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(file)
    other = tmp_path / f"doses{ending}"
    frame.to_parquet(other) if ending == ".parquet" else frame.to_csv(other, index=False)
    words = [PAIR, "--method igci --no-privacy"]
    assert command.json("direction", other, words) == command.json("direction", file, words)


def test_in_a_private_run_no_cell_is_refused(
    command: CommandLine, file: Path, tmp_path: Path
) -> None:
    lines = file.read_text().splitlines()
    outputs = []
    for cell in ("", "abc", "inf", "-1e999", lines[5].split(",")[0]):
        lines[5] = ",".join([cell, *lines[5].split(",")[1:]])
        (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
        words = ["direction", tmp_path / "a.csv", PAIR, "--method reci"]
        code, out, err = command(words, "--epsilon 1", BOUNDS)
        assert (code, err) == (0, "")
        outputs.append([line.split()[0] for line in out.splitlines()])
        if cell in ("", "abc", "inf"):
            command.refuses("column 'response', row 5", words, "--no-privacy")
    assert all(labels == outputs[0] for labels in outputs)


# ---- what it refuses


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--x dose", "--x and --y must name two different columns"),
        ("--x dose --y dose", "two different columns"),
        ("--x dose --y weight --no-privacy", "column 'weight': "),
        ("--x dose --y name --no-privacy", "column 'name', row 1: the value 'a' is not a number"),
        *(
            (f"{PAIR} {words}", expected)
            for words, expected in (
                ("", "--epsilon is missing"),
                ("--epsilon 1", "--bounds is missing"),
                ("--epsilon 1 --bounds 1 -1 0 1", "--bounds of 'dose' = 1 -1"),
                ("--epsilon 1 --bounds -1 1 0 nan", "--bounds of 'response' = 0 nan"),
                ("--epsilon 1 --bounds 1 2", "requires 4 arguments; see jaxcd direction --help"),
                ("--no-privacy --epsilon 1", "--no-privacy does not go with --epsilon"),
                ("--no-privacy --method lingam", "--method 'lingam' is unknown"),
                ("--no-privacy --score mi", "--score 'mi' is unknown"),
                (
                    "--no-privacy --score hsic --method reci",
                    "--score: --method reci has no such option",
                ),
                ("--no-privacy --protect test", "protects no rows"),
                ("--epsilon 1 --method igci", "--method igci: one record can move"),
                ("--epsilon 1 --method cds", "--method cds: one record can move"),
                ("--no-privacy --seed -1", "--seed -1 is not a seed"),
            )
        ),
        *(
            (f"{PAIR} {BOUNDS} {words}", expected)
            for words, expected in (
                ("--epsilon nan", "--epsilon nan is no budget"),
                ("--epsilon 1 --protect nobody", "--protect 'nobody' is unknown"),
                ("--epsilon 1 --score kendall", "--protect test"),
                ("--no-privacy --method cds", "has no bounds"),
            )
        ),
    ],
)
def test_refusals(words: str, expected: str, command: CommandLine, file: Path) -> None:
    command.refuses(expected, "direction", file, words)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", None, "does not exist"),
        ("a.txt", b"dose,response\n", "unknown kind"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"dose,response\n1,2\n", "1 record, and 8 are the least"),
        ("a.csv", b"dose,dose,response\n1,2,3\n", "has several such columns"),
        ("a.csv", b"dose,response\n\xff\xfe,1\n", "is not UTF-8"),
        ("a.csv.gz", b"no gzip", "is not a complete gzip file"),
        ("a.parquet", b"no parquet", "is not a readable parquet file"),
        ("a.csv", b"dose,response\n" + b"1,2\n" * 9, "x is constant"),
        ("a.csv", b"dose,response\n", "0 records"),
    ],
)
def test_files_that_are_refused(
    name: str, content: bytes | None, expected: str, command: CommandLine, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    command.refuses(expected, "direction", tmp_path / name, PAIR, "--no-privacy --method reci")


def test_columns_that_are_no_measurements_are_refused(command: CommandLine, tmp_path: Path) -> None:
    """By the domain, before the file is opened; by the cells only where nothing is protected."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"dose": rng.uniform(size=20), "patient": np.arange(100, 120)})
    frame["day"] = "2024-01-31"
    frame.to_csv(tmp_path / "a.csv", index=False)
    domain = jaxcd.Domain(
        {"dose": jaxcd.Numeric(0.0, 1.0), "sex": jaxcd.Categorical((0, 1)), "free": jaxcd.Numeric()}
    )
    domain.write(tmp_path / "domain.json")
    words = ["--x dose --epsilon 1 --domain", tmp_path / "domain.json"]
    for name, expected in (
        ("patient", "declares no column 'patient' that may be analysed"),
        ("sex", "declares 'sex' as categorical, and a direction is for numbers"),
        ("free", "has no bounds of a numeric column 'free'"),
    ):
        command.refuses(expected, "direction", tmp_path / "no.csv", words, "--y", name)
    plain = ["direction", tmp_path / "a.csv", "--x dose --no-privacy --y"]
    command.refuses("holds each whole number from 100 to 119 once", plain, "patient")
    command.refuses("the value '2024-01-31' is not a number", plain, "day")
    # in a private run the cells decide nothing: the same ids give an answer
    code, _, err = command(
        "direction", tmp_path / "a.csv", "--x dose --y patient --epsilon 1 --bounds 0 1 0 200"
    )
    assert (code, err) == (0, "")


def test_the_error_rate(command: CommandLine, file: Path) -> None:
    words = ["direction", file, PAIR, "--no-privacy --method reci --error-rate"]
    found = [command.json(words, rate) for rate in ("0.02", "0.1", "0.5", "1")]
    least = [each["least_margin"] for each in found]
    assert least == sorted(least, reverse=True) and least[-1] == 0
    assert found[-1]["direction"] == found[-1]["leans_to"] == "dose -> response"
    assert len({each["leans_to"] for each in found}) == 1
    command.refuses("--error-rate 0.01 is not between", words, "0.01")


def test_a_person_of_several_rows_is_not_promised_what_one_row_is(
    command: CommandLine, file: Path, tmp_path: Path
) -> None:
    """The ways out that are named work, and the first one is a promise to people."""
    path = tmp_path / "domain.json"
    columns: dict[str, Any] = {
        "dose": {"type": "numeric", "lower": -1, "upper": 1},
        "response": {"type": "numeric", "lower": -1.5, "upper": 1.5},
        "name": {"person": True},
    }
    path.write_text(json.dumps({"declared": True, "columns": columns}))
    words = ["direction", file, PAIR, "--method reci --epsilon 4 --domain", path]
    code, out, err = command(words)
    assert (code, out) == (2, "")
    for part in ("column 'name'", "--max-rows-per-person K", '"ignore": true'):
        assert part in err
    code, out, err = command(words, "--max-rows-per-person 3")
    assert (code, err) == (0, "") and "a person with up to 3 rows; proved" in out
    assert command("direction", file, PAIR, "--method cds --no-privacy")[0] == 0
    path.write_text(json.dumps({"declared": True, "columns": columns | {"name": {"ignore": True}}}))
    code, out, err = command(words)
    assert (code, err) == (0, "") and "replace-one; proved" in out


def test_a_screen_that_fails_leaves_the_certificate(
    command: CommandLine, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a certificate that cannot be written leaves the answer on the screen."""
    certificate = tmp_path / "c.json"
    words = [PAIR, "--epsilon 1 --bounds -1 1 -2 2 --simulated-noise --certificate-out"]
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr("jaxcd.cli.direction._show", full)
        code, _, err = command("direction", file, words, certificate)
    assert code == 2 and "No space left" in err
    assert certificate.is_file()
    with monkeypatch.context() as patch:
        patch.setattr("jaxcd.cli.paid.write_certificate", full)
        code, out, _ = command("direction", file, words, tmp_path / "other.json")
    assert code == 2 and "guarantee" in out


def test_a_private_run_says_what_cells_that_are_no_numbers_count_as(
    command: CommandLine, tmp_path: Path
) -> None:
    """In words that do not depend on the cells: whether a column is text is not told."""
    words = [PAIR, "--epsilon 1 --method reci", BOUNDS]
    said = []
    for cell in ("0.1", "abc"):
        table = tmp_path / "t.csv"
        table.write_text("dose,response\n" + "".join(f"{cell},{i % 7 / 7}\n" for i in range(300)))
        shown = command.shows("direction", table, words)
        said += [line for line in shown.splitlines() if line.startswith("cells ")]
    assert len(said) == 2 and len(set(said)) == 1
    assert "a column of text so as a constant" in said[0] and "not checked" in said[0]
    open_run = command.refuses("'dose'", "direction", table, PAIR, "--no-privacy --method reci")
    assert "abc" in open_run
    assert "a column of text" in command.shows("direction --help").replace("\n", " ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that takes nothing")
def test_an_answer_that_waits_in_a_full_output_is_kept(
    command: CommandLine, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file or a pipe takes what is printed when it is flushed, and that may fail."""
    monkeypatch.chdir(tmp_path)
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        code, _, err = command("direction", file, PAIR, "--epsilon 1 --method reci", BOUNDS)
        monkeypatch.undo()
        full.flush()  # nothing is left that would fail at the end
    assert code == 2 and err.endswith("jaxcd: No space left on device\n")
    assert len(list(tmp_path.glob("jaxcd-bought-*.npz"))) == 1
