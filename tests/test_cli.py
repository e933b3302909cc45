"""The command line: what it prints and writes, and what it refuses in one line of plain words."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl
import pytest

import jaxcd
from jaxcd.cli.app import app
from jaxcd.cli.options import DECIDERS, TESTS
from jaxcd.errors import DataError, GraphError, OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.report import FILES
from tests.helpers import PLAIN, CommandLine, refused, sampled

SMALL = "discover --network cancer --rows 300 --max-level 1"
BUDGET = "--epsilon 1 --delta 1e-6"
GAUSSIAN = jaxcd.Budget(1.0, 1e-6, accounting=jaxcd.privacy.Accounting.GAUSSIAN)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """300 rows of Cancer as a file."""
    path = tmp_path / "patients.csv"
    sampled("cancer", 300).to_frame().to_csv(path, index=False)
    return path


# ---- what it does


def test_the_main_job(command: CommandLine, tmp_path: Path) -> None:
    code, out, err = command(SMALL, BUDGET, "--out", tmp_path / "made" / "asia")
    assert (code, err) == (0, "")
    for pattern in (
        r"^data +cancer, 300 rows sampled with seed 0, 5 columns$",
        r"^budget +epsilon=1, delta=1e-06 \(replace-one\), fixed before the data is read$",
        r"^test +CovarianceNorm, because ",
        r"^mechanism +LevelwiseGaussian, because ",
        r"^noise +secure, from the operating system$",
        r"^Graph: 5 nodes, \d+ edges?$",
        r"^guarantee +epsilon=1, delta=1e-06 \(replace-one, Gaussian accounting; proved: ",
        r"^spent +the ledger used epsilon=\S+ delta=1e-06 in \d+ events?, "
        r"of epsilon=1, delta=1e-06$",
        r"^  arcs +[01]\.\d{3} +[01]\.\d{3} +[01]\.\d{3}$",
        r"^written +.*asia/: graph\.png, graph\.json, graph\.dot, privacy\.json, "
        r"result\.json, report\.html$",
    ):
        assert re.search(pattern, out, re.MULTILINE), pattern
    assert sorted(path.name for path in (tmp_path / "made" / "asia").iterdir()) == sorted(FILES)
    graph = MixedGraph.from_json_dict(
        json.loads((tmp_path / "made" / "asia" / "graph.json").read_text())
    )
    assert all(f"  {edge}\n" in out for edge in graph.edges())


def test_json_is_one_object_and_repeats_with_simulated_noise(
    command: CommandLine, tmp_path: Path
) -> None:
    words = [SMALL, BUDGET, "--simulated-noise --seed 3"]
    first = command.json(words, "--out", tmp_path / "x")
    assert first["secure_noise"] is False and first["guarantee"]["proven"] is False
    assert first["files"] == [str(tmp_path / "x" / name) for name in FILES]
    assert set(first["metrics"]) == {"arc_f1", "skeleton_f1", "orientation_f1", "shd"}
    assert command.json(words) | {"files": first["files"]} == first

    key = jax.random.key(3)
    data = jaxcd.networks.load("cancer").sample(300, key=key)
    noise = jaxcd.SimulatedNoise(jax.random.fold_in(key, 1))
    run = jaxcd.discover(data, budget=jaxcd.Budget(1.0, 1e-6), key=None, noise=noise, max_level=1)
    assert MixedGraph.from_json_dict(first["graph"]) == run.graph
    truth = jaxcd.networks.load("cancer").cpdag()
    assert first["metrics"]["arc_f1"]["f1"] == jaxcd.metrics.arc_f1(run.graph, truth)


def test_the_accounting_is_asked_for_and_shown(command: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    out = command.shows(SMALL, BUDGET, "--accounting gaussian --out", folder)
    for label in ("budget", "guarantee"):
        line = rf"^{label} +epsilon=1, delta=1e-06 \(replace-one, Gaussian accounting[);]"
        assert re.search(line, out, re.MULTILINE), label
    privacy = json.loads((folder / "privacy.json").read_text())
    assert privacy["guarantee"]["accounting"] == "gaussian"
    assert {row["mechanism"] for row in privacy["ledger"]} == {"Gaussian"}
    page = (folder / "report.html").read_text()
    assert "Gaussian accounting)" in page and "price in Gaussian differential privacy" in page
    assert command.shows("verify", folder / "privacy.json")
    zcdp = command.json(SMALL, BUDGET, "--accounting zcdp")
    assert {row["mechanism"] for row in zcdp["ledger"]} == {"ZCDP"}
    more = privacy["ledger"][0]["rho"] / zcdp["ledger"][0]["rho"]
    assert more == pytest.approx(1.150, abs=1e-3)


def test_a_ledger_keeps_its_accounting(command: CommandLine, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.ledger" for name in ("zcdp", "gaussian")}
    for name, path in paths.items():
        new = ["ledger", path, "--data-set a --epsilon 2 --delta 1e-5 --accounting", name]
        assert ("Gaussian accounting" in command.shows(new)) == (name == "gaussian")
        command.refuses("--accounting: file", "ledger", path, "--accounting", name)
    # 0 of rho would read as if nothing were left
    pure = command.shows("ledger", tmp_path / "pure.ledger", "--data-set a --epsilon 2")
    assert "left       2 of epsilon for pure events\n" in pure
    spent = jaxcd.LedgerFile(tmp_path / "spent", data_set="a", budget=GAUSSIAN)
    spent.charge(jaxcd.privacy.GaussianEvent(spent.remaining_rho * (1 - 1e-15)))
    assert "left       nothing\n" in command.shows("ledger", tmp_path / "spent")
    # what is said to be left can be asked for: of 1 less .4 and .4 a little less than .2
    part = jaxcd.LedgerFile(tmp_path / "part", data_set="a", budget=jaxcd.Budget(1.0))
    for _ in range(2):
        part.charge(jaxcd.privacy.PureEvent(0.4))
    assert "left       0.199999 of epsilon" in command.shows("ledger", tmp_path / "part")
    for own, other in (("zcdp", "gaussian"), ("gaussian", "zcdp")):
        path = paths[own]
        content, words = path.read_bytes(), [SMALL, BUDGET, "--ledger", path]
        cure = f"--accounting {other}: the ledger '{path}' has {own}; give --accounting {own}"
        command.refuses(cure, words, "--accounting", other)
        assert path.read_bytes() == content
        command.shows(words, "--accounting", own)
        assert jaxcd.LedgerFile(path).spent.epsilon > 0
    for own, path in paths.items():  # not asked for, it is the ledger's
        shown = command.json(SMALL, BUDGET, "--ledger", path)
        assert shown["guarantee"].get("accounting", "zcdp") == own
    # a pure run adds the rho of its own accounting to either
    pure = [f"{SMALL} --epsilon 0.01 --mechanism sparse-vector --ledger", paths["gaussian"]]
    command.shows(pure)
    shown = command.json("ledger", paths["gaussian"])
    spent = sum(entry["rho"] for entry in shown["analyses"])
    total = jaxcd.privacy.epsilon_to_gdp_rho(2.0, 1e-5)
    assert spent == pytest.approx(total - shown["left"]["rho"], rel=1e-9)


def test_warnings_and_progress_go_to_stderr(command: CommandLine) -> None:
    code, out, err = command(SMALL, "--epsilon 1 --delta 0.01 --simulated-noise --progress --json")
    assert code == 0
    json.loads(out)
    lines = err.splitlines()
    assert "is not below 1 / " in lines[0]
    assert lines[1].startswith("level 0: 10 pairs asked, ")
    assert "not for release" in lines[-1]


@pytest.mark.parametrize("budget", ["--no-privacy", "--epsilon 1 --max-rows-per-person 2"])
def test_the_terminal_says_each_warning_once(
    budget: str, command: CommandLine, tmp_path: Path
) -> None:
    """Those that the report has: also what no plan knows."""
    table, domain = tmp_path / "visits.csv", tmp_path / "domain.json"
    table.write_text("pid,a,b\n" + "1,0,0\n1,1,1\n2,0,1\n2,1,0\n" * 20)
    two = {"type": "ordinal", "levels": [0, 1]}
    columns = {"pid": {"person": True}, "a": two, "b": two}
    domain.write_text(json.dumps({"declared": True, "columns": columns}))
    words = f"discover {table} --domain {domain} {budget}"
    found = command.json(words)["warnings"]
    assert any("several rows of one person (column 'pid')" in warning for warning in found)
    shown = " ".join(command.shows(words).split())
    assert [shown.count(warning) for warning in found] == [1] * len(found)


def test_quiet_prints_the_graph_only(command: CommandLine) -> None:
    words = [SMALL, "--no-privacy"]
    graph = MixedGraph.from_json_dict(command.json(words)["graph"])
    assert command(words, "--quiet") == (0, f"{graph}\n", "")


@pytest.mark.parametrize("name", sorted(set(DECIDERS) - {"threshold"}))
def test_every_mechanism_runs_and_stays_in_budget(name: str, command: CommandLine) -> None:
    result = command.json(SMALL, BUDGET, "--mechanism", name, "--alpha 0.01")
    assert result["guarantee"]["epsilon"] == 1.0 and result["guarantee"]["proven"] is True
    assert result["spent"]["epsilon"] <= 1.0 and result["spent"]["delta"] <= 1e-6
    assert "alpha=0.01" in result["settings"]["decider"]
    assert [reason for reason in result["reasons"] if reason.startswith("mechanism: ")][0].endswith(
        "as asked"
    )
    assert (
        result["reasons"][0]
        == "chosen: PC, because of --mechanism and --alpha and --max-level, for which a release "
        "has no use"
    )
    assert result["settings"]["max_level"] == 1


@pytest.mark.parametrize("name", sorted(TESTS))
def test_every_test_can_be_named(name: str, command: CommandLine, tmp_path: Path) -> None:
    """Each on columns that it takes, without privacy."""
    path = tmp_path / "t.csv"
    kind = {"type": "numeric"} if name == "fisher-z" else {"type": "ordinal", "levels": [0, 1, 2]}
    (tmp_path / "domain.json").write_text(json.dumps({"columns": {"a": kind, "b": kind}}))
    path.write_text("a,b\n" + "0,0\n1,1\n2,2\n1,0\n" * 100)
    words = ("discover", path, "--domain", tmp_path / "domain.json", "--no-privacy --test", name)
    result = command.json(words)
    assert type(TESTS[name]()).__name__ in result["settings"]["test"]
    assert result["graph"]["edges"] == [["a", "---", "b"]]
    assert result["metrics"] is None


def test_a_file_from_draft_to_private_run(csv: Path, command: CommandLine, tmp_path: Path) -> None:
    domain = tmp_path / "domain.json"
    words = ["discover", csv, BUDGET, "--max-level 1"]
    command.refuses(f"jaxcd domain {csv} --out domain.json", words)
    out = command.shows("domain", csv, "--out", domain)
    assert '"declared" to true' in out
    content = json.loads(domain.read_text())
    assert content["declared"] is False and len(content["columns"]) == 5
    command.refuses("draft", words, "--domain", domain)
    domain.write_text(json.dumps(content | {"declared": True}))
    result = command.json(words, "--domain", domain)
    assert result["settings"]["n_samples"] == 300 and result["guarantee"]["proven"] is True
    command.refuses("--force", "domain", csv, "--out", domain)
    assert json.loads(domain.read_text())["declared"] is True
    command.refuses("is the data file itself", "domain", csv, "--out", csv, "--force")
    assert csv.stat().st_size > 1000


def test_parquet_and_clip(command: CommandLine, tmp_path: Path) -> None:
    import pandas as pd

    pd.DataFrame({"a": [0.0, 1.0, 2.0, 9.0] * 10, "b": [1.0, 0.0, 2.0, 2.0] * 10}).to_parquet(
        tmp_path / "t.parquet"
    )
    numeric = {"type": "numeric", "lower": 0, "upper": 3}
    (tmp_path / "d.json").write_text(json.dumps({"columns": {"a": numeric, "b": numeric}}))
    words = ("discover", tmp_path / "t.parquet", "--domain", tmp_path / "d.json", "--no-privacy")
    assert "--clip" in command.refuses("'a', row 4", words)
    assert command(words, "--clip --quiet")[0] == 0


def test_bif_file(data_folder: Path, command: CommandLine) -> None:
    words = ["discover --bif", data_folder / "networks" / "cancer.bif", "--rows 300 --max-level 1"]
    assert (
        command.json(words, "--no-privacy")["graph"]["edges"]
        == command.json(SMALL, "--no-privacy")["graph"]["edges"]
    )


@pytest.mark.parametrize(
    ("algorithm", "kind"), [("pc", "CPDAG"), ("tree", "CPDAG"), ("fci", "PAG")]
)
def test_every_algorithm(algorithm: str, kind: str, command: CommandLine, tmp_path: Path) -> None:
    words = [
        "discover --network cancer --rows 310",
        BUDGET,
        "--algorithm",
        algorithm,
        "--simulated-noise",
    ]
    out = command.shows(words, "--out", tmp_path / "x")
    assert re.search(rf"^algorithm  {algorithm}$", out, re.MULTILINE)
    assert f"Against the true {kind}\n" in out and ("  marks  " in out) == (algorithm == "fci")
    assert ("edges with their marks" in (tmp_path / "x" / "report.html").read_text()) == (
        algorithm == "fci"
    )

    key = jax.random.key(0)
    data = jaxcd.networks.load("cancer").sample(310, key=key)
    options: dict[str, Any] = {
        "test": jaxcd.CovarianceNorm(),
        "budget": jaxcd.Budget(1.0, 1e-6),
        "key": None,
        "noise": jaxcd.SimulatedNoise(jax.random.fold_in(key, 1)),
    }
    if algorithm == "tree":
        run = jaxcd.tree_pc(data, **options)
    else:
        run = (jaxcd.fci if algorithm == "fci" else jaxcd.pc)(
            data, decider=jaxcd.LevelwiseGaussian(), **options
        )
    shown = command.json(words)
    assert MixedGraph.from_json_dict(shown["graph"]) == run.graph
    truth = (
        jaxcd.networks.load("cancer").cpdag()
        if kind == "CPDAG"
        else jaxcd.discovery.dag_to_pag(jaxcd.networks.load("cancer").dag)
    )
    assert shown["metrics"]["skeleton_f1"]["f1"] == jaxcd.metrics.skeleton_f1(run.graph, truth)
    assert ("mark_f1" in shown["metrics"]) == (algorithm == "fci")


def test_auto_follows_the_recommendation(command: CommandLine, tmp_path: Path) -> None:
    """The built-in example, smaller: auto buys a histogram; the run, the saved release and the
    report say the same.
    """
    words = ["discover --network earthquake --rows 20000", BUDGET, "--simulated-noise"]
    file, folder = tmp_path / "bought.npz", tmp_path / "x"
    out = command.shows(words, "--release-out", file, "--out", folder)
    assert "  arcs            1.000      1.000   1.000\n" in out
    for pattern in (
        r"^algorithm  release$",
        r"^chosen +joint histogram, and ",
        r"^because +5 columns have 32 cells together, at most 4,096",
        r"^spent +the ledger used epsilon=1, delta=0 in 1 event, of epsilon=1, delta=1e-06$",
        r"^release +.*: what was bought; `jaxcd search .*bought\.npz` costs nothing more$",
    ):
        assert re.search(pattern, out, re.MULTILINE), pattern
    assert not re.search("^(alpha|test|mechanism) ", out, re.MULTILINE)
    shown = command.json(words, "--algorithm release")
    again = jaxcd.search(jaxcd.Release.load(file))
    assert MixedGraph.from_json_dict(shown["graph"]) == again.graph
    assert json.loads((folder / "graph.json").read_text())["edges"] == shown["graph"]["edges"]
    assert shown["secure_noise"] is False and shown["guarantee"]["proven"] is False
    assert [row["mechanism"] for row in shown["ledger"]] == ["Pure"]
    command.refuses("--force", words, "--release-out", file)
    assert command(words, "--release-out", file, "--force --quiet")[0] == 0


@pytest.mark.parametrize(
    ("option", "value"), [("--test", "kendall-tau"), ("--alpha", "0.01"), ("--max-level", "1")]
)
def test_an_option_of_tests_makes_auto_pc(option: str, value: str, command: CommandLine) -> None:
    shown = command.json(PRIVATE, BUDGET, option, value)
    assert shown["settings"]["algorithm"] == "pc"
    assert shown["reasons"][0] == f"chosen: PC, because of {option}, for which a release has no use"


def test_recommend(command: CommandLine, tmp_path: Path) -> None:
    asia = jaxcd.networks.load("asia").domain
    expected = jaxcd.recommend(asia, 2_000, budget=jaxcd.Budget(1.0, 1e-6))
    words = ["recommend --network asia --rows 2000", BUDGET]
    assert command(words) == (0, f"{expected}\n", "")
    shown = command.json(words)
    assert shown["method"] == expected.title
    assert shown["warning"] == expected.warning is not None
    asked = command.json(words, "--accounting zcdp")
    assert asked["method"] == shown["method"] and "Accounting.ZCDP" in asked["call"]
    gaussian = command.json(words, "--accounting gaussian")["call"]
    assert eval(gaussian[gaussian.index("jaxcd.Budget") : -2], {"jaxcd": jaxcd}) == GAUSSIAN
    domain = tmp_path / "domain.json"
    content = {"columns": {name: {"type": "numeric"} for name in "abc"}}
    domain.write_text(json.dumps(content))
    words = ["recommend --domain", domain, "--rows 20000"]
    assert "jaxcd.Features()" in command.json(words, BUDGET)["call"]
    assert command.json(words, BUDGET, "--linear")["call"].count("SecondMoments") == 1
    assert command.json(words, "--no-privacy")["algorithm"] == "pc"
    domain.write_text(json.dumps(content | {"declared": False}))
    command.refuses("is a draft", words, BUDGET)


def test_commands_to_copy_quote_paths(command: CommandLine, tmp_path: Path) -> None:
    table, out = tmp_path / "my patients.csv", tmp_path / "my domain.json"
    table.write_text("a,b\n1,2\n", encoding="utf-8")
    shown = command.shows("domain", table, "--out", out)
    assert f"  jaxcd check '{table}' --domain '{out}'\n" in shown
    command.refuses(f"run `jaxcd domain '{table}' --out", "discover", table, BUDGET)


def test_a_draft_of_one_column_says_so(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,b\n1,\n", encoding="utf-8")
    shown = command.shows("domain", tmp_path / "one.csv", "--out", tmp_path / "domain.json")
    assert "domain.json: 1 column of 1 row, and 1 to be ignored." in shown.replace("\n", " ")


def test_recommend_refuses_a_unit_that_discover_refuses(
    command: CommandLine, tmp_path: Path
) -> None:
    domain = tmp_path / "domain.json"
    content = {name: {"type": "categorical", "levels": [0, 1]} for name in "abc"}
    words = ["recommend --domain", domain, "--rows 20000", BUDGET]
    domain.write_text(json.dumps({"columns": content}))
    command.refuses("declares no column that tells people apart", words, "--unit person")
    domain.write_text(json.dumps({"columns": {**content, "pid": {"person": True}}}))
    command.refuses("--unit person, or --max-rows-per-person k", words)
    assert "one person changes" in command.shows(words, "--unit person")
    noise = [
        float(
            command.json(words, f"--max-rows-per-person {k}")["reasons"][1].split()[-6].strip(",")
        )
        for k in (2, 6)
    ]
    assert noise[1] == pytest.approx(3 * noise[0], rel=0.01)


def test_linear_is_refused_where_it_does_nothing(command: CommandLine) -> None:
    for words in (SMALL.replace(" --max-level 1", ""), "recommend --network cancer --rows 300"):
        command.refuses("jaxcd: --linear: it is for tables whose", words, BUDGET, "--linear")
    for given in ("--algorithm pc", "--max-level 1"):
        command.refuses(
            f"{given.removesuffix(' 1')} leaves it no choice",
            "discover --network cancer --rows 300 --linear",
            BUDGET,
            given,
        )


def test_hidden_columns(command: CommandLine) -> None:
    """The sample is that of the whole network, and the truth what FCI finds with an oracle."""
    words = "discover --network earthquake --rows 20000 --hide Alarm --no-privacy"
    network = jaxcd.networks.load("earthquake")
    out = command.shows(words, "--algorithm fci")
    assert re.search(
        r"^data +earthquake without Alarm, 20,000 rows sampled with seed 0, 4 columns$",
        out,
        re.MULTILINE,
    )
    shown = command.json(words, "--algorithm fci --test chi-square")
    data = network.sample(20_000, key=jax.random.key(0)).select(
        [name for name in network.names if name != "Alarm"]
    )
    run = jaxcd.fci(data, test=jaxcd.ChiSquare(), **PLAIN)
    oracle = jaxcd.Oracle(network.dag, latent=("Alarm",))
    truth = jaxcd.fci(None, test=oracle, **PLAIN).graph
    assert MixedGraph.from_json_dict(shown["graph"]) == run.graph
    assert shown["metrics"]["mark_f1"]["f1"] == jaxcd.metrics.mark_f1(run.graph, truth)
    assert ["JohnCalls", "o-o", "MaryCalls"] in shown["graph"]["edges"]
    assert "Against the true PAG" in command(words)[1]


def test_knowledge(command: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "knowledge.json"
    file.write_text(
        '{"tiers": [["Pollution", "Smoker"], ["Cancer"]], "required": [["Cancer", "Xray"]]}'
    )
    for algorithm in ("pc", "fci"):
        words = ["discover --network cancer --rows 310 --no-privacy --algorithm", algorithm]
        out = command.shows(words, "--knowledge", file)
        assert re.search(r"^knowledge +.*knowledge\.json", out, re.MULTILINE)
        shown = command.json(words, "--knowledge", file)
        assert ["Cancer", "-->", "Xray"] in shown["graph"]["edges"]
        assert ["Cancer", "-->", "Xray"] not in command.json(words)["graph"]["edges"]
    file.write_text(file.read_text(), encoding="utf-8-sig")  # as Windows writes it
    assert command.json(words, "--knowledge", file) == shown
    file.write_text(file.read_text(), encoding="utf-16")
    command.refuses("is UTF-16 text; save it as UTF-8", words, "--knowledge", file)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "line 1: not valid JSON"),
        ('{"required": [["Cancer", "Xray"]], "required": []}', "'required' is given twice"),
        ('{"tier": []}', "knowledge.json': knowledge has the unknown key 'tier'"),
        ('{"required": [["Cancer", "Xray"], ["Xray", "Cancer"]]}', "in both directions"),
        ('{"forbidden": [["Cancer", "Xrays"]]}', "no variable 'Xrays'; did you mean 'Xray'?"),
        (None, "does not exist"),
    ],
)
def test_bad_knowledge(
    content: str | None, expected: str, command: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "knowledge.json"
    if content is not None:
        file.write_text(content)
    words = [PRIVATE, BUDGET, "--algorithm fci --knowledge", file, "--quiet"]
    command.refuses(expected, words)
    if "did you mean" not in expected:  # that is seen by the search
        command.refuses("--knowledge: file ", words)


def test_guarantees(command: CommandLine) -> None:
    assert [entry["mechanism"] for entry in command.json("guarantees")] == [
        g.mechanism for g in jaxcd.guarantees()
    ]
    out = command.shows("guarantees")
    assert "LevelwiseGaussian" in out
    # every row says what it assumes
    assert out.count("assumes: ") == len(jaxcd.guarantees())
    assert out.count("proof: ") == len(jaxcd.guarantees())


def test_help_and_version(command: CommandLine) -> None:
    assert command("--version") == (0, f"jaxcd {jaxcd.__version__}\n", "")
    for words in ("", "discover", "domain", "recommend", "guarantees"):
        out = command.shows(words, "--help")
        assert "Usage" in out
    shown = command.shows("discover --help")
    assert all(re.search(rf"\b{name.split('-')[-1]}\b", shown) for name in TESTS)
    assert "ledger's" not in command.shows("ledger --help") + command.shows("recommend --help")


def test_python_m_jaxcd() -> None:
    words = [sys.executable, *"-m jaxcd discover --network nowhere --no-privacy".split()]
    done = subprocess.run(
        words, cwd=Path(__file__).resolve().parents[1], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("jaxcd: --network 'nowhere' is unknown")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("more", ["", "--quiet", "--progress"])
def test_a_reader_that_goes_does_not_end_the_run(more: str, tmp_path: Path) -> None:
    """As ``head -1`` does: what was bought is searched, and the files are written."""
    run = "discover --network cancer --rows 300 --epsilon 1 --simulated-noise --out made"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "jaxcd", *run.split(), *more.split()],
            cwd=tmp_path,
            stdout=nobody,
            stderr=nobody if more == "--progress" else subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "made").iterdir()} == set(FILES)


# ---- what it refuses

PRIVATE = "discover --network cancer --rows 300"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "--help"),
        ("dance", "dance"),
        ("discover --dance", "--dance"),
        ("recommend --network asia --rows 100", "--epsilon is missing"),
        ("discover nowhere.csv --no-privacy", "'nowhere.csv' does not exist"),
        ("domain nowhere.csv", "'nowhere.csv' does not exist"),
        *(
            (f"{PRIVATE} {words}", expected)
            for words, expected in (
                ("", "--epsilon is missing"),
                ("--epsilon 0", "--epsilon 0"),
                ("--epsilon -1", "--epsilon -1"),
                ("--epsilon nan", "--epsilon nan"),
                ("--epsilon inf", "--epsilon inf"),
                ("--epsilon one", "--epsilon"),
                ("--epsilon 1 --delta 1", "--delta 1"),
                ("--epsilon 1 --delta nan", "--delta nan"),
                ("--epsilon 1 --no-privacy", "--no-privacy"),
                ("--no-privacy --accounting zcdp", "--accounting"),
                ("--no-privacy --simulated-noise", "--simulated-noise"),
                ("--epsilon 1 --accounting gaussian", "--accounting gaussian needs --delta"),
                ("--epsilon 1 --delta 0 --accounting gaussian", "--delta above 0"),
                ("--epsilon 1e9 --delta 1e-6 --accounting gaussian", "2**20"),
                ("--epsilon 1 --algorithm tree", "--delta"),
                ("--epsilon 1 --mechanism levelwise-gaussian", "--delta"),
                ("--epsilon 1 --mechanism noisy-threshold-gaussian", "--delta"),
                ("--epsilon 1e-300", "--epsilon 1e-300 is too small"),
                ("--epsilon 1e-199", "larger epsilon"),
                ("--epsilon 1 --delta 1e-400", "--delta"),
                (f"--epsilon 1 --max-rows-per-person {10**400}", "--max-rows-per-person 1000"),
            )
        ),
        *(
            (f"{words} {BUDGET}", expected)
            for words, expected in (
                (
                    "recommend --rows 100",
                    "give exactly one of --domain FILE, --network NAME and --bif FILE",
                ),
                (
                    "recommend --rows 100 --network asia --bif x.bif",
                    "--network and --bif are given",
                ),
                ("recommend --network asia", "--rows is missing"),
                ("recommend --network asia --rows 0", "--rows 0"),
                ("recommend --network nowhere --rows 100", "cancer, earthquake, asia, survey"),
                ("recommend --domain nowhere.json --rows 100", "nowhere.json"),
                ("discover x.csv --hide a", "--hide"),
                ("discover --network cancer --rows 0", "--rows 0"),
                ("discover --network nowhere", "cancer, earthquake, asia, survey"),
                ("discover --bif nowhere.bif", "nowhere.bif"),
                ("discover", "exactly one of FILE, --network NAME and --bif FILE"),
                ("discover x.csv --network cancer", "FILE and --network"),
                ("discover x.csv --rows 5", "--rows"),
                ("discover nowhere.csv", "'nowhere.csv' does not exist"),
            )
        ),
        *(
            (f"{PRIVATE} {BUDGET} {words}", expected)
            for words, expected in (
                ("--accounting renyi", "'renyi' is unknown; use zcdp or gaussian"),
                ("--alpha 0", "--alpha 0"),
                ("--alpha nan", "--alpha nan"),
                ("--max-level -1", "--max-level -1"),
                ("--seed -1", "--seed -1"),
                ("--force", "--out"),
                ("--clip", "--clip"),
                ("--algorithm magic", "use auto, pc, tree, fci, gfci, release"),
                (
                    "--algorithm release --max-level 2",
                    "--max-level: --algorithm release has no such option",
                ),
                (
                    "--algorithm release --alpha 0.01",
                    "--alpha: --algorithm release has no such option",
                ),
                (
                    "--algorithm release --test kendall-tau",
                    "--test: --algorithm release has no such option",
                ),
                ("--algorithm pc --release-out x.npz", "--release-out: pc releases nothing"),
                ("--max-level 1 --confidence 5", "--confidence: pc releases nothing"),
                ("--confidence -1", "--confidence -1"),
                ("--release-out nowhere/x.npz", "--release-out 'nowhere/x.npz' is no file"),
                ("--release-out .", "--release-out '.' is no file"),
                ("--algorithm tree --mechanism sparse-vector", "--mechanism sparse-vector"),
                ("--algorithm tree --max-level 2", "--max-level"),
                (
                    "--algorithm tree --knowledge x.json",
                    "--knowledge: file 'x.json' does not exist",
                ),
                ("--hide Smoke", "'Smoke'"),
                ("--hide Smoker --hide Smoker", "twice"),
                ("--hide Smoker --hide Cancer --hide Xray --hide Dyspnoea", "leaves 1"),
                ("--test magic", ", ".join(TESTS)),
                ("--mechanism magic", ", ".join(DECIDERS)),
                ("--test chi-square", "no bounded sensitivity"),
                ("--test g-test --mechanism sparse-vector", "no bounded sensitivity"),
                ("--mechanism threshold", "protects nobody"),
            )
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: str, expected: str, command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command.refuses(expected, words, "--quiet" if words.startswith("discover") else "")
    assert list(tmp_path.iterdir()) == []


def test_no_name_speaks_to_the_terminal(command: CommandLine, tmp_path: Path) -> None:
    """Whoever wrote the file chose the names of its columns."""
    file, domain, bought = (tmp_path / name for name in ("t.csv", "d.json", "r.npz"))
    rows = "".join(f"{i % 2},{i % 2},{i % 3}\n" for i in range(60))
    file.write_text('"a\nb","c\x1b[2J",d\n' + rows)
    shown = [command.shows("domain", file, "--out", domain)]
    domain.write_text(domain.read_text().replace('"declared": false', '"declared": true'))
    words = [
        "--domain",
        domain,
        "--epsilon 50 --simulated-noise --release-out",
        bought,
        "--out",
        tmp_path / "out",
    ]
    shown.append(command.shows("discover", file, words))
    assert "\n  a\\nb --- c\\x1b[2J\n" in shown[-1]
    shown.append(command.shows("search", bought))
    shown.append(command.shows("search", bought, "--quiet"))
    names = ["--treatment", Path("a\nb"), "--outcome", Path("c\x1b[2J")]
    shown.append(command.shows("effect", bought, names))
    assert "a\\nb" in shown[-1]
    shown.append(command.shows("check", file, "--domain", domain))
    shown.append(
        command.refuses(
            "it has a\\nb, c\\x1b[2J", "effect", bought, "--treatment", "x", "--outcome", "d"
        )
    )
    shown.append(command.shows("search", bought, "--confidence 3"))
    for text in shown:
        assert "\x1b" not in text and "a\nb" not in text and "\nb " not in text


def test_files_are_written_whoever_reads_the_screen(command: CommandLine, tmp_path: Path) -> None:
    """A disk that is full, or an output that was closed, takes no file along."""
    out, bought = tmp_path / "out", tmp_path / "r.npz"
    words = f"discover --network cancer --rows 200 --epsilon 1 --simulated-noise --out {out}"
    call = [sys.executable, "-m", "jaxcd"]
    with open("/dev/full", "w") as full:
        for more in ("--quiet", "--json"):
            ended = subprocess.run(
                [*call, *words.split(), more, "--force"], stdout=full, cwd=tmp_path
            )
            assert ended.returncode == 2 and (out / "graph.json").exists()
            shutil.rmtree(out)
        command.shows("discover --network cancer --epsilon 1 --release-out", bought)
        ended = subprocess.run([*call, "search", bought, "--out", out], stdout=full)
        assert ended.returncode == 2 and (out / "graph.json").exists()
    shell = shlex.join([*call, "search", str(bought), "--out", str(tmp_path / "other")])
    ended = subprocess.run(f"{shell} >&- 2>&-", shell=True)
    assert ended.returncode == 0 and (tmp_path / "other" / "graph.json").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that takes nothing")
@pytest.mark.parametrize("written", ["--out", "--release-out"])
def test_what_is_in_its_file_is_not_kept_twice(
    written: str, command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads the screen: the report, or the release, holds what was paid for."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / ("out" if written == "--out" else "bought.npz")
    words = "discover --network cancer --rows 200 --epsilon 1 --simulated-noise --json"
    for more, n_kept in (([], 1), ([written, place], 0)):
        with open("/dev/full", "w") as full:
            with monkeypatch.context() as patch:
                patch.setattr("sys.stdout", full)
                code, _, err = command(words, *more)
            full.flush()  # nothing is left that would fail at the end
        kept = list(tmp_path.glob("jaxcd-bought-*.npz"))
        assert code == 2 and len(kept) == n_kept
        words_of_it = "its result" if place.is_dir() else "what it bought"
        assert f"{words_of_it} is in {kept[0] if kept else place}" in err
        for file in kept:
            file.unlink()
    assert place.exists()


@pytest.mark.parametrize("is_old", [False, True], ids=["", "over an old file"])
def test_a_release_in_its_file_is_not_kept_twice_where_the_search_fails(
    is_old: bool, command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def fails(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    words = "discover --network cancer --rows 200 --epsilon 1 --simulated-noise"
    file = tmp_path / "bought.npz"
    if is_old:
        file.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr("jaxcd.api.search", fails)
        code, _, err = command(words, "--force --release-out", file)
    assert code == 130 and f"what it bought is in {file}" in err
    assert not list(tmp_path.glob("jaxcd-bought-*.npz"))
    assert jaxcd.Release.load(file).names
    # An old file is none of what was bought.
    file.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr("jaxcd.releases.base.write_archive", fails)
        code, _, err = command(words, "--force --release-out", file)
    assert code == 130 and file.read_bytes() == b"old" and f"is in {file}" not in err


def test_no_certificate_speaks_to_the_terminal(command: CommandLine, tmp_path: Path) -> None:
    """Whoever wrote the certificate chose its words: none of them makes a line of its own."""
    command.shows("discover --network cancer --epsilon 1 --out", tmp_path / "out")
    file = tmp_path / "out" / "privacy.json"
    content = json.loads(file.read_text())
    content["guarantee"]["reason"] = "\x1b[2J\nall checks hold"
    content["guarantee"]["unit"] = "one \r row"
    file.write_text(json.dumps(content))
    code, out, _ = command("verify", file)
    assert code == 1 and r"\x1b[2J\nall checks hold" in out and r"one \r row" in out
    assert all(line.isprintable() for line in out.split("\n"))


@pytest.mark.parametrize(
    ("name", "content", "domain", "expected"),
    [
        ("t.csv", "", None, "is empty"),
        ("t.csv", "a,b\n", None, "at least 1 row"),
        ("t.csv", "a,b\n1,\n2,\n", None, "'b' holds missing values only"),
        ("t.csv", "a,b\n1,NaN\n2,\n", None, "'b' holds missing values only"),
        ("t.csv", "a\n1\n2\n", None, "at least 2 columns"),
        ("t.csv", '"a;b"\n1\n2\n', None, "separated by ';': read the file with that separator"),
        ("t.csv", "a,a\n1,2\n2,1\n", None, "'a' occurs twice"),
        ("t.txt", "a,b\n1,2\n2,1\n", None, "use .csv, .tsv (also .gz) or .parquet"),
        ("t.csv", "a,b\n1,2\n2,1\n", "{", "domain file"),
        ("t.csv", "a,b\n1,2\n2,1\n", '{"columns": {"a": 3}}', "column 'a' must be an object"),
        (
            "t.csv",
            "a,b\n1,2\n2,3\n",
            '{"columns": {"a": {"type": "ordinal", "levels": [1, 2]}, "b": {"type": "ordinal", '
            '"levels": [2]}}}',
            "'b', row 2",
        ),
    ],
)
def test_bad_files(
    name: str, content: str, domain: str | None, expected: str, command: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    words = ["discover", tmp_path / name, "--no-privacy"]
    if domain is not None:
        (tmp_path / "domain.json").write_text(domain)
        words += ["--domain", tmp_path / "domain.json"]
    command.refuses(expected, words)


def test_a_folder_in_the_place_of_a_file_is_told_from_one_that_is_not_there(
    command: CommandLine, tmp_path: Path
) -> None:
    """And the file in it is named, or what writes one."""
    empty, made = tmp_path / "empty", tmp_path / "made"
    empty.mkdir()
    words = [PRIVATE, "--epsilon 1 --simulated-noise --quiet"]
    assert command(words, "--out", made, "--release-out", tmp_path / "bought.npz")[0] == 0
    effect = ["--treatment Smoker --outcome Cancer"]
    no_release = "is a folder, and a release file (.npz) is read; there is none in it: `jaxcd"
    command.refuses(no_release, "search", made)
    command.refuses("is a release and no certificate", "verify", tmp_path / "bought.npz")
    command.refuses(no_release, "effect", empty, *effect)
    command.refuses(f"give the file in it, '{tmp_path / 'bought.npz'}'", "search", tmp_path)
    command.refuses(f"give the file in it, '{made / 'privacy.json'}'", "verify", made)
    command.refuses("there is no privacy.json in it: `jaxcd discover`", "verify", empty)
    graph = ["effect", tmp_path / "bought.npz", *effect, "--graph", made]
    command.refuses(f"such as '{made / 'graph.dot'}'", *graph)
    (empty / "result.json").write_text("{}")  # JSON, and no graph
    no_graph = [*graph[:-1], empty / "result.json"]
    command.refuses(f"--graph '{empty / 'result.json'}': not a graph that can be read", *no_graph)
    (empty / "result.json").unlink()
    for option in ("--knowledge", "--ledger"):
        command.refuses(f"{option}: {str(empty)!r} is a folder", *words, option, empty)
    command.refuses(f"domain {str(empty)!r} is a folder", "check x.csv --domain", empty)
    command.refuses("is a folder, and a BIF file", "discover --no-privacy --bif", empty)
    command.refuses("is a folder, and a table", "domain", empty)
    with pytest.raises(DataError, match="^path: .* is a folder, and a release"):
        jaxcd.Release.load(made)
    command.refuses("does not exist", "search", tmp_path / "nowhere.npz")


def test_a_link_to_itself_is_no_file(command: CommandLine, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    command.refuses("does not exist", "discover --no-privacy", loop)
    command.refuses("does not exist", "discover x.csv --no-privacy --domain", loop)
    command.refuses("is no file", PRIVATE, BUDGET, "--release-out", loop)
    assert loop.is_symlink()


@pytest.mark.parametrize("mechanism", ["sparse-vector", "levelwise-gaussian", "threshold"])
def test_a_mechanism_without_a_budget_gets_a_test_that_it_takes(
    command: CommandLine, mechanism: str
) -> None:
    """The G test, which has no bounded sensitivity, was chosen for it, and refused."""
    shown = command.shows(SMALL, "--no-privacy --mechanism", mechanism)
    assert ("CovarianceNorm" in shown) == (mechanism != "threshold")


def test_levels_of_an_effect_may_hold_commas_quotes_and_truth_values(
    command: CommandLine, tmp_path: Path
) -> None:
    """On the command line as in a table."""
    domain = jaxcd.Domain(
        {"a": jaxcd.Categorical(('x, "y"', "no, thanks")), "b": jaxcd.Categorical((True, False))}
    )
    data = jaxcd.Dataset.from_codes(
        np.array([[0, 0], [1, 1], [0, 1]] * 50, np.int32), domain=domain
    )
    bought, graph = tmp_path / "bought.npz", tmp_path / "graph.dot"
    jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY).save(bought)
    graph.write_text(jaxcd.MixedGraph.from_edges(["a", "b"], ["a --> b"]).to_dot())
    words = ["effect", bought, "--graph", graph, "--treatment a --outcome b"]
    levels = Path('"no, thanks", "x, ""y"""')  # one word, which holds spaces
    shown = command.shows(words, "--outcome-level true --levels", levels)
    assert 'Setting a = x, "y" instead of no, thanks' in shown and "by +0.5," in shown
    command.refuses("comma itself in double quotes", words, "--levels", Path("no, thanks,x"))
    command.refuses("--outcome-level: 'x' is no level of 'b'", words, "--outcome-level x")
    command.refuses("--draws -1 is not", words[:2], words[4], "--draws -1")
    command.refuses(
        "levels 'no, thanks' and 'no, thanks': the two are the same",
        *(words, "--outcome-level true --levels", Path('"no, thanks","no, thanks"')),
    )
    command.refuses("--draws: the graph of --graph is taken as it is", words, "--draws 3")


def test_messages_speak_of_options(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the library says of arguments, in the words of the command line."""
    monkeypatch.chdir(tmp_path)
    table, domain, counts = (tmp_path / name for name in ("t.csv", "d.json", "t.parquet"))
    table.write_text("pid,a,b\n" + "1,0,1\n1,1,1\n2,0,0\n" * 20)
    content = {"pid": {"person": True}}
    content |= {name: {"type": "ordinal", "levels": [0, 1], "missing": True} for name in "ab"}
    domain.write_text(json.dumps({"columns": content}))
    words = ["discover", table, "--domain", domain, "--epsilon 1 --delta 1e-6"]
    said = command.refuses(
        "--algorithm pc: budget: --unit person is proved", words, "--unit person --algorithm pc"
    )
    assert "--unit row with --max-rows-per-person k" in said and "jaxcd.release(" not in said
    said = command.refuses("--max-rows-per-person k", words)
    assert "use --unit person, or --max-rows-per-person k, or mark" in said
    content |= {"pid": {"ignore": True}, "a": {**content["a"], "intervention": True}}
    domain.write_text(json.dumps({"columns": content}))
    said = command.refuses("jaxcd: --algorithm gfci: 'a' decl", words, "--algorithm gfci")
    assert said.endswith("use --latent in its place, or --algorithm fci\n")
    (tmp_path / "kept").mkdir()
    said = command.refuses("give another one, or --force to", words, "--out", tmp_path / "kept")
    assert "force=" not in said
    domain.write_text(json.dumps({"columns": {name: content["b"] for name in "ab"}}))
    pl.read_csv(table).drop("pid").write_parquet(counts)
    kept = tmp_path / "kept.npz"
    words = ["discover", counts, "--domain", domain, "--epsilon 1"]
    assert command(words, "--missing level --quiet --release-out", kept)[0] == 0
    for more, reading in (("", "level"), ("--missing ignore", "ignore")):  # as it was bought
        folder = tmp_path / reading
        assert command("search", kept, "--out", folder, more)[0] == 0
        assert jaxcd.DiscoveryResult.load(folder).info["missing"] == reading
    words = ["discover", counts, "--domain", domain, "--epsilon 1 --snapshot v"]
    command.refuses("jaxcd: --rows: the ", words, "--rows 59 --quiet")


def test_an_existing_folder_is_refused_before_anything_is_spent(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def discover(*_: Any, **__: Any) -> None:
        raise AssertionError("the data was looked at")

    (tmp_path / "old").mkdir()
    monkeypatch.setattr(jaxcd, "discover", discover)
    monkeypatch.setattr(jaxcd.networks, "load", discover)
    assert str(tmp_path / "old") in command.refuses(
        "--force", SMALL, BUDGET, "--out", tmp_path / "old"
    )
    monkeypatch.undo()
    assert command(SMALL, BUDGET, "--out", tmp_path / "old", "--force --quiet")[0] == 0
    assert (tmp_path / "old" / "report.html").stat().st_size > 1000


def test_a_draft_is_refused_before_the_file_is_read(
    csv: Path, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("the data was read")

    monkeypatch.setattr(jaxcd, "read_csv", read)
    command.refuses("--domain is missing", "discover", csv, BUDGET)


def test_errors_of_the_system_and_of_programs(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(error: BaseException) -> Any:
        def discover(*_: Any, **__: Any) -> None:
            raise error

        return discover

    words = [SMALL, BUDGET, "--quiet"]
    monkeypatch.setattr(jaxcd, "discover", failing(OSError(28, "No space left on device", "/full")))
    assert command(words) == (2, "", "jaxcd: No space left on device: /full\n")
    monkeypatch.setattr(jaxcd, "discover", failing(GraphError("two\nlines")))
    assert command(words) == (2, "", "jaxcd: two lines\n")
    monkeypatch.setattr(jaxcd, "discover", failing(KeyboardInterrupt()))
    assert command(words) == (130, "", "jaxcd: nothing was spent\njaxcd: interrupted\n")
    monkeypatch.setattr(jaxcd, "discover", failing(ZeroDivisionError("a bug")))
    # a bug is not bad input: it keeps its traceback
    pytest.raises(ZeroDivisionError, command, words)


def test_the_report_of_a_search_names_its_command(command: CommandLine, tmp_path: Path) -> None:
    bought, folder = tmp_path / "bought.npz", tmp_path / "report"
    asked = [PRIVATE, "--epsilon 1 --simulated-noise --quiet --release-out", bought]
    assert command(asked)[0] == 0
    assert command("search", bought, "--quiet --out", folder)[0] == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"<td>jaxcd search {bought} --quiet --out {folder}</td>" in page
    assert "from Python" not in page


def test_a_file_of_another_kind_is_told_as_that(command: CommandLine, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"format": "jaxcd.result", "version": 1}), encoding="utf-8")
    command.refuses("give the privacy.json of a report", "verify", other)
    command.refuses("is it the right file?", "ledger", other)


def test_a_full_disk_leaves_no_half_of_a_file(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a new one nor in the place of an old one, and nothing beside it."""
    monkeypatch.chdir(tmp_path)
    table, old, new = tmp_path / "t.csv", tmp_path / "old.json", tmp_path / "new.json"
    rows = "".join(f"{x},{(7 * x) % 50}\n" for x in range(50))
    table.write_text("x,y\n" + rows, encoding="utf-8")
    command.shows("domain", table, "--out", old)
    old.chmod(0o600)
    draft = json.loads(old.read_text())
    declared = tmp_path / "declared.json"
    levels = {"type": "categorical", "levels": list(range(50))}
    declared.write_text(json.dumps({"columns": {"x": levels, "y": levels}}), encoding="utf-8")
    there = sorted(tmp_path.iterdir())
    write = Path.write_text

    def full(path: Path, text: str, **more: Any) -> None:
        write(path, text[: len(text) // 2], **more)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    krr = "--mechanism krr --epsilon-ldp 2 --out randomised.csv --domain"
    for words in (
        ["domain", table, "--out", new],
        ["domain", table, "--out", old, "--force"],
        ["direction", table, "--x x --y y --epsilon 1 --bounds 0 49 0 49 --certificate-out", new],
        ["privatize", table, krr, declared],
    ):
        code, out, err = command(words)
        assert ("agreement" in out) == (words[0] == "direction")  # the answer was paid for
        assert code == 2 and err.endswith("jaxcd: No space left on device\n")
        bought = list(tmp_path.glob("jaxcd-bought-*.npz"))
        assert len(bought) == (words[0] != "domain")
        for file in bought:
            assert f"{file}; numpy.load reads it" in err
            assert "ledger" in np.load(file).files
            file.unlink()
        assert sorted(tmp_path.iterdir()) == there and json.loads(old.read_text()) == draft
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    command.shows("domain", table, "--out", old, "--force")
    assert old.stat().st_mode & 0o777 == 0o600  # whom the owner let read it
    command.shows("privatize", table, krr, declared)
    assert {"randomised.csv", "randomised.guarantee.json", "randomised.domain.json"} <= {
        file.name for file in tmp_path.iterdir()
    }


# ---- the same door in Python


def test_the_release_that_is_recommended_is_the_one_that_is_bought(
    command: CommandLine, tmp_path: Path
) -> None:
    domain = jaxcd.Domain({f"v{j}": jaxcd.Categorical((0, 1, 2)) for j in range(8)})
    codes = np.random.default_rng(0).integers(0, 3, (300, 8)).astype(np.int32)
    assert isinstance(
        jaxcd.recommend(domain, 300, budget=jaxcd.Budget(0.5, 1e-6)).kind, jaxcd.LogLinear
    )
    np.savetxt(
        tmp_path / "rows.csv",
        codes,
        fmt="%d",
        delimiter=",",
        header=",".join(domain.names),
        comments="",
    )
    (tmp_path / "rows.domain.json").write_text(json.dumps(domain.to_json_dict()))
    bought = tmp_path / "bought.npz"
    words = ["discover", tmp_path / "rows.csv", "--domain", tmp_path / "rows.domain.json"]
    budget = "--epsilon 0.5 --delta 1e-6 --simulated-noise --release-out"
    for options in ([], ["--latent"]):
        command.shows(*words, budget, bought, "--force", *options)
        assert jaxcd.Release.load(bought).kind == "log-linear"


def test_discover_takes_an_algorithm() -> None:
    data = sampled("cancer", 310)
    options: dict[str, Any] = {"budget": jaxcd.Budget(1.0, 1e-6), "key": None}
    assert jaxcd.discover(data, **options, algorithm=jaxcd.Algorithm.FCI).info["algorithm"] == "fci"
    tree = jaxcd.discover(
        data,
        **options,
        algorithm=jaxcd.Algorithm.TREE,
        tree=jaxcd.decisions.TreeOptions(alpha=0.01),
    )
    assert tree.info["algorithm"] == "tree-pc" and "alpha=0.01" in tree.info["options"]
    assert (
        jaxcd.discover(data, **options, tree=jaxcd.decisions.TreeOptions(alpha=0.01)).info[
            "algorithm"
        ]
        == "tree-pc"
    )
    known = jaxcd.Knowledge(required=[("Smoker", "Cancer")])
    for algorithm in jaxcd.Algorithm:
        run = jaxcd.discover(data, **options, algorithm=algorithm, knowledge=known)
        assert "Smoker --> Cancer" in map(str, run.graph.edges())
        if algorithm is jaxcd.Algorithm.AUTO:  # what it is without knowledge
            assert run.info["algorithm"] == jaxcd.discover(data, **options).info["algorithm"]
    for wrong in (
        {"algorithm": "lingam"},
        {"algorithm": jaxcd.Algorithm.TREE, "decider": jaxcd.SparseVector()},
        {"algorithm": jaxcd.Algorithm.TREE, "max_level": 1},
        {"algorithm": jaxcd.Algorithm.PC, "tree": jaxcd.decisions.TreeOptions()},
        {"algorithm": jaxcd.Algorithm.RELEASE, "test": jaxcd.CovarianceNorm()},
        {"algorithm": jaxcd.Algorithm.RELEASE, "max_level": 1},
        {"algorithm": jaxcd.Algorithm.RELEASE, "n_confidence_draws": -1},
        {"algorithm": jaxcd.Algorithm.PC, "n_confidence_draws": 5},
        {"algorithm": jaxcd.Algorithm.PC, "release_out": "x.npz"},
    ):
        refused(OptionError, "use|drop|give", jaxcd.discover, data, **options, **wrong)


def test_numeric_beside_nominal_columns(command: CommandLine, tmp_path: Path) -> None:
    """A release of features takes both; under epsilon alone nothing does."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 3_000)
    x = np.array([0.0, 3.0, -1.0])[label] + rng.normal(size=3_000)
    rows = "\n".join(f"{'abc'[k]},{value:.6f}" for k, value in zip(label, x, strict=True))
    (tmp_path / "t.csv").write_text(f"label,x\n{rows}\n")
    columns = {
        "label": {"type": "categorical", "levels": ["a", "b", "c"]},
        "x": {"type": "numeric"},
    }
    (tmp_path / "domain.json").write_text(json.dumps({"columns": columns}))
    words = ["discover", tmp_path / "t.csv", "--domain", tmp_path / "domain.json"]
    code, out, err = command(words, BUDGET)
    assert (code, err) == (0, "") and "covariances of features" in out and "label --- x" in out
    assert "delta > 0" in command.refuses("no test here takes both", words, "--epsilon 1")


def test_the_confidence_and_the_steps_of_a_release_are_shown(
    command: CommandLine, tmp_path: Path
) -> None:
    words = (
        "discover --network earthquake --rows 20000 --epsilon 2 --simulated-noise --confidence 3"
    )
    code, out, err = command(words, "--progress --out", tmp_path / "x")
    assert code == 0
    assert err.splitlines()[:5] == [
        "buying the release (1 of 2)",
        "searching the release (2 of 2)",
        *(f"confidence ({k} of 3)" for k in (1, 2, 3)),
    ]
    graph = json.loads((tmp_path / "x" / "graph.json").read_text())
    shown = out[out.index("Confidence in the edges") :]
    for pair in graph["confidence"]["pairs"]:
        name = f"{pair['pair'][0]} {pair['found']} {pair['pair'][1]}"
        assert re.search(rf"{name} +{pair['adjacent']:.2f} +{pair['forward']:.2f}", shown)
    assert graph["confidence"]["pairs"] and graph["confidence"]["method"] in shown
    # the page says what was run, as it was typed
    page = html.unescape((tmp_path / "x" / "report.html").read_text())
    meaning = graph["confidence"]["meaning"]
    assert meaning in shown and page.count(meaning) == 1 and "new people with new noise" in meaning
    assert f"jaxcd {words} --progress --out {tmp_path / 'x'}" in page


def test_an_interrupt_says_what_was_spent_and_where_it_is(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jaxcd.api.search", interrupted)
    words = (
        "discover --network cancer --rows 500 --epsilon 0.5 --simulated-noise --algorithm release"
    )
    code, _, err = command(words)
    (kept,) = tmp_path.glob("jaxcd-bought-*.npz")
    assert code == 130 and "epsilon=0.5, delta=0 was spent" in err and str(kept) in err
    assert jaxcd.Release.load(kept).cost.epsilon == 0.5


def test_options_of_numbers_refuse_others_in_plain_words(command: CommandLine) -> None:
    """Of every command: no option answers in the words of a validator."""
    seen = 0
    for one in app.registered_commands:
        hints = typing.get_type_hints(one.callback, include_extras=True)
        for parameter, hint in hints.items():
            kind, *more = typing.get_args(hint) or (hint,)
            kinds = {kind, *typing.get_args(kind)}
            if not kinds & {int, float}:
                continue
            (info,), words = more, "no whole number" if int in kinds else "no number"
            assert info.parser is not None, (one.callback, parameter)
            name = (one.name or one.callback.__name__, f"--{parameter.replace('_', '-')}")
            values = ["abc"] * (4 if parameter == "bounds" else 1)
            command.refuses(f"'{name[1]}': 'abc' is {words}; write one", *name, *values)
            seen += 1
    assert seen > 30
