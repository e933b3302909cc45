"""One total in a file: nothing is lost at kill -9, never more than the total is admitted, an edited
file is refused, analyses add up.

The processes that are killed are forked from one that has not loaded JAX, which takes no time and
is safe.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.cli.app import main
from jaxcd.errors import BudgetExhausted, FormatError, OptionError
from jaxcd.privacy import (
    Accounting,
    Budget,
    GaussianEvent,
    Law,
    Ledger,
    LedgerFile,
    MechanismRecord,
    PrivacyFilter,
    PureEvent,
    ZCDPEvent,
    rho_to_epsilon,
)
from jaxcd.privacy.limits import Limits
from tests.helpers import sampled, simulated

NAME = "people 2026-11"


@pytest.fixture(scope="module")
def people() -> jaxcd.Dataset:
    data = sampled("cancer", 300)
    return data.select(data.names[:3])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


def made(path: Path, *, budget: Budget | None = None, sizes: tuple[float, ...] = ()) -> LedgerFile:
    """A new ledger with charges of these epsilons."""
    ledger = LedgerFile(path, data_set=NAME, budget=budget or Budget(4.0, 1e-6))
    for i, size in enumerate(sizes):
        ledger.charge(PureEvent(size, f"charge {i}"))
    return ledger


# ---- processes

# The package without its public list, which would load JAX.
_START = """
import json, os, random, signal, sys, time, types
package = types.ModuleType("jaxcd")
package.__path__ = [sys.argv[1]]
sys.modules["jaxcd"] = package
from pathlib import Path
from jaxcd.errors import BudgetExhausted
from jaxcd.privacy import Budget, LedgerFile, PureEvent
assert "jax" not in sys.modules
folder = Path(sys.argv[2])

def all_of(reader):
    parts = []
    while part := os.read(reader, 65536):
        parts.append(part)
    os.close(reader)
    return b"".join(parts)

def tip_of(path):
    return int(path.read_bytes().split(b" ")[2]) - 1  # the first record is no charge
"""


def answer_of(program: str, folder: Path) -> list:
    """What a program prints as JSON, run in a process of its own."""
    words = [sys.executable, "-c", _START + program, str(Path(jaxcd.__file__).parent), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


_KILLED = """
dice, event, answer = random.Random(0), PureEvent(2.0**-20), []
for trial in range(200):
    if trial % 20 == 0:
        path, known = folder / f"{trial}.ledger", 0
        LedgerFile(path, data_set="people", budget=Budget(1.0))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ledger = LedgerFile(path)
            os.write(writer, b"!")
            while True:
                ledger.charge(event)
                os.write(writer, b".")  # admitted
        finally:
            os._exit(1)
    os.close(writer)
    os.read(reader, 1)
    time.sleep(dice.uniform(0.0, 0.008))
    os.kill(child, signal.SIGKILL)
    ended = os.waitpid(child, 0)[1]
    told = len(all_of(reader))
    tip = tip_of(path)
    try:
        shown = len(LedgerFile(path).records)
    except Exception as error:
        sys.exit(f"after kill {trial + 1} the file does not open: {error}")
    answer.append([os.WTERMSIG(ended), known + told, shown, tip])
    known = shown
print(json.dumps(answer))
"""


def test_kill_9_in_the_middle_of_charges(tmp_path):
    """200 times, whenever: what was admitted is in the file, and at most the charge that was under
    way besides.
    """
    rounds = answer_of(_KILLED, tmp_path)
    assert len(rounds) == 200 and {signal for signal, *_ in rounds} == {9}
    assert all(told <= shown <= told + 1 for _, told, shown, _ in rounds)
    assert max(told for _, told, _, _ in rounds) > 2  # something to lose, on a slow machine too


_STEPS = """
answer, real = [], os.fsync
for call in (1, 2):
    for after in (False, True):
        path = folder / f"{call}{after}.ledger"
        LedgerFile(path, data_set="people", budget=Budget(1.0)).charge(PureEvent(0.25))
        child = os.fork()
        if child == 0:
            calls = 0
            def fsync(handle):
                global calls
                calls += 1
                if calls == call and not after:
                    os.kill(os.getpid(), signal.SIGKILL)
                real(handle)
                if calls == call:
                    os.kill(os.getpid(), signal.SIGKILL)
            ledger = LedgerFile(path)
            os.fsync = fsync
            ledger.charge(PureEvent(0.5))
            os._exit(1)
        signal_of = os.WTERMSIG(os.waitpid(child, 0)[1])
        tip = tip_of(path)
        again = LedgerFile(path)
        shown = len(again.records)
        again.charge(PureEvent(0.125))
        last = LedgerFile(path)
        seen = len(last.records), tip_of(path), last.remaining_epsilon
        answer.append([signal_of, tip, shown, *seen])
print(json.dumps(answer))
"""


def test_killed_at_each_step_of_a_charge(tmp_path):
    """The record is forced to the disk, then the tip, and only then is the charge admitted; the
    next charge mends the tip.
    """
    assert answer_of(_STEPS, tmp_path) == [
        [9, 1, 2, 3, 3, 0.125],  # written, not forced: the tip does not know of it yet
        [9, 1, 2, 3, 3, 0.125],
        [9, 2, 2, 3, 3, 0.125],
        [9, 2, 2, 3, 3, 0.125],
    ]


_IN_A_ROW = """
path, real = folder / "row.ledger", os.fsync
LedgerFile(path, data_set="people", budget=Budget(1.0)).charge(PureEvent(0.25))
answer = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        size = path.stat().st_size
        def fsync(handle):
            real(handle)
            if path.stat().st_size > size:  # the record is on the disk, and the tip is not
                os.kill(os.getpid(), signal.SIGKILL)
        ledger = LedgerFile(path)
        os.fsync = fsync
        ledger.charge(PureEvent(0.125))
        os._exit(1)
    answer.append(os.WTERMSIG(os.waitpid(child, 0)[1]))
again = LedgerFile(path)
try:
    answer += [len(again.records), again.remaining_epsilon, again.charge(PureEvent(0.0625))]
    answer.append(len(LedgerFile(path).records))
except Exception as error:
    answer.append(repr(error))
print(json.dumps(answer))
"""


def test_killed_several_times_in_a_row(tmp_path):
    """Each left a whole record that the tip did not know of: all count, and the ledger goes on."""
    assert answer_of(_IN_A_ROW, tmp_path) == [9, 9, 9, 4, 0.375, 4, 5]


_CROWD = """
path, start = folder / "crowd.ledger", os.pipe()
children = []
for _ in range(8):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(start[1])
            os.read(start[0], 1)  # all begin at once, and all try to make the file
            ledger = LedgerFile(path, data_set="people", budget=Budget(1.0))
            admitted = refused = 0
            for _ in range(100):
                try:
                    ledger.charge(PureEvent(2.0**-8))
                    admitted += 1
                except BudgetExhausted:
                    refused += 1
            os.write(writer, json.dumps([admitted, refused]).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    children.append((child, reader))
os.close(start[0])
os.close(start[1])
counts = [json.loads(all_of(reader) or b"[0, 0]") for _, reader in children]
ends = [os.waitpid(child, 0)[1] for child, _ in children]
whole = LedgerFile(path)
print(json.dumps([counts, ends, len(whole.records), whole.spent.epsilon, whole.remaining_epsilon]))
"""


_FORKED = """
path = folder / "a.ledger"
ledger = LedgerFile(path, data_set="people", budget=Budget(1.0))
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    said = []
    for ask in (lambda: ledger.remaining_epsilon, lambda: ledger.charge(PureEvent(0.5))):
        try:
            ask()
        except Exception as error:
            said.append([type(error).__name__, str(error)])
    LedgerFile(path).charge(PureEvent(0.25))
    os.write(writer, json.dumps(said).encode())
    os._exit(0)
os.close(writer)
os.waitpid(child, 0)
print(json.dumps([json.loads(os.read(reader, 10_000)), ledger.remaining_epsilon]))
"""


def test_a_ledger_carried_over_a_fork_is_opened_anew(tmp_path):
    said, left = answer_of(_FORKED, tmp_path)
    assert [kind for kind, _ in said] == ["OptionError"] * 2
    assert all("open it anew here" in words and "a.ledger" in words for _, words in said)
    assert left == 0.75


_FORKED_IN_MEMORY = """
from jaxcd.privacy.ledger import Ledger
ledger = Ledger(Budget(1.0))
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    try:
        ledger.charge(PureEvent(1.0))
        said = ["charged", ""]
    except Exception as error:
        said = [type(error).__name__, str(error)]
    os.write(writer, json.dumps(said).encode())
    os._exit(0)
os.close(writer)
os.waitpid(child, 0)
ledger.charge(PureEvent(1.0))
print(json.dumps(json.loads(os.read(reader, 10_000))))
"""


def test_a_ledger_in_memory_refuses_in_a_process_that_is_forked(tmp_path):
    """It would remember its own charges only, and the budget would be spent once a process."""
    kind, words = answer_of(_FORKED_IN_MEMORY, tmp_path)
    assert kind == "OptionError" and "make a LedgerFile" in words


def test_eight_processes_share_one_total(tmp_path):
    """800 tries of a 256th of the total: exactly 256 are admitted."""
    counts, ends, n_records, spent, left = answer_of(_CROWD, tmp_path)
    assert ends == [0] * 8
    assert [admitted + refused for admitted, refused in counts] == [100] * 8
    assert sum(admitted for admitted, _ in counts) == n_records == 256
    assert (spent, left) == (1.0, 0.0)


# ---- threads


@pytest.fixture
def restless(monkeypatch):
    """Threads change places as often as they can, and always between what a charge decides and what
    it records.
    """
    real, before = Limits.admit, sys.getswitchinterval()

    def install(pause: Callable[[], object]) -> None:
        def admit(limits: Limits, sums: object) -> bool:
            answer = real(limits, sums)
            pause()
            return answer

        monkeypatch.setattr(Limits, "admit", admit)

    sys.setswitchinterval(1e-6)
    yield install
    sys.setswitchinterval(before)


def race(charges: list[Callable[[], int]], *, tries: int) -> int:
    """How many charges were admitted, of one thread for each function, each trying so often."""
    start, admitted, others = threading.Barrier(len(charges)), [], []

    def work(charge: Callable[[], int]) -> None:
        start.wait(timeout=60)
        for _ in range(tries):
            try:
                admitted.append(charge())
            except BudgetExhausted:
                continue
            except BaseException as error:
                others.append(error)

    threads = [threading.Thread(target=work, args=(charge,)) for charge in charges]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert others == []
    return len(admitted)


def in_memory(path: Path) -> list[PrivacyFilter]:
    return [Ledger(Budget(1.0))] * 8


def under_another(path: Path) -> list[PrivacyFilter]:
    whole = Ledger(Budget(1.0))
    return [Ledger(Budget(1.0), under=whole) for _ in range(8)]


def parts_of_one(path: Path) -> list[PrivacyFilter]:
    whole = Ledger(Budget(1.0))
    return [whole.part(epsilon=1.0, rho=0.0) for _ in range(8)]


def one_part(path: Path) -> list[PrivacyFilter]:
    return [Ledger(Budget(8.0)).part(epsilon=1.0, rho=0.0)] * 8


def one_file(path: Path) -> list[PrivacyFilter]:
    return [made(path, budget=Budget(1.0))] * 8


def eight_handles(path: Path) -> list[PrivacyFilter]:
    return [made(path, budget=Budget(1.0)) for _ in range(8)]


@pytest.mark.parametrize(
    "ledgers", [in_memory, under_another, parts_of_one, one_part, one_file, eight_handles]
)
def test_eight_threads_share_one_total(ledgers, path, restless):
    """Eight threads that try twice as much as there is: all that fits is admitted, and no more."""
    restless(lambda: time.sleep(1e-4))
    event = PureEvent(0.125)
    assert (
        race([lambda ledger=ledger: ledger.charge(event) for ledger in ledgers(path)], tries=2) == 8
    )


def test_without_its_lock_a_ledger_would_admit_too_much(restless):
    """That the test above can fail: eight threads that have all looked before any has recorded are
    all admitted.
    """
    together = threading.Barrier(8)
    restless(lambda: together.wait(timeout=60))
    ledger = Ledger(Budget(1.0))
    ledger._lock = contextlib.nullcontext()
    assert race([lambda: ledger.charge(PureEvent(1.0))] * 8, tries=1) == 8


# ---- damage

SIZES = (0.5, 0.25, 0.125, 0.0625)


def refused(path: Path, content: bytes) -> bool:
    """Whether a file of this content is refused as damaged, in words that say so, and is left
    alone.
    """
    path.write_bytes(content)
    for arguments in ({}, {"data_set": NAME, "budget": Budget(4.0, 1e-6)}):
        try:
            LedgerFile(path, **arguments)
        except FormatError as error:
            if str(path) not in str(error) or not any(
                word in str(error) for word in ("edited or truncated", "update jaxcd")
            ):
                return False
        else:
            return False
    return path.read_bytes() == content


def test_lines_taken_out_swapped_or_doubled_are_refused(path):
    made(path, sizes=SIZES)
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 6
    for i in range(6):
        assert refused(path, b"".join(lines[:i] + lines[i + 1 :])), f"without line {i + 1}"
        assert i == 5 or refused(path, b"".join([*lines[:i], lines[i], *lines[i:]])), (
            f"line {i + 1} twice"
        )
        for j in range(i):
            swapped = list(lines)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            assert refused(path, b"".join(swapped)), f"lines {j + 1} and {i + 1} swapped"
    # The whole file is not, nor one with something behind what was confirmed: that counts for
    # nothing.
    for end in (b"", lines[5]):
        path.write_bytes(b"".join(lines) + end)
        assert len(LedgerFile(path).records) == 4 and LedgerFile(path).spent.epsilon == sum(SIZES)


def test_a_line_of_another_ledger_is_refused(path, tmp_path):
    made(path, sizes=SIZES)
    made(tmp_path / "other.ledger", sizes=(0.5, 0.001, 0.125, 0.0625))
    lines, others = (
        file.read_bytes().splitlines(keepends=True) for file in (path, tmp_path / "other.ledger")
    )
    for i in (2, 3, 5):
        assert (
            refused(path, b"".join([*lines[:i], others[i], *lines[i + 1 :]]))
            or lines[i] == others[i]
        )
    assert lines[3] != others[3]


def test_an_edited_digit_is_refused(path):
    """Every digit of the file, one at a time: prices, digests, numbers of the first line, dates."""
    made(path, sizes=SIZES[:2])
    content = path.read_bytes()
    places = [i for i, byte in enumerate(content) if chr(byte).isdigit()]
    assert len(places) > 200
    for i in places:
        digit = b"%d" % ((content[i] - ord("0") + 1) % 10)
        assert refused(path, content[:i] + digit + content[i + 1 :]), f"digit {i}"


def test_other_words_are_refused(path):
    made(path, sizes=SIZES[:2])
    content = path.read_bytes()
    for old, new in (
        (NAME, "people 2026-12"),
        ("charge 1", "charge 7"),
        ("Pure", "ZCDP"),
        ("replace-one", "add-remove"),
    ):
        assert old.encode() in content
        assert refused(path, content.replace(old.encode(), new.encode()))
    for other in (
        b"\n",
        b"name,age\nAnn,30\n",
        bytes(range(256)),
        content[1:],
        b"\x00" * len(content),
    ):
        assert refused(path, other)


def test_a_file_cut_anywhere_is_refused(path):
    """What the first line has confirmed must be there to the last byte."""
    made(path, sizes=SIZES[:2])
    content = path.read_bytes()
    assert all(refused(path, content[:length]) for length in range(1, len(content)))


def test_an_emptied_file_is_refused(path):
    """It was a ledger, and what was spent is not known: it is no new one."""
    made(path, sizes=SIZES)
    assert refused(path, b"")


def test_a_torn_last_line_was_never_confirmed(path):
    """Killed while a record was written: wherever it broke off, the file opens without it, and the
    next charge overwrites it.
    """
    ledger = made(path, sizes=SIZES[:2])
    before = path.read_bytes()
    ledger.charge(PureEvent(0.125, "torn"))
    tip, after = len(before.split(b"\n")[0]) + 1, path.read_bytes()
    for length in range(len(before), len(after) + 1):
        path.write_bytes(before[:tip] + after[tip:length])
        opened = LedgerFile(path, data_set=NAME)
        # The whole line may have been forced to the disk: then it counts, though the first line
        # does not know of it.
        whole = length == len(after)
        assert [record["label"] for record in opened.records] == ["charge 0", "charge 1", "torn"][
            : 2 + whole
        ]
        opened.charge(PureEvent(0.0625, "next"))
        again = LedgerFile(path)
        assert [record["label"] for record in again.records][2:] == ["torn"] * whole + ["next"]
        assert again.spent.epsilon == 0.75 + 0.125 * whole + 0.0625


def test_a_torn_line_leaves_no_trace_for_those_who_have_the_file_open(path):
    first = made(path, sizes=SIZES[:2])
    with path.open("ab") as file:
        file.write(b'0123456789abcdef {"label": "to')
    assert len(first.records) == 2 and first.remaining_epsilon == 3.25
    second = LedgerFile(path)
    second.charge(PureEvent(0.125))
    first.charge(PureEvent(0.0625))
    assert len(LedgerFile(path).records) == 4
    assert first.spent == second.spent == LedgerFile(path).spent


@pytest.mark.parametrize("n_missing", [1, 2, 4])
def test_an_older_copy_under_an_open_ledger_is_refused(n_missing, path):
    """To a new reader it looks whole; who has seen more knows better, and keeps knowing."""
    ledger = made(path)
    copies = [path.read_bytes()]
    for size in SIZES:
        ledger.charge(PureEvent(size))
        copies.append(path.read_bytes())
    path.write_bytes(copies[4 - n_missing])
    for _ in range(2):
        with pytest.raises(FormatError, match="missing"):
            ledger.charge(PureEvent(0.01))
        with pytest.raises(FormatError, match="missing"):
            _ = ledger.remaining_epsilon
    assert path.read_bytes() == copies[4 - n_missing]


def test_another_data_set_or_total_is_refused(path):
    made(path, sizes=SIZES)
    content = path.read_bytes()
    for arguments, words in (
        ({"data_set": "people 2026-12"}, "of 'people 2026-11', not of 'people 2026-12'"),
        ({"budget": Budget(8.0, 1e-6)}, "the total was fixed"),
        ({"budget": Budget(4.0, 1e-5)}, "the total was fixed"),
        ({"budget": Budget(4.0, 1e-6, max_rows_per_person=2)}, "the total was fixed"),
        ({"failure_delta": 1e-7}, "failure_delta = 1e-07: .* sets aside 0.0 of its delta"),
    ):
        with pytest.raises(OptionError, match=words):
            LedgerFile(path, **arguments)
    assert path.read_bytes() == content
    assert LedgerFile(path, data_set=NAME, budget=Budget(4.0, 1e-6)).spent.epsilon == sum(SIZES)


def test_what_is_set_aside_for_failures_is_fixed_too(path):
    """A ledger that is opened again keeps what it was made with, and does not pretend another."""
    LedgerFile(path, data_set=NAME, budget=Budget(4.0, 1e-6), failure_delta=5e-7)
    for failure_delta in (0.0, 1e-7, "x", float("nan")):
        with pytest.raises(OptionError, match=r"sets aside 5e-07 .* leave failure_delta out"):
            LedgerFile(path, failure_delta=failure_delta)
    for arguments in ({}, {"failure_delta": 5e-7}, {"budget": Budget(4.0, 1e-6)}):
        assert LedgerFile(path, **arguments).remaining_failures == 5e-7


def forged(path: Path, *records: dict | str) -> None:
    """A file with right digests, which anybody can compute, and any content."""
    digest, lines = "0" * 64, ""
    for record in records:
        content = record if isinstance(record, str) else json.dumps(record)
        digest = hashlib.sha256(f"{digest} {content}".encode()).hexdigest()
        lines += f"{digest} {content}\n"
    path.write_text(f"jaxcd-ledger 1 {len(records):012d} {digest}\n{lines}")


def parts_of_one(path: Path) -> tuple[dict, dict]:
    """The head and the only charge of a ledger, for :func:`forged`."""
    made(path, sizes=(0.5,))
    _, head, row = path.read_text().splitlines()
    head, row = (json.loads(line.partition(" ")[2]) for line in (head, row))
    row |= {"law": "discrete Laplace", "sensitivity": 2.0, "pad": 0.0, "grid": 1.0}
    row |= {"dimension": 1, "integral": True, "scales": [4.0], "rate": 1.0}
    head = {name: part for name, part in head.items() if name != "accounting"}
    return head, row


WRONG_PARTS = [
    *({"head": {"failure_delta": x}} for x in ("inf", "nan", -1, 1e-5, [], None)),
    *({"head": {"data_set": x}} for x in ("", None, 3, "\ud800")),
    *({"head": {"epsilon": x}} for x in (0, "nan", "2", True, 10**400, [])),
    *({"head": {"delta": x}} for x in ("0", False, None)),
    *({"head": {"failure_delta": x}} for x in ("0", False)),
    *({"head": {"max_rows_per_person": x}} for x in ("2", 2.5, True)),
    *({"row": {"epsilon": x}} for x in ("x", -1, True, None, 10**400)),
    *({"row": {"rho": x}} for x in ("x", "nan", True, None, 10**400)),
    *({"row": {"gdp_rho": x}} for x in ("x", "nan", [])),
    *({"row": {"delta": x}} for x in ("x", None)),
    *({"row": {"time": x}} for x in (None, 3.0, [])),
    *({"row": {"claims": x}} for x in (None, 3, [[]], [3])),
    *({"row": {"secure": x}} for x in (None, "yes")),
    *({"row": {"label": x}} for x in ("\ud800",)),
    *({"row": {name: "0.5"}} for name in ("epsilon", "rho", "sensitivity", "pad", "grid", "rate")),
    *({"row": {"dimension": x}} for x in ("1", 1.5, True)),
    *({"row": {"integral": x}} for x in ("yes", 1)),
    *({"row": {"scales": x}} for x in (["4.0"], "4")),
    {"row": {"channel": [1]}},
]


@pytest.mark.parametrize("parts", WRONG_PARTS, ids=lambda parts: str(parts)[:60])
def test_records_with_right_digests_and_other_content_are_refused(parts, path):
    """In one message that names the file and says what to do, when the file is opened."""
    head, row = parts_of_one(path)
    forged(path, head, row)
    assert jaxcd.verify(path) is not None and LedgerFile(path).spent.epsilon == 0.5
    forged(path, {**head, **parts.get("head", {})}, {**row, **parts.get("row", {})})
    for read in (LedgerFile, jaxcd.verify):
        with pytest.raises(FormatError, match="has its digest, and holds what") as caught:
            read(path)
        assert str(path) in str(caught.value) and "put back the true file" in str(caught.value)


class _OwnEvent(PureEvent):
    """Of a class that no ledger file names."""


@pytest.mark.parametrize(
    "parts",
    [
        *({"integral": 1}, {"dimension": 2.5}, {"dimension": True}, {"sensitivity": "2"}),
        *(
            {"scales": (float("inf"),)},
            {"scales": ("4",)},
            {"rate": True},
            {"channel": ((1, {2}),)},
        ),
        {},
    ],
)
def test_a_charge_that_could_not_be_read_again_is_not_written(path, parts):
    """Or the ledger, with all that was charged before, could not be opened any more."""
    ledger = made(path, sizes=(0.5,))
    before = path.read_bytes()
    record = MechanismRecord(Law.LAPLACE, **{"sensitivity": 1.0, **parts})
    event = PureEvent(0.5, "own", record=record) if parts else _OwnEvent(0.5, "own")
    with pytest.raises(OptionError, match="event 'own': .* nothing was written"):
        ledger.charge(event)
    assert path.read_bytes() == before and LedgerFile(path).spent.epsilon == 0.5


def test_a_whole_number_may_be_written_with_a_point(path):
    """As a mechanism of one's own may state its dimension, and earlier versions wrote it."""
    record = MechanismRecord(Law.LAPLACE, 1.0, dimension=3.0)
    made(path).charge(PureEvent(0.5, "own", record=record))
    assert LedgerFile(path).spent.epsilon == 0.5 and jaxcd.verify(path) is not None


def test_a_record_that_is_no_table_is_refused(path):
    made(path.with_name("other"))
    head = path.with_name("other").read_text().splitlines()[1].partition(" ")[2]
    twice = head[:-1] + ', "epsilon": 100.0}'
    for content in ("[" * 100_000 + "]" * 100_000, "[1]", "NaN", '"x"', "{}", twice):
        forged(path, content)
        with pytest.raises(FormatError, match="record 1 has its digest"):
            LedgerFile(path)


def test_a_rho_that_no_float_holds_is_none(path):
    ledger = made(path, budget=Budget(1.0, max_rows_per_person=2**53))
    ledger.charge(PureEvent(1e-201))  # its rho is below the least float
    assert 1 <= ledger.spent.epsilon / (2**53 * 1e-201) <= 1 + 1e-9


def test_what_makes_no_ledger(path, tmp_path):
    for wrong in ({}, {"data_set": NAME}, {"budget": Budget(1.0)}):
        with pytest.raises(OptionError, match="there is no ledger"):
            LedgerFile(path, **wrong)
    for place in (tmp_path, tmp_path / "nowhere" / "x.ledger"):
        with pytest.raises(OptionError, match="no file in a folder that exists"):
            LedgerFile(place, data_set=NAME, budget=Budget(1.0))
    # a folder that takes no file, where a lock would be waited for without end
    with pytest.raises(OptionError, match="no file"):
        LedgerFile("/proc/x.ledger", data_set=NAME, budget=Budget(1.0))
    for wrong in (
        {"data_set": " ", "budget": Budget(1.0)},
        {"data_set": "a\udcff", "budget": Budget(1.0)},
        {"data_set": NAME, "budget": jaxcd.NO_PRIVACY},
    ):
        with pytest.raises(OptionError):
            LedgerFile(path, **wrong)
    assert not path.exists()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for place in (tmp_path / "loop", f"{tmp_path}/a\0", tmp_path / ("a" * 300), None):
        with pytest.raises(OptionError, match="path = "):
            LedgerFile(place, data_set=NAME, budget=Budget(1.0))
    assert (tmp_path / "loop").is_symlink()


# ---- analyses


def forbid_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on a draw of simulated noise is an error."""

    def drawn(*_: object, **__: object) -> None:
        raise AssertionError("noise was drawn")

    sampler = type(simulated().start())
    for method in ("discrete_laplace", "discrete_gaussian", "geometric", "subset", "gumbel_max"):
        monkeypatch.setattr(sampler, method, drawn)


def test_a_refusal_says_what_would_help(people, path):
    """What pure events need of rho, and not what Gaussian noise would need; and where nothing is
    left, nothing less can be asked for.
    """
    asked = {"budget": Budget(2.0, 1e-6), "noise": simulated(), "ledger": made(path)}
    asked["ledger"].charge(GaussianEvent(10.0**-3))  # the pure rule has no room any more
    assert asked["ledger"].remaining_rho > Ledger(asked["budget"]).remaining_rho
    with pytest.raises(BudgetExhausted, match="less than .*; ask for less$") as caught:
        jaxcd.release(people, jaxcd.Histogram(), **asked)
    told = re.search(r"([0-9.]+) of rho .* or rho ([0-9.]+)\)", str(caught.value))
    assert told is not None
    left, needed = told.groups()
    assert float(left) < float(needed)
    asked["ledger"].charge(GaussianEvent(asked["ledger"].remaining_rho * (1 - 1e-15)))
    for kind in (jaxcd.Histogram(), jaxcd.Marginals()):
        with pytest.raises(BudgetExhausted, match="^ledger: nothing is left for .*at no cost$"):
            jaxcd.release(people, kind, **asked)


def test_a_refusal_says_that_runs_without_a_delta_have_room(people, path):
    """After pure events nothing may be left for Gaussian noise, while the pure rule has room: no
    smaller budget with a delta would help, and one without does.
    """
    asked = {"noise": simulated(), "ledger": made(path, budget=Budget(2.0, 1e-5))}
    asked["ledger"].charge(PureEvent(1.0))
    assert asked["ledger"].remaining_rho == 0
    words = r"nothing is left for .*; a budget with delta = 0 may have up to 1 of epsilon$"
    with pytest.raises(BudgetExhausted, match=words):
        jaxcd.release(people, jaxcd.Marginals(), budget=Budget(0.1, 1e-6), **asked)
    asked["ledger"].charge(PureEvent(0.25))
    with pytest.raises(BudgetExhausted, match=r"may have up to 1\.5 of epsilon$"):
        jaxcd.release(
            people, jaxcd.Marginals(), budget=Budget(0.1, 1e-6, max_rows_per_person=2), **asked
        )
    jaxcd.release(people, jaxcd.Histogram(), budget=Budget(1.5, max_rows_per_person=2), **asked)


def test_what_is_said_to_be_left_can_be_asked_for(people, path):
    """Of 1 less .4 and .4 a little less than .2 is left, as floats are; .2 was refused because .2
    was left.
    """
    ledger = LedgerFile(path, data_set="people", budget=Budget(1.0))
    for _ in range(2):
        jaxcd.release(
            people, jaxcd.Histogram(), budget=Budget(0.4), noise=simulated(), ledger=ledger
        )
    for refused in (
        lambda: ledger.charge(PureEvent(0.2)),
        lambda: jaxcd.release(
            people, jaxcd.Histogram(), budget=Budget(0.2), noise=simulated(), ledger=ledger
        ),
    ):
        with pytest.raises(BudgetExhausted, match=r"\b0\.199999 of epsilon and 0 of rho are left"):
            refused()
    jaxcd.release(
        people, jaxcd.Histogram(), budget=Budget(0.199999), noise=simulated(), ledger=ledger
    )


def test_a_copy_beside_which_no_lock_can_be_made_is_read_and_not_charged(people, path, command):
    """As on a disk that cannot be written."""
    jaxcd.release(
        people, jaxcd.Histogram(), budget=Budget(0.5), ledger=made(path, budget=Budget(2.0))
    )
    Path(f"{path}.lock").unlink(missing_ok=True)
    Path(f"{path}.lock").mkdir()
    content = path.read_bytes()
    ledger = LedgerFile(path)
    assert ledger.remaining_epsilon == 1.5 and len(ledger.records) == 1
    assert jaxcd.verify(path).holds
    code, out, _ = command("ledger", path)
    assert code == 0 and "1.5 of epsilon" in out
    words = r"can be read and not charged.*people\.ledger\.lock"
    with pytest.raises(OptionError, match=words):
        ledger.charge(PureEvent(0.1))
    before = ledger.records
    with pytest.raises(OptionError, match=words):
        jaxcd.release(
            people, jaxcd.Histogram(), budget=Budget(0.1), noise=simulated(), ledger=ledger
        )
    rest = "--network cancer --rows 300 --epsilon 0.1 --simulated-noise --ledger"
    code, out, err = command("discover", *rest.split(), path)
    assert code == 2 and "can be read and not charged" in err
    assert path.read_bytes() == content and ledger.records == before


def test_a_ledger_is_not_made_where_no_lock_can_be(path):
    Path(f"{path}.lock").mkdir()
    with pytest.raises(OSError):
        LedgerFile(path, data_set=NAME, budget=Budget(1.0))
    assert not path.exists()


def test_several_analyses_add_up_under_one_total(people, path, monkeypatch):
    """Searches, releases, tests and pairs: the file's total is the sum of theirs, and what does not
    fit is refused undrawn.
    """
    total = made(path, budget=Budget(2.0))
    x, y = np.random.default_rng(0).uniform(size=(2, 300))
    options = {"budget": Budget(0.25), "noise": simulated(), "ledger": total}
    costs = [
        jaxcd.discover(people, key=None, **options).spent,
        jaxcd.discover(people, key=None, decider=jaxcd.SparseVector(), **options).spent,
        jaxcd.release(people, jaxcd.Histogram(), **options).spent,
        jaxcd.release(people, jaxcd.Marginals(), **options).spent,
        jaxcd.ci_test(people, *people.names[:2], test=jaxcd.CovarianceNorm(), **options).spent,
        jaxcd.reci(x, y, bounds=((0.0, 1.0), (0.0, 1.0)), **options).spent,
    ]
    records = LedgerFile(path).records
    assert len({record["analysis"] for record in records}) == 6 and len(records) > 6
    assert all(record["secure"] is False for record in records)
    exact = sum(Fraction(record["epsilon"]) for record in records)
    assert float(exact) == pytest.approx(sum(cost.epsilon for cost in costs), rel=1e-12)
    assert (
        total.spent.epsilon
        == LedgerFile(path).spent.epsilon
        == pytest.approx(float(exact), rel=1e-15)
    )
    assert 1.25 < total.spent.epsilon <= 1.5 and Fraction(total.remaining_epsilon) <= 2 - exact
    # It would fit by itself; of the total there is not enough left.
    content = path.read_bytes()
    forbid_draws(monkeypatch)
    for run in (
        lambda **more: jaxcd.discover(people, key=None, **more),
        lambda **more: jaxcd.discover(
            people, key=None, max_level=1, decider=jaxcd.SparseVector(), **more
        ),
        lambda **more: jaxcd.release(people, jaxcd.Marginals(), **more),
        lambda **more: jaxcd.ci_test(
            people, *people.names[:2], test=jaxcd.CovarianceNorm(), **more
        ),
        lambda **more: jaxcd.reci(x, y, bounds=((0.0, 1.0), (0.0, 1.0)), **more),
    ):
        with pytest.raises((OptionError, BudgetExhausted), match="^ledger: ") as caught:
            run(budget=Budget(0.75), noise=simulated(), ledger=total)
        assert jaxcd.receipt_of(caught.value) is None
        with pytest.raises(AssertionError, match="noise was drawn"):  # so the refusal came first
            run(budget=Budget(0.75), noise=simulated())
    assert path.read_bytes() == content


def test_gaussian_analyses_add_up_in_rho(people, path):
    total = made(path, budget=Budget(4.0, 1e-6, accounting=Accounting.ZCDP))
    options = {"budget": Budget(1.0, 1e-7), "noise": simulated(), "ledger": total}
    runs = [
        jaxcd.discover(people, key=None, algorithm=jaxcd.Algorithm.PC, **options),
        jaxcd.discover(people, key=None, algorithm=jaxcd.Algorithm.FCI, **options),
        jaxcd.discover(people, key=None, algorithm=jaxcd.Algorithm.TREE, **options),
    ]
    bought = jaxcd.release(people, jaxcd.Marginals(), **options)
    of_runs = [Fraction(row["rho"]) for run in runs for row in run.info["ledger"]] + [
        Fraction(row["rho"]) for row in bought.ledger
    ]
    assert [Fraction(record["rho"]) for record in total.records] == of_runs
    assert total.spent.epsilon == pytest.approx(rho_to_epsilon(float(sum(of_runs)), 1e-6), rel=1e-9)
    assert all(run.spent.epsilon <= 1.0 and run.cost.epsilon == 1.0 for run in (*runs, bought))
    assert total.spent.epsilon <= total.guarantee.epsilon == 4.0


@pytest.mark.parametrize("accounting", list(Accounting))
def test_pure_analyses_after_gaussian_noise(accounting, people, path):
    """Rule (P) of the file has no room after it; the rhos of pure events have."""
    total = made(path, budget=Budget(2.0, 1e-6, accounting=accounting))
    first = Budget(1.5, 1e-7, accounting=accounting)
    jaxcd.release(people, jaxcd.Marginals(), budget=first, noise=simulated(), ledger=total)
    assert total.remaining_epsilon == 0
    left, own = total.remaining_rho, Budget(0.01)
    assert Ledger(own, under=total).remaining_epsilon == 0.01
    assert Ledger(Budget(9.0), under=total).remaining_epsilon == total.pure_within(left)
    options = {"budget": own, "noise": simulated(), "ledger": total}
    found = [
        jaxcd.discover(people, key=None, decider=jaxcd.SparseVector(), **options),
        jaxcd.discover(people, key=None, decider=jaxcd.NoisyThreshold(), **options),
        jaxcd.release(people, jaxcd.Marginals(), **options),
    ]
    assert all(0 < each.spent.epsilon <= 0.01 and each.spent.delta == 0 for each in found)
    assert total.spent.epsilon <= 2.0 and total.remaining_rho < left
    assert jaxcd.verify(total.certificate()).holds


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-2])
def test_200_releases_of_a_tenth_under_a_total_of_one(delta, people, path):
    """As many as the two rules of composition admit: by sums of epsilon nine, since ten times the
    float 0.1 is above 1; by rho and a delta of 1e-2 more.  The rest is refused and writes
    nothing."""
    total = made(path, budget=Budget(1.0, delta, accounting=Accounting.ZCDP))
    rho = Fraction(0.1) ** 2 / 2
    fit = max(
        count
        for count in range(201)
        if count * Fraction(0.1) <= 1
        or (delta and rho_to_epsilon(float(count * rho), delta) <= 1.0 - 1e-9)
    )
    assert fit == 9 if delta < 1e-3 else 10 < fit < 200
    admitted = []
    for i in range(200):
        content = path.read_bytes()
        try:
            jaxcd.release(
                people, jaxcd.Histogram(), budget=Budget(0.1), noise=simulated(i), ledger=total
            )
        except (OptionError, BudgetExhausted):
            assert path.read_bytes() == content
        else:
            admitted.append(i)
    assert admitted == list(range(fit))
    assert len(LedgerFile(path).records) == fit and total.spent.epsilon <= 1.0


def test_two_readers_of_one_file_see_each_other(path):
    first = made(path, budget=Budget(1.0))
    second = LedgerFile(path)
    assert [first.charge(PureEvent(0.5)), second.charge(PureEvent(0.25))] == [0, 1]
    assert first.remaining_epsilon == second.remaining_epsilon == 0.25
    with pytest.raises(BudgetExhausted, match=r"people\.ledger"):
        first.charge(PureEvent(0.5))
    with pytest.raises(BudgetExhausted):
        second.charge(ZCDPEvent(1e-9))  # delta = 0 has no room for it
    assert first.charge(PureEvent(0.25)) == 2
    assert first.spent.epsilon == second.spent.epsilon == 1.0


def test_a_release_is_searched_again_at_no_charge(people, path, tmp_path):
    """Bought once under the ledger; then without it, any number of times, also where the ledger is
    gone.
    """
    total = made(path, budget=Budget(1.0))
    run = jaxcd.discover(
        people,
        budget=Budget(1.0),
        key=None,
        noise=simulated(),
        ledger=total,
        release_out=tmp_path / "bought.npz",
    )
    assert total.remaining_epsilon == 0.0
    content = path.read_bytes()
    for _ in range(2):
        found = jaxcd.search(jaxcd.Release.load(tmp_path / "bought.npz"))
        assert found.graph == run.graph and found.spent == run.spent and found.cost == run.cost
    assert path.read_bytes() == content
    path.unlink()
    assert jaxcd.search(jaxcd.Release.load(tmp_path / "bought.npz")).graph == run.graph


# ---- the command line


NEW = f"--data-set '{NAME}'"


def test_jaxcd_ledger_shows_what_was_spent(people, path, command):
    code, out, err = command("ledger", path, NEW, "--epsilon 2")
    assert (code, err) == (0, "") and path.exists()
    total = LedgerFile(path, data_set=NAME, budget=Budget(2.0))
    jaxcd.release(people, jaxcd.Histogram(), budget=Budget(0.5), noise=simulated(), ledger=total)
    out = command("ledger", path)[1]
    assert "in 1 charge of 1 analysis\n" in out and ": 1 charge, epsilon" in out
    jaxcd.release(people, jaxcd.Marginals(), budget=Budget(0.25), noise=simulated(), ledger=total)
    total.charge(PureEvent(0.125))
    content = path.read_bytes()
    code, out, err = command("ledger", path)
    assert (code, err) == (0, "")
    n_charges = len(total.records)
    (left,) = re.findall(r"left +(\S+) of epsilon", out)
    assert total.remaining_epsilon - 1e-5 < float(left) <= total.remaining_epsilon
    for words in (
        NAME,
        "epsilon=2",
        f"epsilon={total.spent.epsilon:.6g}, ",
        f"{n_charges} charges of 3 analyses",
        "release: histogram",
        "release: marginals",
    ):
        assert words in out
    code, out, err = command("ledger", path, "--json")
    assert (code, err) == (0, "")
    shown = json.loads(out, parse_constant=pytest.fail)
    assert shown["data_set"] == NAME and shown["guarantee"]["epsilon"] == 2.0
    exact = sum(Fraction(record["epsilon"]) for record in total.records)
    assert (
        shown["spent"]["epsilon"] == total.spent.epsilon == pytest.approx(float(exact), rel=1e-15)
    )
    assert shown["left"] == {"epsilon": total.remaining_epsilon, "rho": total.remaining_rho}
    assert [entry["n_charges"] for entry in shown["analyses"]] == [1, n_charges - 2, 1]
    assert [entry["epsilon"] for entry in shown["analyses"]] == pytest.approx(
        [0.5, float(exact) - 0.625, 0.125], rel=1e-9
    )
    assert path.read_bytes() == content


def test_jaxcd_ledger_says_whom_each_number_is_for(path, command):
    """With several rows a person the total is a person's, and prices are those of one row."""
    command.shows("ledger", path, NEW, "--epsilon 4 --delta 1e-6 --max-rows-per-person 4")
    total = LedgerFile(path)
    total.charge(PureEvent(0.25))
    lines = command.shows("ledger", path).splitlines()
    by_label = {line.split()[0]: line for line in lines}
    assert "epsilon=4" in by_label["total"] and "epsilon=1," in by_label["spent"]
    for label in ("total", "spent"):
        assert "a person with up to 4 rows" in by_label[label]
    assert "0.75 of epsilon" in by_label["left"] and "epsilon 0.25" in lines[-1]
    for line in (by_label["left"], lines[-1]):
        assert line.endswith("for one row")
    shown = command.json("ledger", path)
    assert shown["guarantee"]["unit"] == "a person with up to 4 rows"
    assert shown["prices_for"] == "one row"


def test_jaxcd_ledger_refuses_in_one_line(path, command):
    command.refuses("there is no ledger", "ledger", path)
    command.refuses("--epsilon", "ledger", path, NEW)
    command.refuses("--epsilon -1", "ledger", path, NEW, "--epsilon -1")
    assert not path.exists()
    made(path, sizes=SIZES)
    command.refuses("its total is fixed", "ledger", path, NEW, "--epsilon 9")
    content = path.read_bytes()
    for damaged in (content[:-40], content.replace(b"0.125", b"0.025")):
        path.write_bytes(damaged)
        command.refuses("edited or truncated", "ledger", path)


def test_discover_under_a_ledger_on_the_command_line(path, command):
    made(path, budget=Budget(1.0))
    words = ["discover --network cancer --rows 300 --quiet --ledger", path]
    command.shows(words, "--simulated-noise --epsilon 0.75")
    assert LedgerFile(path).remaining_epsilon == 0.25
    content = path.read_bytes()
    command.refuses("ledger", words, "--simulated-noise --epsilon 0.5")
    command.refuses("--ledger", words, "--no-privacy")
    assert path.read_bytes() == content


def test_a_symbolic_link_waits_for_the_same_lock(tmp_path):
    """Two names of one file: the second must not read while the first is between reading and
    writing, or its charge would write over the other's.
    """
    name, link = tmp_path / "people.ledger", tmp_path / "linked.ledger"
    first = LedgerFile(name, data_set=NAME, budget=Budget(1.0))
    link.symlink_to(name)
    second, done = LedgerFile(link), threading.Event()

    def charge():
        with contextlib.suppress(BudgetExhausted):
            second.charge(PureEvent(1.0, "second"))
        done.set()

    with first._lock:
        thread = threading.Thread(target=charge)
        thread.start()
        assert not done.wait(0.3)
    thread.join()
    with pytest.raises(BudgetExhausted):
        first.charge(PureEvent(1.0, "first"))
    assert LedgerFile(name).spent.epsilon == 1.0


@pytest.mark.parametrize("place", ["taken", "let go of"])
def test_an_interrupt_beside_the_lock_does_not_keep_it(tmp_path, monkeypatch, place: str):
    """Ctrl-C where the lock has just been taken, or is about to be let go of: who works on, as in a
    notebook, and still has the exception, would keep all others waiting.
    """
    path = tmp_path / "people.ledger"
    ledger = LedgerFile(path, data_set=NAME, budget=Budget(1.0))
    name = {"taken": "__enter__", "let go of": "__exit__"}[place]
    usual, interrupts = getattr(type(ledger._lock), name), [KeyboardInterrupt]

    def interrupted(lock, *reason):
        if place == "taken":
            usual(lock)
        if interrupts:
            raise interrupts.pop()
        return None if place == "taken" else usual(lock, *reason)

    monkeypatch.setattr(type(ledger._lock), name, interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        ledger.charge(PureEvent(0.25))
    charged = 0.25 * (place == "let go of")  # on the disk by then
    assert LedgerFile(path).spent.epsilon == charged
    ledger.charge(PureEvent(0.5))
    assert LedgerFile(path).spent.epsilon == charged + 0.5
    del stopped


def test_a_file_with_two_names_is_refused(tmp_path):
    name = tmp_path / "people.ledger"
    LedgerFile(name, data_set=NAME, budget=Budget(1.0))
    (tmp_path / "other.ledger").hardlink_to(name)
    with pytest.raises(OptionError, match="hard links"):
        LedgerFile(name)


@pytest.mark.parametrize("opened_first", ["link", "file"])
def test_a_link_to_a_file_that_is_made_is_that_file(opened_first, tmp_path):
    """A link whose target is not there yet: one ledger, whichever name makes it."""
    (tmp_path / "shared").mkdir()
    target, link = tmp_path / "shared" / "people.ledger", tmp_path / "linked.ledger"
    link.symlink_to(target)
    names = (link, target) if opened_first == "link" else (target, link)
    first, second = (LedgerFile(name, data_set=NAME, budget=Budget(1.0)) for name in names)
    assert link.is_symlink() and first.path == second.path == target
    first.charge(PureEvent(1.0, "first"))
    with pytest.raises(BudgetExhausted):
        second.charge(PureEvent(1.0, "second"))


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = LedgerFile("people.ledger", data_set=NAME, budget=Budget(1.0))
    (tmp_path / "else").mkdir()
    copy = tmp_path / "else" / "people.ledger"
    copy.write_bytes((tmp_path / "people.ledger").read_bytes())
    monkeypatch.chdir(copy.parent)
    ledger.charge(PureEvent(1.0, "a count"))
    assert LedgerFile(tmp_path / "people.ledger").remaining_epsilon == 0
    assert LedgerFile(copy).remaining_epsilon == 1


def test_another_file_of_the_same_length_is_noticed(tmp_path):
    one, two = (
        LedgerFile(tmp_path / name, data_set=NAME, budget=Budget(4.0)) for name in ("one", "two")
    )
    one.charge(PureEvent(0.5, "a count"))
    two.charge(PureEvent(3.5, "a count"))
    (tmp_path / "one").write_bytes((tmp_path / "two").read_bytes())
    with pytest.raises(FormatError, match="another file"):
        one.charge(PureEvent(1.0, "more"))


def test_an_older_first_line_and_a_changed_record_are_refused(path):
    ledger = made(path, sizes=(0.25, 0.25))
    older = path.read_bytes()[: path.read_bytes().index(b"\n") + 1]
    for _ in range(3):
        ledger.charge(PureEvent(0.5, "a count"))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[0] = older
    path.write_bytes(b"".join(lines))
    with pytest.raises(FormatError, match="older"):
        LedgerFile(path)
    lines[4] = lines[4].replace(b"a count", b"a cOunt")
    path.write_bytes(b"".join(lines))
    with pytest.raises(FormatError, match="not the last"):
        LedgerFile(path)


def test_a_first_line_without_records_is_refused(path):
    made(path, sizes=(1.0,))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"jaxcd-ledger 1 000000000000 " + b"0" * 64 + b"\n" + lines[1])
    with pytest.raises(FormatError):
        LedgerFile(path)


def test_failures_for_several_rows_a_person_are_refused(path):
    budget = Budget(4.0, 1e-4, max_rows_per_person=3)
    with pytest.raises(OptionError, match="no bound for several rows"):
        LedgerFile(path, data_set=NAME, budget=budget, failure_delta=1e-4)
    assert not path.exists()
    LedgerFile(path, data_set=NAME, budget=budget)
    LedgerFile(
        path.with_suffix(".one"), data_set=NAME, budget=Budget(4.0, 1e-4), failure_delta=1e-4
    )


@pytest.mark.parametrize("protect", [jaxcd.pairwise.Protect.TEST, jaxcd.pairwise.Protect.TRAIN])
def test_a_ledger_over_a_run_that_protects_one_half_is_not_proved(protect, path):
    """The rows of the other half may be read off what such a run releases."""
    x, y = np.random.default_rng(0).normal(size=(2, 400))
    options = {
        "score": jaxcd.pairwise.HSICScore(),
        "bounds": ((-5, 5), (-5, 5)),
        "budget": Budget(1.0),
        "key": jax.random.key(0),
    }
    for ledger in (
        LedgerFile(path, data_set=NAME, budget=Budget(4.0)),
        jaxcd.privacy.Ledger(Budget(4.0)),
    ):
        jaxcd.anm(x, y, protect=jaxcd.pairwise.Protect.BOTH, ledger=ledger, **options)
        assert ledger.guarantee.proven
        found = jaxcd.anm(x, y, protect=protect, ledger=ledger, **options)
        assert found.cost.proven and "half is not protected" in found.cost.reason
        assert not ledger.guarantee.proven and "is not protected" in ledger.guarantee.reason
    assert "is not protected" in LedgerFile(path).guarantee.reason
    assert not jaxcd.verify(LedgerFile(path).certificate()).proven


def test_what_a_terminal_would_obey_is_shown_as_an_escape(path, capsys):
    """Anybody can write a file with right digests, and with commands for the terminal of whoever
    looks at it.
    """
    head, row = parts_of_one(path)
    forged(path, head, {**row, "analysis": "first \x1b[2J\r study", "claims": ["a\x07b"]})
    assert main(["ledger", str(path)]) == 0
    out = capsys.readouterr().out
    assert r"first \x1b[2J\r study" in out and r"a\x07b" in out
    assert all(line.isprintable() for line in out.splitlines())
