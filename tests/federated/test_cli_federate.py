"""``jaxcd federate``: a process a site, and plain words for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.cli import federating, main
from jaxcd.errors import OptionError
from jaxcd.federated import SiteFile
from jaxcd.privacy.ledger import check_same_accounting


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("owners")
    network = jaxcd.networks.load("cancer")
    for place, name in enumerate(("north", "south", "east")):
        data = network.sample(400, key=jax.random.key(place))
        columns = [np.array(data.domain[c].levels)[data.column(c)] for c in data.domain.names]
        lines = [
            ",".join(data.domain.names),
            *(",".join(map(str, r)) for r in zip(*columns, strict=True)),
        ]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    network.sample(2, key=jax.random.key(0)).domain.write(folder / "domain.json")
    return folder


def words(
    folder: Path, *more: str, names: tuple[str, ...] = ("north", "south", "east")
) -> list[str]:
    files = [str(folder / f"{name}.csv") for name in names]
    return ["federate", *files, "--domain", str(folder / "domain.json"), *more]


@pytest.mark.slow
def test_three_processes_make_one_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report = folder / "bought.npz", folder / "run.json"
    options = ["--epsilon", "1", "--dropouts", "1", "--site-column", "hospital", "--ledgers"]
    paths = [str(folder / "ledgers"), "--out", str(out), "--report", str(report)]
    assert main(words(folder, *options, *paths)) == 0
    shown = capsys.readouterr().out
    assert "adversary  one row replaced in one of 3 sites" in shown and "proved" in shown
    bought = jaxcd.Release.load(out)
    assert bought.n_samples == 1_200 and bought.names[-1] == "hospital" and bought.cost.proven
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["sites"] == {"north": 400, "south": 400, "east": 400} and found["dropouts"] == 1
    assert all(size < 10_000 for size in found["rounds"][0]["bytes"].values())
    for name in ("north", "south", "east"):
        assert jaxcd.verify(folder / "ledgers" / f"{name}.ledger").holds
    # the second time no ledger has anything left
    assert main(words(folder, *options, *paths, "--force")) == 2
    assert "must answer" in capsys.readouterr().err


@pytest.mark.slow
def test_simulated_noise_is_named_wherever_the_run_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = folder / "simulated.json"
    options = ["--epsilon", "1", "--simulated-noise", "--json", "--report", str(report)]
    assert main(words(folder, *options, "--out", str(folder / "simulated.npz"))) == 0
    said = capsys.readouterr()
    for text in (said.out, report.read_text(encoding="utf-8")):
        found = json.loads(text)
        assert found["proven"] is False and "simulated" in found["reason"]
    assert "not for release: the noise was simulated" in said.err


@pytest.mark.slow
def test_a_site_that_cannot_start_is_a_dropout(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "torn.csv").write_text("Smoker\n1\n", encoding="utf-8")
    more = ["--epsilon", "1", "--ledgers", str(tmp_path), "--out", str(tmp_path / "x.npz")]
    names = ("north", "torn", "east")
    assert main(words(folder, *more, names=names)) == 2
    error = capfd.readouterr().err
    assert "at least 3 must answer (site 'torn' takes no further part: it could not start" in error
    assert all(jaxcd.LedgerFile(path).spent.epsilon == 0 for path in tmp_path.glob("*.ledger"))
    assert main(words(folder, *more, "--dropouts", "1", names=names)) == 0
    assert "note       site 'torn' takes no further part" in capfd.readouterr().out
    assert jaxcd.Release.load(tmp_path / "x.npz").n_samples == 800
    spent = {path.stem: jaxcd.LedgerFile(path).spent.epsilon for path in tmp_path.glob("*.ledger")}
    assert spent == {"north": 1, "torn": 0, "east": 1}


def test_the_folder_of_the_ledgers_is_made(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before a site starts, and not where something else is refused."""
    place = tmp_path / "new" / "ledgers"
    more = ["--epsilon", "1", "--ledgers", str(place), "--out", str(tmp_path / "x.npz")]
    assert main(words(folder, *more, "--kind", "x")) == 2 and not place.parent.exists()

    def started(site: SiteFile) -> None:
        raise OptionError(f"{site.ledger} {place.is_dir()}")

    monkeypatch.setattr(jaxcd.federated, "ProcessLine", started)
    assert main(words(folder, *more)) == 2
    assert "north.ledger True" in capsys.readouterr().err


def test_a_ledger_of_another_accounting_is_refused_in_options(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    budget = jaxcd.Budget(1.0, 1e-6)
    ledger = jaxcd.LedgerFile(tmp_path / "north.ledger", data_set="north", budget=budget)
    zcdp = jaxcd.Budget(1.0, 1e-6, accounting=jaxcd.privacy.Accounting.ZCDP)

    def started(site: SiteFile) -> None:
        check_same_accounting(zcdp, ledger)

    monkeypatch.setattr(jaxcd.federated, "ProcessLine", started)
    more = ["--epsilon", "1", "--ledgers", str(tmp_path), "--out", str(tmp_path / "x.npz")]
    assert main(words(folder, *more)) == 2
    assert "use a ledger made with --accounting zcdp" in capsys.readouterr().err


def test_nothing_is_written_over_the_ledger_of_a_site(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was charged would be forgotten, also where the run itself makes the ledger."""
    more = ["--epsilon", "1", "--ledgers", str(tmp_path), "--force"]
    for made in (False, True):
        if made:
            jaxcd.LedgerFile(tmp_path / "south.ledger", data_set="south", budget=jaxcd.Budget(3.0))
        places = sorted(tmp_path.iterdir())
        for option, other in (("--out", "--report"), ("--report", "--out")):
            written = [option, str(tmp_path / "south.ledger"), other, str(tmp_path / "x")]
            assert main(words(folder, *more, *written)) == 2
            error = capsys.readouterr().err
            assert option in error and "is what the ledger of site 'south' names, too" in error
            assert sorted(tmp_path.iterdir()) == places


FILE = "a file"


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--out", "x.npz"], "--epsilon is missing"),
        (["--out", "x.npz", "--epsilon", "1", "--dropouts", "2"], "at least two answer"),
        (["--out", "x.npz", "--epsilon", "1", "--kind", "x"], "--kind 'x' is unknown"),
        (["--out", "x.npz", "--epsilon", "1", "--seed", "3"], "--seed is for"),
        (["--out", "no/x.npz", "--epsilon", "1"], "no file in a folder that exists"),
        (["--out", "x.npz", "--report", "x.npz", "--epsilon", "1"], "what --out names, too"),
        (["--out", "x.npz", "--epsilon", "1", "--ledgers", FILE], "is a file"),
        (["--out", "x.npz", "--epsilon", "1", "--site-column", "Smoker"], "is a column"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    folder: Path, more: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [str(folder / "north.csv") if word is FILE else word for word in more]
    assert main(words(folder, *more)) == 2
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1


def test_sites_have_different_files_that_are_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--out", "x.npz", "--epsilon", "1"]
    assert main(words(folder, *more, names=("north", "north"))) == 2
    assert "not all different" in capsys.readouterr().err
    assert main(words(folder, *more, names=("north", "nobody"))) == 2
    assert "does not exist" in capsys.readouterr().err


def test_the_help_says_up_to_how_many_cells_auto_takes_a_histogram(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_cells = {
        n: jaxcd.Domain({"a": jaxcd.Categorical((0, 1)), "b": jaxcd.Ordinal(tuple(range(n)))})
        for n in (4_096, 4_097)
    }
    kinds = [federating._kind("auto", domain) for domain in with_cells.values()]
    assert kinds == [jaxcd.Histogram(), jaxcd.Marginals()]
    assert main(["federate", "--help"]) == 0
    assert "8,192 cells" in " ".join(capsys.readouterr().out.replace("│", " ").split())
