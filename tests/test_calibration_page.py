"""docs/calibration.md says what the committed results say."""

import re
from pathlib import Path

import pytest

from benchmarks import calibration_page, experiment

ROOT = Path(__file__).resolve().parent.parent


def row(**entries):
    given = {
        "law": "binary",
        "n_samples": 200,
        "test": "KCI",
        "type_1": 0.05,
        "type_1_interval": [0.03, 0.07],
        "type_1_data_sets": 500,
        "power": 1.0,
        "power_data_sets": 50,
        "named": True,
        "verdict": "within",
    }
    return experiment.Row(given | entries)


def test_the_page_is_that_of_the_committed_results():
    expected = calibration_page.written()
    assert calibration_page.DOCUMENT.read_text(encoding="utf-8") == expected, (
        "python -m benchmarks.calibration_page writes it anew"
    )
    for target in re.findall(r"\]\(([^)]+)\)", expected):
        assert (calibration_page.DOCUMENT.parent / target).is_file()


@pytest.mark.parametrize(("verdict", "shown"), [("within", "| .200 ("), ("above", "| **.200** (")])
def test_what_is_outside_is_bold(verdict, shown):
    text = calibration_page.page([row(type_1=0.2, verdict=verdict), row(n_samples=900)])
    assert shown in text and f"Cells: 2; outside .030 to .075: {int(verdict == 'above')};" in text
    assert "| law | x and y given Z | test | 200 rows | 900 rows |" in text
    assert "The other tests" not in text


def test_cells_that_were_not_measured_are_dashes():
    text = calibration_page.page([row(), row(law="shape", n_samples=900, type_1_data_sets=100)])
    (binary,) = re.findall(r"^\| binary .*$", text, re.MULTILINE)
    assert binary.endswith("| - |") and "of fewer than 500 data sets: 1." in text


def test_bars_in_names_do_not_end_a_cell():
    text = calibration_page.page([row(law="spread |z|", test="RCIT")])
    assert "| spread \\|z\\| | " in text


def test_other_packages_stand_beside_ours_by_law_and_size():
    rows = [row(), row(test="causal-learn KCI", type_1=0.1, power=0.4), row(n_samples=1_000)]
    table = calibration_page.page([row()], rows).split("## Beside other packages")[1]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    assert lines[0] == "| law | rows | KCI | causal-learn KCI |"
    assert lines[2:] == [
        "| binary | 200 | .050, 1.00 | .100, 0.40 |",
        "| binary | 1,000 | .050, 1.00 | - |",
    ]
