"""Commands on neighbouring files, replayed: with the noise moved so that every mechanism answers
as on the first file, all that is written must be the same, byte for byte.

What is compared are both screens, warnings, exit codes and files: the report with its page, the
release, the certificate, the ledger.  Several runs one after the other share one ledger file, whose
last ones do not fit any more: what they choose and how they refuse may depend on public facts and
on what was released, and on no row.
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxcd
from jaxcd.audit.replaying import Drawing, Replaying, Tape, listening, tapping
from jaxcd.cli import main
from jaxcd.privacy import SecureNoise, accountant, ledger_file

FAR = 2**50  # no margin is that many steps away from another

NUMBERS: dict[str, Any] = {name: {"type": "numeric", "lower": -4, "upper": 4} for name in "abcd"}
LEVELS: dict[str, Any] = {
    "s": {"type": "categorical", "levels": ["no", "yes", "else"], "other": "else"},
    "t": {"type": "ordinal", "levels": [1, 2, 3, 4]},
    "u": {"type": "categorical", "levels": ["a", "b"], "missing": True},
    "v": {"type": "ordinal", "bins": [0, 1, 2, 5]},
}
MIXED: dict[str, Any] = {
    "s": LEVELS["s"],
    "u": LEVELS["u"],
    "x": {"type": "numeric", "lower": 0, "upper": 120, "missing": True},
    "y": {"type": "numeric"},
}
MANY: dict[str, Any] = {
    f"c{j}": {"type": "categorical", "levels": ["0", "1", "2"][: 2 + j % 2]} for j in range(10)
}
WIDE: dict[str, Any] = {
    name: {"type": "ordinal", "levels": list(range(17)), **more}
    for name, more in (("a", {"intervention": True}), ("b", {"missing": True}), ("c", {}))
}
ODD = {"numeric": ("-4", "0", "120", "", "nan", "-1e308", "1e400"), "ordinal": ("1", "3", "", "9")}


def cells(column: dict[str, Any], state: float, rng: np.random.Generator) -> str:
    """A cell that depends on the state of its row."""
    if column["type"] == "numeric":
        centre = (column.get("lower", 0) + column.get("upper", 0)) / 2
        return f"{centre + state + rng.normal():.3f}"
    levels = column.get("levels", [0.5, 1.5, 3])
    return str(levels[int(np.clip(state + rng.normal() + len(levels) / 2, 0, len(levels) - 1))])


def strange(column: dict[str, Any], rng: np.random.Generator) -> str:
    """Any cell."""
    known = ODD.get(column["type"], ("", "HIV+", *map(str, column.get("levels", ()))))
    return str(rng.choice(known))


def files(columns: dict[str, Any], n: int, seed: int, *, people: bool) -> tuple[str, str]:
    """Two csv files that differ in one row, or in all rows of one person and in their number."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, n // 3, n) if people else np.arange(n)
    rows = [
        [*(cells(column, state, rng) for column in columns.values()), *([f"p{who}"] * people)]
        for who, state in zip(owner.tolist(), rng.normal(size=n).tolist(), strict=True)
    ]
    who = owner[n // 2]
    new = [
        [*(strange(column, rng) for column in columns.values()), *([f"p{who}"] * people)]
        for _ in range(7 if people else 1)
    ]
    place = int(np.flatnonzero(owner == who)[0])
    others = [row for row, one in zip(rows, owner, strict=True) if one != who]
    header = [*columns, *(["pid"] * people)]
    first, second = (
        "\n".join(map(",".join, [header, *part])) + "\n"
        for part in (rows, [*others[:place], *new, *others[place:]])
    )
    assert first != second
    return first, second


def inputs(columns: dict[str, Any], total: float, *, people: bool) -> None:
    """The domain, what is known, and a ledger, in the working folder."""
    person = {"pid": {"person": True}} if people else {}
    content = {"declared": True, "columns": {**columns, **person}}
    Path("domain.json").write_text(json.dumps(content), encoding="utf-8")
    first, *others = columns
    known = {"tiers": [[first], others], "forbidden": [[others[0], others[1]]]}
    Path("known.json").write_text(json.dumps(known), encoding="utf-8")
    budget = jaxcd.Budget(total, 1e-5, unit="person" if people else "row")
    jaxcd.LedgerFile("l.ledger", data_set="d", budget=budget)


class Seen:
    """Runs commands in one folder, with the operating system's noise replaced."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = monkeypatch
        monkeypatch.setattr(SecureNoise, "start", lambda _: self._sampler)
        monkeypatch.setattr(ledger_file, "_now", lambda: "2026-01-01T00:00:00+00:00")
        monkeypatch.chdir(folder)

    def all_of(
        self,
        commands: list[str],
        content: str,
        sampler_of: Callable[[int], Any],
        prepare: Callable[[], None],
    ) -> list[Any]:
        """All that can be seen of the commands, one after the other."""
        for entry in self._folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        Path("data.csv").write_text(content, encoding="utf-8")
        prepare()
        numbers = iter(range(1, 1000))
        self._patch.setattr(accountant.uuid, "uuid4", lambda: uuid.UUID(int=next(numbers)))
        seen: list[Any] = []
        for place, command in enumerate(commands):
            self._sampler = sampler_of(place)
            with listening() as said:
                code = main(command.split())
            out, err, warned = said()
            texts = [re.sub(r"bought-[\d-]+", "bought", part) for part in (out, err)]
            seen.append([code, *texts, warned])
        Path("data.csv").unlink()
        seen.append(
            {
                re.sub(r"bought-[\d-]+", "bought", str(path)): path.read_bytes()
                for path in sorted(Path().rglob("*"))
                if path.is_file()
            }
        )
        return seen


RUN = "discover data.csv --domain domain.json --progress --delta 1e-5"
#: Columns, rows, whether the unit is a person, what is said of the method, the ledger's epsilon,
#: and the commands.  After them the first is run once more, and does not fit.
CASES: dict[str, tuple[dict[str, Any], int, bool, str, float, list[str]]] = {
    "histogram": (LEVELS, 300, False, "joint histogram", 1.2, [
        f"{RUN} --epsilon 1 --out r --release-out r.npz",
        "search r.npz --algorithm fci --missing level --out s",
        "effect r.npz --treatment s --outcome t --levels no,yes --draws 2 --json",
    ]),
    "log-linear": (MANY, 200, False, "log-linear", 4.8, [
        f"{RUN} --epsilon 4 --out r --release-out r.npz --knowledge known.json",
    ]),
    "marginals": (WIDE, 5000, False, "release    Marginals", 33.0, [
        f"{RUN} --epsilon 20 --algorithm release --out r --release-out r.npz",
        f"{RUN} --epsilon 20 --algorithm release --out s --knowledge known.json --json",
    ]),
    "features": (MIXED, 400, False, "covariances of features", 4.0, [
        f"{RUN} --epsilon 3 --out r --release-out r.npz",
        "search r.npz --missing level --json",
    ]),
    "discretised": (MIXED, 40, False, "cut at their quantiles", 4.0, [
        f"{RUN} --epsilon 3 --out r --release-out r.npz --confidence 2",
    ]),
    "second moments": (NUMBERS, 400, False, "second moments", 4.0, [
        f"{RUN} --epsilon 3 --linear --latent --out r --release-out r.npz",
    ]),
    "tetrachoric": (NUMBERS, 40, False, "tetrachoric", 1.2, [
        f"{RUN} --epsilon 1 --linear --out r --release-out r.npz",
    ]),
    "people": (MIXED, 900, True, "people", 4.5, [
        f"{RUN} --epsilon 3 --unit person --out r --release-out r.npz",
        f"{RUN} --epsilon 3 --unit person --latent --out s --quiet",
    ]),
    "tests": (LEVELS, 300, False, "algorithm  fci", 5.0, [
        f"{RUN} --epsilon 3 --algorithm fci --mechanism levelwise-gaussian --out r",
        f"{RUN} --epsilon 1 --mechanism sparse-vector --max-level 1 --out s",
        f"{RUN} --epsilon 3 --mechanism exponential-select --max-level 1 --out t",
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_everything_that_is_written_is_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, n, people, words, total, commands = CASES[name]
    last = commands[0].replace("--out r", "--out last").replace("r.npz", "last.npz")
    commands = [
        f"{command} --ledger l.ledger" if command.startswith("discover") else command
        for command in (*commands, last, "ledger l.ledger --json")
    ]
    outside = Seen(tmp_path, monkeypatch)
    here, there = files(columns, n, len(name), people=people)
    with tapping() as tap:
        tapes: list[Tape] = []

        def drawing(place: int) -> Any:
            tapes.append(Tape())
            tap.tape = tapes[-1]
            return Drawing(tap, place)

        def replaying(place: int) -> Any:
            tap.tape = Tape()
            return Replaying(tap, tapes[place], shift=FAR)

        def prepare() -> None:
            inputs(columns, total, people=people)

        expected = outside.all_of(commands, here, drawing, prepare)
        found = outside.all_of(commands, there, replaying, prepare)
        alone = outside.all_of(commands, there, drawing, prepare)
    *screens, written = expected
    assert [code for code, *_ in screens] == [*[0] * len(CASES[name][-1]), 2, 0], screens
    assert "are left" in screens[-2][2]  # of the ledger
    assert words in screens[0][1]
    assert found[:-1] == expected[:-1]
    assert found[-1].keys() == written.keys()
    for path, content in written.items():
        assert found[-1][path] == content, path
    if "r.npz" in written:  # the comparison sees one row, the noise being the same
        assert alone[-1]["r.npz"] != written["r.npz"]


class Stopping(Tape):
    """Interrupts the run after some draw."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    def add(self, *call: Any, **more: Any) -> None:
        super().add(*call, **more)
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("name", ["discretised", "second moments", "log-linear", "people"])
def test_what_an_interrupted_command_leaves_is_the_same(
    name: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what was bought before, the ledger, and whether a second run fits."""
    columns, n, people, _, total, commands = CASES[name]
    first, *_ = (f"{command} --ledger l.ledger" for command in commands)
    outside = Seen(tmp_path, monkeypatch)
    here, there = files(columns, n, after, people=people)
    with tapping() as tap:
        tapes: list[Tape] = []

        def drawing(place: int) -> Any:
            tapes.append(Tape() if place else Stopping(after))
            tap.tape = tapes[-1]
            return Drawing(tap, place)

        def replaying(place: int) -> Any:
            tap.tape = Tape() if place else Stopping(after)
            return Replaying(tap, tapes[place], shift=FAR)

        def prepare() -> None:
            inputs(columns, total, people=people)

        expected = outside.all_of([first, first], here, drawing, prepare)
        found = outside.all_of([first, first], there, replaying, prepare)
    if expected[0][0] != 130:
        assert len(tapes[0].calls) < after  # so few draws
    assert found == expected
