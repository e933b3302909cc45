"""Published numbers against the committed results, each with its verdict."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from benchmarks import experiment as ex
from benchmarks import papers, papers_local, papers_theory, priv_pc
from benchmarks.papers_claims import PAPERS
from benchmarks.papers_results import Claim, Missing, Results, Verdict, above, at_most, close, shown

RESULTS = Results(ex.RESULTS)
CLAIMS = [claim for _, claims in PAPERS for claim in claims]


def named(claim: Claim) -> str:
    return f"{claim.item}: {claim.what}"


@pytest.mark.parametrize("claim", CLAIMS, ids=named)
def test_the_stated_verdict_is_the_one_found(claim):
    ours, found = claim.found(RESULTS)  # a row that is missing fails, too
    assert found is claim.verdict, f"{ours} against {claim.published}"
    assert ours


def test_at_least_twenty_published_numbers_are_held():
    judged = [
        claim
        for claim in CLAIMS
        if claim.verdict is not Verdict.NOT_COMPARABLE and re.search("[0-9]", claim.published)
    ]
    assert len(judged) >= 50
    # and some of them do not agree
    assert {claim.verdict for claim in judged} == {Verdict.REPRODUCED, Verdict.CONTRADICTED}


@dataclass(frozen=True)
class Replaced(Results):
    """The committed results with one number in the place of every measured one."""

    ours: float = 0.0

    def rows(self, name: str, part: str = "results", **wanted: Any) -> list[ex.Row]:
        return [
            ex.Row({k: self.ours if isinstance(v, float) else v for k, v in row.items()})
            for row in super().rows(name, part, **wanted)
        ]


def test_the_published_number_decides_the_verdict():
    """With the number that the table shows in the place of ours a claim is reproduced, with another
    it is contradicted: no such rule passes whatever the results are.
    """
    held = 0
    for claim in CLAIMS:
        numbers = re.findall(r"[0-9][0-9,]*\.?[0-9]*|\.[0-9]+", claim.published)
        if claim.verdict is Verdict.NOT_COMPARABLE or len(numbers) != 1:
            continue
        words, other = claim.found(Replaced(ex.RESULTS, ours=1e9))
        if words == claim.found(RESULTS)[0]:
            continue  # computed here, not read from a file
        published = float(numbers[0].replace(",", ""))
        assert claim.found(Replaced(ex.RESULTS, ours=published))[1] is Verdict.REPRODUCED, named(
            claim
        )
        assert other is Verdict.CONTRADICTED, named(claim)
        held += 1
    assert held >= 35


def test_no_cell_is_without_a_sentence():
    for claim in CLAIMS:
        assert claim.published and claim.what and claim.item
        assert claim.why, named(claim)


@pytest.mark.parametrize("network", priv_pc.SEVEN)
def test_what_priv_pc_leaves_out_is_said(network):
    """Of a method either all prices were run, or the list says how many."""
    content = RESULTS.content("priv_pc")

    def here(part: str, method: str) -> list[dict[str, Any]]:
        return [e for e in content[part] if (e["network"], e["method"]) == (network, method)]

    for methods, prices in (
        (priv_pc.NON_PRIVATE, [None]),
        (priv_pc.PUBLISHED, priv_pc.PER_ROUND),
        (priv_pc.PRIVATE, priv_pc.EPSILONS),
    ):
        for method in methods:
            ran = {row["epsilon"] for row in here("results", method.label)} & set(prices)
            reasons = [entry["reason"] for entry in here("left_out", method.label)]
            if len(ran) == len(prices):
                assert not reasons, method.label
                continue
            (reason,) = reasons
            words = f"run at {len(ran)} of {len(prices)} prices" if ran else "not run"
            assert f"{method.label} on {network} {words} for its time" in reason


def test_rows_left_out_for_one_reason_are_told_once(tmp_path):
    entries = [{"case": "c", "value": value, "reason": "too large"} for value in (1, 2)]
    content = {"left_out": [*entries, {"case": "d", "reason": "slow"}]}
    (tmp_path / "local_multi.json").write_text(json.dumps(content))
    found = Results(tmp_path).left_out()
    assert found == {"local_multi": ["2 rows (case c): too large", "slow"]}


def test_the_document_is_what_the_program_writes():
    expected = papers.document(PAPERS, RESULTS)
    assert papers.DOCUMENT.read_text(encoding="utf-8") == expected, (
        "python -m benchmarks.papers writes it"
    )
    assert "\n| | " not in expected and "|  |" not in expected


@pytest.mark.parametrize("name", papers.QUICK)
def test_a_full_run_takes_up_what_is_committed(name):
    """Else it would end, or measure everything anew."""
    experiment = import_module(f"benchmarks.{name}").EXPERIMENT
    try:
        chosen = experiment.parse([])
        settings = json.loads(json.dumps(experiment.settings(chosen)))
    except SystemExit:
        pytest.skip("it needs data: set JAXCD_DATA")
    content = RESULTS.content(name)
    assert settings == content["settings"]
    if "n_runs" in experiment.key and getattr(chosen, "runs", None):
        assert {row["n_runs"] for row in content["results"]} == {chosen.runs}


def test_rules():
    folder = Results(Path("nowhere"), whole=False)
    assert close(lambda r: 1.04, 1.0, within=0.05)(folder)[1] is Verdict.REPRODUCED
    assert close(lambda r: 1.06, 1.0, within=0.05)(folder)[1] is Verdict.CONTRADICTED
    assert at_most(lambda r: 1.0, 1.0)(folder)[1] is Verdict.REPRODUCED
    assert at_most(lambda r: 1.1, 1.0)(folder)[1] is Verdict.CONTRADICTED
    assert above(lambda r: 2.0, lambda r: 1.0)(folder) == ("2.00 / 1.00", Verdict.REPRODUCED)
    assert above(lambda r: 1.0, lambda r: 1.0)(folder)[1] is Verdict.CONTRADICTED
    assert shown(lambda r: 1.0)(folder) == ("1.00", Verdict.NOT_COMPARABLE)
    with pytest.raises(Missing, match="no x.json"):
        folder.rows("x")


def written(folder: Path, name: str, rows: list[dict[str, Any]], part: str = "results") -> Results:
    (folder / f"{name}.json").write_text(json.dumps({part: rows}))
    return Results(folder)


@pytest.mark.parametrize(
    ("right", "verdict"),
    [
        ([0.5, 0.6, 0.4], Verdict.REPRODUCED),
        ([0.5, 0.6, 0.57], Verdict.NOT_COMPARABLE),
        ([0.5, 0.6, 0.7], Verdict.CONTRADICTED),
    ],
)
def test_a_hump(tmp_path, right, verdict):
    same = {"figure": "lambda", "score": "s", "protect": "p", "epsilon": 1.0}
    rows = [{**same, "penalty": p, "right": r} for p, r in zip((1, 2, 3), right, strict=True)]
    assert papers_theory._hump("s", "p")(written(tmp_path, "kusner_figures", rows))[1] is verdict


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0.9, 0.8, 0.7], [0.6, 0.6, 0.3]),
        ([0.6, 0.6, 0.3], [0.9, 0.8, 0.7]),
        ([0.9, 0, 1], [0] * 3),
    ],
)
def test_one_mechanism_above_another(tmp_path, first, second):
    """As by the paired test of Student at 5 %, here without the mean over searches."""
    same = {"case": "c", "level": "p_max", "value": 0.5, "ibu": False, "epsilon_ldp": 1.0}
    rows = [{**same, "mechanism": m, "skeleton_f1s": f} for m, f in (("a", first), ("b", second))]
    results = written(tmp_path, "local_multi", rows)
    verdict = papers_local._compared("c", "p_max", 0.5, ("a", False), ("b", False))(results)[1]
    found = stats.ttest_rel(first, second)
    clear = Verdict.REPRODUCED if found.statistic > 0 else Verdict.CONTRADICTED
    assert verdict is (clear if found.pvalue < 0.05 else Verdict.NOT_COMPARABLE)


@pytest.mark.parametrize(
    ("shape", "verdict"),
    [
        (lambda d: math.exp(-50 * d) / 2, Verdict.REPRODUCED),
        (lambda d: 0.5 / (1 + 50 * d), Verdict.CONTRADICTED),
    ],
)
def test_what_falls_off_exponentially(tmp_path, shape, verdict):
    rows = [
        {"epsilon": 1.0, "distance": d}
        | dict.fromkeys(("below", "above", "below_simulated", "above_simulated"), shape(d))
        for d in (0.005, 0.01, 0.02, 0.05)
    ]
    results = written(tmp_path, "priv_pc_tests", rows, "errors")
    assert papers_theory._falls_off(results)[1] is verdict
    rows[0]["below"] += 0.01  # no longer what is simulated
    results = written(tmp_path, "priv_pc_tests", rows, "errors")
    assert papers_theory._falls_off(results)[1] is Verdict.CONTRADICTED


def test_a_verdict_that_does_not_hold_stops_the_document():
    wrong = Claim("i", "w", "1", Verdict.REPRODUCED, close(lambda r: 2.0, 1.0, within=0.1))
    with pytest.raises(AssertionError, match="stated reproduced, found contradicted"):
        papers.line(wrong, RESULTS)
    assert papers.line(wrong, Results(ex.RESULTS, whole=False))[4] == "contradicted"


def test_a_quick_run_leaves_out_what_lacks_its_data_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAXCD_DATA", raising=False)
    papers.run(["pcd_sachs"], {"pcd_sachs": ()}, tmp_path)
    assert "pcd_sachs is left out: no cells: give --data" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match=r"(?s)benchmarks.pcd_sachs failed: .*--runs"):
        papers.run(["pcd_sachs"], {"pcd_sachs": ("--runs", "0")}, tmp_path)


@pytest.mark.slow
def test_quick_ends_within_five_minutes():
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.papers", "--quick"],
        capture_output=True,
        text=True,
        timeout=330,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "Priv-FCI" in run.stdout
