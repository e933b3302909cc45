"""The audit of the wheel (``jaxcd audit --quick``), a test a check; and that the registry's claims
are attacked by it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import jaxcd.audit
from jaxcd.audit import BUGS, CHECKS
from jaxcd.audit.cases import CASES
from jaxcd.cli.app import app
from jaxcd.privacy.registry import REGISTRY

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", CHECKS)
def test_every_claim_stands_and_every_broken_one_is_caught(name: str) -> None:
    findings = list(CHECKS[name](True))
    assert findings
    assert not {finding.subject: finding.wrong for finding in findings if finding.wrong}


@pytest.mark.parametrize("entry", REGISTRY, ids=lambda entry: entry.name)
def test_every_registered_class_has_its_attacks_and_planted_bugs(entry) -> None:
    assert entry.attacks and entry.planted
    for attack in entry.attacks:
        assert (TESTS / attack).is_file(), attack
    assert set(entry.planted) <= {bug.name for bug in BUGS}
    module, _, name = entry.where.partition(":")
    assert getattr(__import__(module, fromlist=[name]), name).__name__ == name


def test_every_planted_bug_names_a_check_and_stands_in_the_source() -> None:
    assert len(BUGS) >= 40 and len({bug.name for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        assert bug.check in CHECKS, bug.name
        with jaxcd.audit.planted(bug):
            pass


def test_every_decider_test_release_and_score_takes_part_in_a_replay() -> None:
    roles = {"test", "mechanism", "release", "cause or effect"}
    registered = {entry.name for entry in REGISTRY if entry.role.value in roles}
    assert registered <= {name for case in CASES for name in case.entries}


def test_the_command_prints_a_table_and_draws_a_picture(tmp_path: Path) -> None:
    arguments = ["audit", "--quick", "--only", "composition: pure", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert re.search(r"2 claims, 0 broken", done.output)
    records = json.loads((tmp_path / "audit.json").read_text())
    assert records["holds"] and [row["of"] for row in records["findings"]] == [
        "composition: pure events add up",
        "ledger-forgets",
    ]
    assert "<svg" in (tmp_path / "audit.svg").read_text()


def test_the_command_fails_where_a_claim_is_broken() -> None:
    bug = next(bug for bug in BUGS if bug.name == "ledger-forgets")
    with jaxcd.audit.planted(bug):
        done = CliRunner().invoke(
            app, ["audit", "--quick", "--only", "composition: pure", "--no-planted-bugs"]
        )
    assert done.exit_code == 1 and "1 broken" in done.output


def test_unknown_checks_are_refused() -> None:
    assert CliRunner().invoke(app, ["audit", "--only", "no such check"]).exit_code == 2
