"""The command line: what it prints and writes, and what it refuses in one line of plain words."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.cli import main
from jaxcd.cli.options import DECIDERS, TESTS
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.report import FILES
from tests.helpers import refused, sampled

SMALL = ["discover", "--network", "cancer", "--rows", "300", "--max-level", "1"]
BUDGET = ["--epsilon", "1", "--delta", "1e-6"]


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def as_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code, out, _ = call(capsys, *words, "--json")
    assert code == 0
    return json.loads(out, parse_constant=pytest.fail)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """300 rows of Cancer as a file."""
    path = tmp_path / "patients.csv"
    sampled("cancer", 300).to_frame().to_csv(path, index=False)
    return path


# ---- what it does


def test_the_main_job(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = call(capsys, *SMALL, *BUDGET, "--out", str(tmp_path / "made" / "asia"))
    assert (code, err) == (0, "")
    for pattern in (
        r"^data +cancer, 300 rows sampled with seed 0, 5 columns$",
        r"^budget +epsilon=1, delta=1e-06 \(replace-one\), fixed before the data is read$",
        r"^test +CovarianceNorm, because ",
        r"^mechanism +LevelwiseGaussian, because ",
        r"^noise +secure, from the operating system$",
        r"^Graph: 5 nodes, \d+ edges$",
        r"^guarantee +epsilon=1, delta=1e-06 \(replace-one; proved: ",
        r"^spent +the ledger used epsilon=\S+ delta=1e-06 in \d+ events?, "
        r"of epsilon=1, delta=1e-06$",
        r"^  arcs +[01]\.\d{3} +[01]\.\d{3} +[01]\.\d{3}$",
        r"^written +.*asia/: graph\.png, graph\.json, graph\.dot, privacy\.json, report\.html$",
    ):
        assert re.search(pattern, out, re.MULTILINE), pattern
    assert sorted(path.name for path in (tmp_path / "made" / "asia").iterdir()) == sorted(FILES)
    graph = MixedGraph.from_json_dict(
        json.loads((tmp_path / "made" / "asia" / "graph.json").read_text())
    )
    assert all(f"  {edge}\n" in out for edge in graph.edges())


def test_json_is_one_object_and_repeats_with_simulated_noise(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = [*SMALL, *BUDGET, "--simulated-noise", "--seed", "3"]
    first = as_json(capsys, *words, "--out", str(tmp_path / "x"))
    assert first["secure_noise"] is False and first["guarantee"]["proven"] is False
    assert first["files"] == [str(tmp_path / "x" / name) for name in FILES]
    assert set(first["metrics"]) == {"arc_f1", "skeleton_f1", "orientation_f1", "shd"}
    assert as_json(capsys, *words) | {"files": first["files"]} == first

    key = jax.random.key(3)
    data = jaxcd.networks.load("cancer").sample(300, key=key)
    noise = jaxcd.SimulatedNoise(jax.random.fold_in(key, 1))
    run = jaxcd.discover(data, budget=jaxcd.Budget(1.0, 1e-6), key=None, noise=noise, max_level=1)
    assert MixedGraph.from_json_dict(first["graph"]) == run.graph
    truth = jaxcd.networks.load("cancer").cpdag()
    assert first["metrics"]["arc_f1"]["f1"] == jaxcd.metrics.arc_f1(run.graph, truth)


def test_warnings_and_progress_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(
        capsys,
        *SMALL,
        "--epsilon",
        "1",
        "--delta",
        "0.01",
        "--simulated-noise",
        "--progress",
        "--json",
    )
    assert code == 0
    json.loads(out)
    lines = err.splitlines()
    assert "is not below 1 / " in lines[0]
    assert lines[1].startswith("level 0: 10 pairs asked, ")
    assert "not for release" in lines[-1]


def test_quiet_prints_the_graph_only(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*SMALL, "--no-privacy"]
    graph = MixedGraph.from_json_dict(as_json(capsys, *words)["graph"])
    assert call(capsys, *words, "--quiet") == (0, f"{graph}\n", "")


@pytest.mark.parametrize("name", sorted(set(DECIDERS) - {"threshold"}))
def test_every_mechanism_runs_and_stays_in_budget(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = as_json(capsys, *SMALL, *BUDGET, "--mechanism", name, "--alpha", "0.01")
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
def test_every_test_can_be_named(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each on columns that it takes, without privacy."""
    path = tmp_path / "t.csv"
    kind = {"type": "numeric"} if name == "fisher-z" else {"type": "ordinal", "levels": [0, 1, 2]}
    (tmp_path / "domain.json").write_text(json.dumps({"columns": {"a": kind, "b": kind}}))
    path.write_text("a,b\n" + "0,0\n1,1\n2,2\n1,0\n" * 100)
    words = (
        "discover",
        str(path),
        "--domain",
        str(tmp_path / "domain.json"),
        "--no-privacy",
        "--test",
        name,
    )
    result = as_json(capsys, *words)
    assert type(TESTS[name]()).__name__ in result["settings"]["test"]
    assert result["graph"]["edges"] == [["a", "---", "b"]]
    assert result["metrics"] is None


def test_a_file_from_draft_to_private_run(
    csv: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    domain = tmp_path / "domain.json"
    words = ["discover", str(csv), *BUDGET, "--max-level", "1"]
    code, _, err = call(capsys, *words)
    assert code == 2 and f"jaxcd domain {csv} --out domain.json" in err
    code, out, _ = call(capsys, "domain", str(csv), "--out", str(domain))
    assert code == 0 and '"declared" to true' in out
    content = json.loads(domain.read_text())
    assert content["declared"] is False and len(content["columns"]) == 5
    code, _, err = call(capsys, *words, "--domain", str(domain))
    assert code == 2 and "draft" in err
    domain.write_text(json.dumps(content | {"declared": True}))
    result = as_json(capsys, *words, "--domain", str(domain))
    assert result["settings"]["n_samples"] == 300 and result["guarantee"]["proven"] is True
    code, _, err = call(capsys, "domain", str(csv), "--out", str(domain))
    assert code == 2 and "--force" in err and json.loads(domain.read_text())["declared"] is True
    code, _, err = call(capsys, "domain", str(csv), "--out", str(csv), "--force")
    assert code == 2 and csv.stat().st_size > 1000


def test_parquet_and_clip(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import pandas as pd

    pd.DataFrame({"a": [0.0, 1.0, 2.0, 9.0] * 10, "b": [1.0, 0.0, 2.0, 2.0] * 10}).to_parquet(
        tmp_path / "t.parquet"
    )
    numeric = {"type": "numeric", "lower": 0, "upper": 3}
    (tmp_path / "d.json").write_text(json.dumps({"columns": {"a": numeric, "b": numeric}}))
    words = (
        "discover",
        str(tmp_path / "t.parquet"),
        "--domain",
        str(tmp_path / "d.json"),
        "--no-privacy",
    )
    code, _, err = call(capsys, *words)
    assert code == 2 and "'a', row 4" in err and "--clip" in err
    assert call(capsys, *words, "--clip", "--quiet")[0] == 0


def test_bif_file(data_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "discover",
        "--bif",
        str(data_folder / "networks" / "cancer.bif"),
        "--rows",
        "300",
        "--max-level",
        "1",
    ]
    assert (
        as_json(capsys, *words, "--no-privacy")["graph"]["edges"]
        == as_json(capsys, *SMALL, "--no-privacy")["graph"]["edges"]
    )


@pytest.mark.parametrize(
    ("algorithm", "kind"), [("pc", "CPDAG"), ("tree", "CPDAG"), ("fci", "PAG")]
)
def test_every_algorithm(
    algorithm: str, kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = [
        "discover",
        "--network",
        "cancer",
        "--rows",
        "310",
        *BUDGET,
        "--algorithm",
        algorithm,
        "--simulated-noise",
    ]
    code, out, _ = call(capsys, *words, "--out", str(tmp_path / "x"))
    assert code == 0 and re.search(rf"^algorithm  {algorithm}$", out, re.MULTILINE)
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
    shown = as_json(capsys, *words)
    assert MixedGraph.from_json_dict(shown["graph"]) == run.graph
    truth = (
        jaxcd.networks.load("cancer").cpdag()
        if kind == "CPDAG"
        else jaxcd.discovery.dag_to_pag(jaxcd.networks.load("cancer").dag)
    )
    assert shown["metrics"]["skeleton_f1"]["f1"] == jaxcd.metrics.skeleton_f1(run.graph, truth)
    assert ("mark_f1" in shown["metrics"]) == (algorithm == "fci")


def test_auto_follows_the_recommendation(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The built-in example, smaller: auto buys a histogram; the run, the saved release and the
    report say the same.
    """
    words = ["discover", "--network", "earthquake", "--rows", "20000", *BUDGET, "--simulated-noise"]
    file, folder = tmp_path / "bought.npz", tmp_path / "x"
    code, out, _ = call(capsys, *words, "--release-out", str(file), "--out", str(folder))
    assert code == 0 and "  arcs            1.000      1.000   1.000\n" in out
    for pattern in (
        r"^algorithm  release$",
        r"^chosen +joint histogram, and ",
        r"^because +5 columns have 32 cells together, at most 4,096",
        r"^spent +the ledger used epsilon=1, delta=0 in 1 event, of epsilon=1, delta=1e-06$",
        r"^release +.*bought\.npz: ",
    ):
        assert re.search(pattern, out, re.MULTILINE), pattern
    assert not re.search("^(alpha|test|mechanism) ", out, re.MULTILINE)
    shown = as_json(capsys, *words, "--algorithm", "release")
    again = jaxcd.search(jaxcd.Release.load(file))
    assert MixedGraph.from_json_dict(shown["graph"]) == again.graph
    assert json.loads((folder / "graph.json").read_text())["edges"] == shown["graph"]["edges"]
    assert shown["secure_noise"] is False and shown["guarantee"]["proven"] is False
    assert [row["mechanism"] for row in shown["ledger"]] == ["Pure"]
    code, _, err = call(capsys, *words, "--release-out", str(file))
    assert code == 2 and "--force" in err
    assert call(capsys, *words, "--release-out", str(file), "--force", "--quiet")[0] == 0


@pytest.mark.parametrize(
    ("option", "value"), [("--test", "kendall-tau"), ("--alpha", "0.01"), ("--max-level", "1")]
)
def test_an_option_of_tests_makes_auto_pc(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = as_json(capsys, *PRIVATE, *BUDGET, option, value)
    assert shown["settings"]["algorithm"] == "pc"
    assert shown["reasons"][0] == f"chosen: PC, because of {option}, for which a release has no use"


def test_recommend(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asia = jaxcd.networks.load("asia").domain
    expected = jaxcd.recommend(asia, 2_000, budget=jaxcd.Budget(1.0, 1e-6))
    words = ["recommend", "--network", "asia", "--rows", "2000", *BUDGET]
    assert call(capsys, *words) == (0, f"{expected}\n", "")
    shown = as_json(capsys, *words)
    assert shown["method"] == expected.title
    assert shown["warning"] == expected.warning is not None
    domain = tmp_path / "domain.json"
    content = {"columns": {name: {"type": "numeric"} for name in "abc"}}
    domain.write_text(json.dumps(content))
    words = ["recommend", "--domain", str(domain), "--rows", "20000"]
    assert as_json(capsys, *words, *BUDGET)["algorithm"] == "tree"
    assert as_json(capsys, *words, *BUDGET, "--linear")["call"].count("SecondMoments") == 1
    assert as_json(capsys, *words, "--no-privacy")["algorithm"] == "pc"
    domain.write_text(json.dumps(content | {"declared": False}))
    code, _, err = call(capsys, *words, *BUDGET)
    assert code == 2 and "is a draft" in err


def test_hidden_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """The sample is that of the whole network, and the truth what FCI finds with an oracle."""
    words = "discover --network earthquake --rows 20000 --hide Alarm --no-privacy".split()
    network = jaxcd.networks.load("earthquake")
    code, out, _ = call(capsys, *words, "--algorithm", "fci")
    assert code == 0 and re.search(
        r"^data +earthquake without Alarm, 20,000 rows sampled with seed 0, 4 columns$",
        out,
        re.MULTILINE,
    )
    shown = as_json(capsys, *words, "--algorithm", "fci", "--test", "chi-square")
    data = network.sample(20_000, key=jax.random.key(0)).select(
        [name for name in network.names if name != "Alarm"]
    )
    run = jaxcd.fci(
        data, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(), budget=jaxcd.NO_PRIVACY, key=None
    )
    oracle = jaxcd.Oracle(network.dag, latent=("Alarm",))
    truth = jaxcd.fci(
        None, test=oracle, decider=jaxcd.Threshold(), budget=jaxcd.NO_PRIVACY, key=None
    ).graph
    assert MixedGraph.from_json_dict(shown["graph"]) == run.graph
    assert shown["metrics"]["mark_f1"]["f1"] == jaxcd.metrics.mark_f1(run.graph, truth)
    assert ["JohnCalls", "o-o", "MaryCalls"] in shown["graph"]["edges"]
    assert "Against the true PAG" in call(capsys, *words)[1]


def test_knowledge(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "knowledge.json"
    file.write_text(
        '{"tiers": [["Pollution", "Smoker"], ["Cancer"]], "required": [["Cancer", "Xray"]]}'
    )
    for algorithm in ("pc", "fci"):
        words = [
            "discover",
            "--network",
            "cancer",
            "--rows",
            "310",
            "--no-privacy",
            "--algorithm",
            algorithm,
        ]
        code, out, _ = call(capsys, *words, "--knowledge", str(file))
        assert code == 0 and re.search(r"^knowledge +.*knowledge\.json", out, re.MULTILINE)
        shown = as_json(capsys, *words, "--knowledge", str(file))
        assert ["Cancer", "-->", "Xray"] in shown["graph"]["edges"]
        assert ["Cancer", "-->", "Xray"] not in as_json(capsys, *words)["graph"]["edges"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "is no JSON"),
        ('{"tier": []}', "unknown key 'tier'"),
        ('{"required": [["Cancer", "Xray"], ["Xray", "Cancer"]]}', "in both directions"),
        ('{"forbidden": [["Cancer", "Xrays"]]}', "no variable 'Xrays'; did you mean 'Xray'?"),
        (None, "does not exist"),
    ],
)
def test_bad_knowledge(
    content: str | None, expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "knowledge.json"
    if content is not None:
        file.write_text(content)
    code, out, err = call(
        capsys, *PRIVATE, *BUDGET, "--algorithm", "fci", "--knowledge", str(file), "--quiet"
    )
    assert (code, out) == (2, "") and err.count("\n") == 1 and expected in err


def test_guarantees(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "guarantees", "--json")
    assert code == 0
    assert [entry["mechanism"] for entry in json.loads(out)] == [
        g.mechanism for g in jaxcd.guarantees()
    ]
    code, out, _ = call(capsys, "guarantees")
    assert code == 0 and "LevelwiseGaussian" in out and "Assumed" in out


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version") == (0, f"jaxcd {jaxcd.__version__}\n", "")
    for words in (
        ["--help"],
        ["discover", "--help"],
        ["domain", "--help"],
        ["recommend", "--help"],
        ["guarantees", "--help"],
    ):
        code, out, _ = call(capsys, *words)
        assert code == 0 and "Usage" in out


def test_python_m_jaxcd() -> None:
    words = [sys.executable, "-m", "jaxcd", "discover", "--network", "nowhere", "--no-privacy"]
    done = subprocess.run(
        words, cwd=Path(__file__).resolve().parents[1], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("jaxcd: --network 'nowhere' is unknown")
    assert done.stderr.count("\n") == 1


# ---- what it refuses

PRIVATE = ["discover", "--network", "cancer", "--rows", "300"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "--help"),
        (["dance"], "dance"),
        (["discover", "--dance"], "--dance"),
        (PRIVATE, "--epsilon is missing"),
        ([*PRIVATE, "--epsilon", "0"], "--epsilon 0"),
        ([*PRIVATE, "--epsilon", "-1"], "--epsilon -1"),
        ([*PRIVATE, "--epsilon", "nan"], "--epsilon nan"),
        ([*PRIVATE, "--epsilon", "inf"], "--epsilon inf"),
        ([*PRIVATE, "--epsilon", "one"], "--epsilon"),
        ([*PRIVATE, "--epsilon", "1", "--delta", "1"], "--delta 1"),
        ([*PRIVATE, "--epsilon", "1", "--delta", "nan"], "--delta nan"),
        ([*PRIVATE, "--epsilon", "1", "--no-privacy"], "--no-privacy"),
        ([*PRIVATE, "--no-privacy", "--simulated-noise"], "--simulated-noise"),
        ([*PRIVATE, *BUDGET, "--alpha", "0"], "--alpha 0"),
        ([*PRIVATE, *BUDGET, "--alpha", "nan"], "--alpha nan"),
        ([*PRIVATE, *BUDGET, "--max-level", "-1"], "--max-level -1"),
        ([*PRIVATE, *BUDGET, "--seed", "-1"], "--seed -1"),
        ([*PRIVATE, *BUDGET, "--force"], "--out"),
        ([*PRIVATE, *BUDGET, "--clip"], "--clip"),
        ([*PRIVATE, *BUDGET, "--algorithm", "magic"], "use auto, pc, tree, fci, release"),
        (
            [*PRIVATE, *BUDGET, "--algorithm", "release", "--max-level", "2"],
            "--max-level: --algorithm release has no such option",
        ),
        (
            [*PRIVATE, *BUDGET, "--algorithm", "release", "--alpha", "0.01"],
            "--alpha: --algorithm release has no such option",
        ),
        (
            [*PRIVATE, *BUDGET, "--algorithm", "release", "--test", "kendall-tau"],
            "--test: --algorithm release has no such option",
        ),
        (
            [*PRIVATE, *BUDGET, "--algorithm", "pc", "--release-out", "x.npz"],
            "--release-out: pc releases nothing",
        ),
        (
            [*PRIVATE, *BUDGET, "--max-level", "1", "--confidence", "5"],
            "--confidence: pc releases nothing",
        ),
        ([*PRIVATE, *BUDGET, "--confidence", "-1"], "--confidence -1"),
        (
            [*PRIVATE, *BUDGET, "--release-out", "nowhere/x.npz"],
            "--release-out 'nowhere/x.npz' is no file",
        ),
        ([*PRIVATE, *BUDGET, "--release-out", "."], "--release-out '.' is no file"),
        (
            ["recommend", *BUDGET, "--rows", "100"],
            "give exactly one of --domain FILE, --network NAME and --bif FILE",
        ),
        (
            ["recommend", *BUDGET, "--rows", "100", "--network", "asia", "--bif", "x.bif"],
            "--network and --bif are given",
        ),
        (["recommend", *BUDGET, "--network", "asia"], "--rows is missing"),
        (["recommend", *BUDGET, "--network", "asia", "--rows", "1"], "--rows 1"),
        (["recommend", "--network", "asia", "--rows", "100"], "--epsilon is missing"),
        (
            ["recommend", *BUDGET, "--network", "nowhere", "--rows", "100"],
            "cancer, earthquake, asia, survey",
        ),
        (["recommend", *BUDGET, "--domain", "nowhere.json", "--rows", "100"], "nowhere.json"),
        (
            [*PRIVATE, *BUDGET, "--algorithm", "tree", "--mechanism", "sparse-vector"],
            "--mechanism sparse-vector",
        ),
        ([*PRIVATE, *BUDGET, "--algorithm", "tree", "--max-level", "2"], "--max-level"),
        ([*PRIVATE, *BUDGET, "--algorithm", "tree", "--knowledge", "x.json"], "--knowledge"),
        ([*PRIVATE, "--epsilon", "1", "--algorithm", "tree"], "--delta"),
        ([*PRIVATE, *BUDGET, "--hide", "Smoke"], "'Smoke'"),
        ([*PRIVATE, *BUDGET, "--hide", "Smoker", "--hide", "Smoker"], "twice"),
        (
            [
                *PRIVATE,
                *BUDGET,
                *(w for n in ("Smoker", "Cancer", "Xray", "Dyspnoea") for w in ("--hide", n)),
            ],
            "leaves 1",
        ),
        (["discover", "x.csv", "--hide", "a", *BUDGET], "--hide"),
        ([*PRIVATE, *BUDGET, "--test", "magic"], ", ".join(TESTS)),
        ([*PRIVATE, *BUDGET, "--mechanism", "magic"], ", ".join(DECIDERS)),
        ([*PRIVATE, *BUDGET, "--test", "chi-square"], "no bounded sensitivity"),
        (
            [*PRIVATE, *BUDGET, "--test", "g-test", "--mechanism", "sparse-vector"],
            "no bounded sensitivity",
        ),
        ([*PRIVATE, *BUDGET, "--mechanism", "threshold"], "protects nobody"),
        ([*PRIVATE, "--epsilon", "1", "--mechanism", "levelwise-gaussian"], "--delta"),
        ([*PRIVATE, "--epsilon", "1", "--mechanism", "noisy-threshold-gaussian"], "--delta"),
        ([*PRIVATE, "--epsilon", "1e-300"], "larger epsilon"),
        (["discover", "--network", "cancer", "--rows", "1", *BUDGET], "--rows 1"),
        (["discover", "--network", "nowhere", *BUDGET], "cancer, earthquake, asia, survey"),
        (["discover", "--bif", "nowhere.bif", *BUDGET], "nowhere.bif"),
        (["discover", *BUDGET], "exactly one of FILE, --network NAME and --bif FILE"),
        (["discover", "x.csv", "--network", "cancer", *BUDGET], "FILE and --network"),
        (["discover", "x.csv", "--rows", "5", *BUDGET], "--rows"),
        (["discover", "nowhere.csv", *BUDGET], "'nowhere.csv' does not exist"),
        (["discover", "nowhere.csv", "--no-privacy"], "'nowhere.csv' does not exist"),
        (["domain", "nowhere.csv"], "'nowhere.csv' does not exist"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, *words, *(["--quiet"] if words[:1] == ["discover"] else []))
    assert (code, out) == (2, "")
    assert err.startswith("jaxcd: ") and err.count("\n") == 1 and err.endswith("\n")
    assert expected in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "domain", "expected"),
    [
        ("t.csv", "", None, "is empty"),
        ("t.csv", "a,b\n1,2\n", None, "at least 2 rows"),
        ("t.csv", "a,b\n1,\n2,2\n", None, "'b', row 1: the value is missing"),
        ("t.csv", "a,b\n1,NaN\n2,2\n", None, "'b', row 1: the value is missing"),
        ("t.csv", "a\n1\n2\n", None, "at least 2 columns"),
        ("t.csv", "a,a\n1,2\n2,1\n", None, "'a' occurs twice"),
        ("t.txt", "a,b\n1,2\n2,1\n", None, "use .csv, .csv.gz or .parquet"),
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
    name: str,
    content: str,
    domain: str | None,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / name).write_text(content)
    words = ["discover", str(tmp_path / name), "--no-privacy"]
    if domain is not None:
        (tmp_path / "domain.json").write_text(domain)
        words += ["--domain", str(tmp_path / "domain.json")]
    code, out, err = call(capsys, *words)
    assert (code, out) == (2, "") and err.count("\n") == 1 and expected in err


def test_an_existing_folder_is_refused_before_anything_is_spent(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def discover(*_: Any, **__: Any) -> None:
        raise AssertionError("the data was looked at")

    (tmp_path / "old").mkdir()
    monkeypatch.setattr(jaxcd, "discover", discover)
    monkeypatch.setattr(jaxcd.networks, "load", discover)
    code, out, err = call(capsys, *SMALL, *BUDGET, "--out", str(tmp_path / "old"))
    assert (code, out) == (2, "") and "--force" in err and str(tmp_path / "old") in err
    monkeypatch.undo()
    assert (
        call(capsys, *SMALL, *BUDGET, "--out", str(tmp_path / "old"), "--force", "--quiet")[0] == 0
    )
    assert (tmp_path / "old" / "report.html").stat().st_size > 1000


def test_a_draft_is_refused_before_the_file_is_read(
    csv: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("the data was read")

    monkeypatch.setattr(jaxcd, "read_csv", read)
    code, _, err = call(capsys, "discover", str(csv), *BUDGET)
    assert code == 2 and "--domain is missing" in err


def test_errors_of_the_system_and_of_programs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(error: BaseException) -> Any:
        def discover(*_: Any, **__: Any) -> None:
            raise error

        return discover

    words = [*SMALL, *BUDGET, "--quiet"]
    monkeypatch.setattr(jaxcd, "discover", failing(OSError(28, "No space left on device", "/full")))
    assert call(capsys, *words) == (2, "", "jaxcd: No space left on device: /full\n")
    monkeypatch.setattr(jaxcd, "discover", failing(GraphError("two\nlines")))
    assert call(capsys, *words) == (2, "", "jaxcd: two lines\n")
    monkeypatch.setattr(jaxcd, "discover", failing(KeyboardInterrupt()))
    assert call(capsys, *words) == (130, "", "jaxcd: interrupted\n")
    monkeypatch.setattr(jaxcd, "discover", failing(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):  # a bug is not bad input: it keeps its traceback
        main(words)


# ---- the same door in Python


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
    for algorithm in (jaxcd.Algorithm.AUTO, jaxcd.Algorithm.PC, jaxcd.Algorithm.FCI):
        run = jaxcd.discover(data, **options, algorithm=algorithm, knowledge=known)
        assert "Smoker --> Cancer" in map(str, run.graph.edges())
    for wrong in (
        {"algorithm": "fci"},
        {"algorithm": jaxcd.Algorithm.TREE, "decider": jaxcd.SparseVector()},
        {"algorithm": jaxcd.Algorithm.TREE, "max_level": 1},
        {"algorithm": jaxcd.Algorithm.TREE, "knowledge": known},
        {"algorithm": jaxcd.Algorithm.PC, "tree": jaxcd.decisions.TreeOptions()},
        {"algorithm": jaxcd.Algorithm.RELEASE, "test": jaxcd.CovarianceNorm()},
        {"algorithm": jaxcd.Algorithm.RELEASE, "max_level": 1},
        {"algorithm": jaxcd.Algorithm.RELEASE, "n_confidence_draws": -1},
        {"algorithm": jaxcd.Algorithm.PC, "n_confidence_draws": 5},
        {"algorithm": jaxcd.Algorithm.PC, "release_out": "x.npz"},
    ):
        refused(OptionError, "use|drop|give", jaxcd.discover, data, **options, **wrong)


def test_numeric_beside_nominal_columns(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
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
    words = ["discover", str(tmp_path / "t.csv"), "--domain", str(tmp_path / "domain.json")]
    code, out, err = call(capsys, *words, *BUDGET)
    assert (code, err) == (0, "") and "covariances of features" in out and "label --- x" in out
    code, out, err = call(capsys, *words, "--epsilon", "1")
    assert (code, out) == (2, "") and "no test here takes both" in err and "delta > 0" in err
