"""The benchmark against published accuracies: the claims hold on the public pairs, and its peer and
its table are wired up.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import pairs_published
from jaxcd.pairwise import CausePair, Direction


def test_every_claim_holds_or_says_why(data_folder: Path) -> None:
    sets = pairs_published.collections(data_folder, quick=False)
    assert {name: len(pairs) for name, pairs in sets.items()} == {
        "Tuebingen, 102": 102,
        "Tuebingen, 99": 99,
        "SIM": 100,
        "SIM-c": 100,
    }
    for claim in pairs_published.CLAIMS:
        row = pairs_published.measure(claim, sets[claim.collection], None)
        if claim.why:
            assert abs(row["difference"]) > 5e-4, (
                f"{claim.method} on {claim.collection} needs no excuse"
            )
        else:
            assert abs(row["difference"]) < 2.5e-3, (
                f"{claim.method} on {claim.collection}: {row['ours']} against {claim.accuracy}"
            )


def test_what_the_multivariate_pair_explains(data_folder: Path) -> None:
    pairs = pairs_published.collections(data_folder, quick=False)["Tuebingen, 102"]
    (claim,) = [
        c
        for c in pairs_published.CLAIMS
        if c.method == "IGCI, Gaussian" and c.collection == "Tuebingen, 102"
    ]
    weight = sum(pair.weight for pair in pairs)
    ours = pairs_published.measure(claim, pairs, None)["ours"]
    assert (ours * weight + 0.5) / (weight + 0.5) == pytest.approx(claim.accuracy, abs=5e-4)


def made(n: int) -> list[CausePair]:
    rng = np.random.default_rng(3)
    found = []
    for i in range(n):
        x = rng.uniform(size=80)
        found.append(
            CausePair(f"pair{i:04d}", x, x**3 + 0.01 * rng.normal(size=80), Direction.X_TO_Y)
        )
    return found


def test_a_peer_is_counted_where_it_decides_alike() -> None:
    pairs = made(4)
    claim = pairs_published.Claim("RECI, monomial 3", "made", 1.0, "nobody")
    alone = pairs_published.measure(claim, pairs, None)
    assert (alone["same"], alone["peer_seconds"]) == (None, None)
    calls: list[tuple[int, ...]] = []

    def peer(x: np.ndarray, y: np.ndarray) -> float:
        calls.append(x.shape)
        return 1.0 if len(calls) < 4 else 0.0  # the last is undecided

    row = pairs_published.measure(claim, pairs, peer)
    ours = [pairs_published.METHODS[claim.method](pair.x, pair.y) for pair in pairs]
    assert calls == [(80, 1)] * 4 and row["same"] == sum(
        answer is Direction.X_TO_Y for answer in ours[:3]
    )
    assert row["difference"] == pytest.approx(row["ours"] - 1.0) and row["ours"] == alone["ours"]


def test_without_the_peer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"no module named {name}")

    monkeypatch.setattr(pairs_published, "import_module", missing)
    assert pairs_published.peer_scores() == {}
    assert "cdt is left out: no module named" in capsys.readouterr().out


def test_main(data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_published, "peer_scores", dict)
    out = tmp_path / "published.json"
    pairs_published.main(["--quick", "--data", str(data_folder), "--out", str(out)])
    content = json.loads(out.read_text())
    assert content["peer"] is None and len(content["results"]) == len(pairs_published.CLAIMS)
    assert {row["n_pairs"] for row in content["results"]} == {12}
