"""What every benchmark is made of: cases, methods, a measure, columns, and one main function.

A script declares an :class:`Experiment` and calls its ``main``.  Its ``jobs`` yield, one after the
other, the entries that name a row and a function that measures the rest of it.  ``main`` runs the
jobs that the result file lacks, writes the file after each of them, prints the declared columns,
and draws the picture.  A job that raises an error of jaxcd, or :class:`LeftOut`, is recorded with
its reason.

**Errors.**  Every error of a mean is its standard error over runs, with the divisor n - 1
(``ddof=1``), and is called ``NAME_se``; one run has none.  Result files of earlier versions have
``NAME_sd``, the standard deviation over runs with the divisor n; :meth:`Row.error` reads both.

**Seeds.**  Run r of an experiment has the key ``key(FIRST, r)``, in which FIRST is a number of the
script; what differs within a run is folded in.  ``priv_pc`` and ``priv_fci`` split one key instead,
as they did when their committed results were measured.

**Times.**  Compilation is never part of a run's time: it is a run before, or the first one, which
the median leaves out.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcd
from jaxcd import metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS = Path(__file__).resolve().parent / "results"
SAME = object()


# ---- rows


@dataclass(frozen=True, eq=False)
class Row(Mapping[str, Any]):
    """One line of a result: what names it, and what was measured.  Entries are items and also
    attributes.
    """

    entries: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.entries:
            raise AttributeError(name)
        return self.entries[name]

    def error(self, name: str) -> float | None:
        """The standard error of a mean, also from the ``_sd`` of earlier files; None for one
        run.
        """
        if f"{name}_sd" not in self:
            return self.get(f"{name}_se")
        n = self.get("n_runs") or self["n_data"] * self["n_draws"]
        return None if n < 2 else self[f"{name}_sd"] / math.sqrt(n - 1)

    def like(self, **entries: Any) -> bool:
        """Whether it has these entries."""
        return all(self.get(name) == value for name, value in entries.items())


def mean(values: Iterable[float]) -> float:
    """The mean as a plain number."""
    return float(statistics.fmean(values))


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean: the standard deviation with divisor n - 1, over the square root of n; None for
    one value.
    """
    n = len(values)
    return None if n < 2 else float(np.std(values, ddof=1) / math.sqrt(n))


def means(values: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    """``name`` and ``name_se`` of the values over runs."""
    found: dict[str, float | None] = {}
    for name, several in values.items():
        found |= {name: mean(several), f"{name}_se": standard_error(several)}
    return found


def scores(
    graphs: Sequence[jaxcd.MixedGraph],
    truths: Sequence[jaxcd.MixedGraph] | jaxcd.MixedGraph,
    *names: str,
) -> dict[str, list[float]]:
    """Scores of ``jaxcd.metrics`` by name, one value a graph; arc and skeleton F1 by default."""
    several = [truths] * len(graphs) if isinstance(truths, jaxcd.MixedGraph) else truths
    return {
        name: [float(getattr(metrics, name)(*pair)) for pair in zip(graphs, several, strict=True)]
        for name in names or ("arc_f1", "skeleton_f1")
    }


def finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with None for numbers that JSON does not have."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}


def key(first: int, run: int, *parts: int) -> jax.Array:
    """The key of a run, and of a part of it."""
    found = jax.random.key(first + run)
    for part in parts:
        found = jax.random.fold_in(found, part)
    return found


# ---- times


class Clock:
    """The time of a ``with`` block: ``seconds``, and ``processor_seconds`` summed over threads,
    which is what it needs where other programs share the machine.
    """

    def __enter__(self) -> Clock:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start[0]
        self.processor_seconds = time.process_time() - self._start[1]


@dataclass(frozen=True)
class Timing:
    """Seconds.  first: the first run, with compilation.  seconds: the later ones.

    processor_seconds: of the later ones, summed over threads: what a run needs where other programs
    share the machine.
    """

    first: float
    seconds: tuple[float, ...]
    processor_seconds: tuple[float, ...]

    @property
    def minimum(self) -> float:
        """The least disturbed run."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """What a user may expect."""
        return statistics.median(self.seconds)

    @property
    def compilation(self) -> float:
        """First run minus second."""
        return max(self.first - self.seconds[0], 0.0)

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        return {
            "first": self.first,
            "compilation": self.compilation,
            "minimum": self.minimum,
            "median": self.median,
            "runs": self.seconds,
            "processor_runs": self.processor_seconds,
        }


def timed(function: Callable[[int], Any], n_runs: int) -> tuple[Timing, list[Any]]:
    """Calls ``function`` on 0, ..., n_runs; its results (host values, so nothing is pending)
    without the first.
    """
    seconds, processor_seconds, results = [], [], []
    for run in range(n_runs + 1):
        start, processor_start = time.perf_counter(), time.process_time()
        results.append(function(run))
        seconds.append(time.perf_counter() - start)
        processor_seconds.append(time.process_time() - processor_start)
    return Timing(seconds[0], tuple(seconds[1:]), tuple(processor_seconds[1:])), results[1:]


def best(function: Callable[[], Any], *, n_runs: int = 3, first: bool = True) -> float:
    """The shortest of ``n_runs`` runs in seconds, after one that compiles where ``first``;
    ``function`` returns host values.
    """
    if first:
        function()
    seconds = []
    for _ in range(n_runs):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


class Compilations:
    """Counts XLA compilations from now on.  One instance a process is enough: listeners stay."""

    def __init__(self) -> None:
        self.n = 0
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **_: str | int) -> None:
        self.n += event.endswith("backend_compile_duration")


# ---- result files


def environment() -> dict[str, Any]:
    """Device, versions, commit and date."""
    device = jax.devices()[0]
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "device": f"{device.platform}: {device.device_kind}",
        "processor": _processor(),
        "n_cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "load_average": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "scipy")},
    }


def _commit() -> str | None:
    folder = Path(__file__).resolve().parent
    try:
        commit, changed = (
            subprocess.run(
                ["git", *words], cwd=folder, capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "../jaxcd"])
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + (" with changes" if changed else "")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


class Record:
    """A result file that grows row by row: a run that is stopped keeps its rows, and a later one
    can go on from there.

    path: the JSON file.  key: the entries that tell a row from the others.  settings: what all rows
    must have in common. resume: whether rows of an existing file are kept; else they are lost with
    the first new one.

    Every row says by a number, ``environment``, under which of the file's ``environments`` it was
    measured.  What was left out, and why, is kept beside the rows until it is run.

    Exits where a file that is taken up has other settings, or is none of these.
    """

    def __init__(
        self, path: Path, *, key: Sequence[str], settings: Mapping[str, Any], resume: bool
    ) -> None:
        self.path = path
        self.key = tuple(key)
        self._content: dict[str, Any] = {
            "environments": [],
            "settings": dict(settings),
            "results": [],
            "left_out": [],
        }
        self._here: int | None = None
        if resume and path.is_file():
            self.take(path)

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return self._content["results"]

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """What was not run: the key's entries, and ``reason``."""
        return self._content["left_out"]

    def take(self, path: Path) -> None:
        """Takes over the rows of another file of the same settings; where both have a row, the
        other file's.
        """
        try:
            content = json.loads(path.read_text())
            results = content["results"] if "results" in content else content["rows"]
            environments = (
                content["environments"] if "environments" in content else [content["environment"]]
            )
            keys = [self._of(row) for row in (*results, *content.get("left_out", ()))]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            sys.exit(
                f"{path}: no result file of this benchmark; give another --out, or leave --resume "
                "out"
            )
        if content.get("settings", self._content["settings"]) != self._content["settings"]:
            sys.exit(
                f"{path}: its settings are {content['settings']}, not "
                f"{self._content['settings']}; give another --out"
            )
        first = len(self._content["environments"])
        self._content["environments"] += environments
        for row in results:
            self._put(Row({**row, "environment": first + row.get("environment", 0)}))
        ran = {self._of(row) for row in self.rows}
        for entry, key in zip(content.get("left_out", ()), keys[len(results) :], strict=True):
            if key not in ran and key not in map(self._of, self.left_out):
                self.left_out.append(entry)

    def find(self, entries: Mapping[str, Any]) -> Row | None:
        """The row of these key entries, if it is there."""
        wanted = self._of(entries)
        return next((row for row in self.rows if self._of(row) == wanted), None)

    def add(self, row: Mapping[str, Any]) -> Row:
        """Adds a row, in the place of one with the same key, and writes the file."""
        if self._here is None:
            self._here = len(self._content["environments"])
            self._content["environments"].append(environment())
        added = Row({**finite(row), "environment": self._here})
        self._put(added)
        self._content["left_out"] = [
            entry for entry in self.left_out if self._of(entry) != self._of(row)
        ]
        self.write()
        return added

    def leave_out(self, entries: Mapping[str, Any], reason: str) -> None:
        """Records that a row was not run, and writes the file."""
        self._content["left_out"] = [
            entry for entry in self.left_out if self._of(entry) != self._of(entries)
        ]
        named = {name: entries[name] for name in self.key if name in entries}
        self.left_out.append({**named, "reason": reason})
        self.write()

    def write(self, **more: Any) -> None:
        """Writes the file, each row on a line; ``more`` are further entries, such as a summary of
        the rows.
        """
        self._content |= more
        parts = []
        for name, value in self._content.items():
            if isinstance(value, list) and value:
                lines = ",\n".join("  " + _json(entry) for entry in value)
                parts.append(f" {json.dumps(name)}: [\n{lines}\n ]")
            else:
                parts.append(f" {json.dumps(name)}: {_json(value)}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Beside the file first: a run that is stopped while it writes must not take the rows along.
        beside = self.path.with_name(self.path.name + ".part")
        beside.write_text("{\n" + ",\n".join(parts) + "\n}\n")
        beside.replace(self.path)

    def _of(self, entries: Mapping[str, Any]) -> tuple[Any, ...]:
        values = (entries.get(name) for name in self.key)
        return tuple(tuple(value) if isinstance(value, list) else value for value in values)

    def _put(self, row: Row) -> None:
        for place, known in enumerate(self.rows):
            if self._of(known) == self._of(row):
                self.rows[place] = row
                return
        self.rows.append(row)


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, default=dict)


def read_rows(path: Path, name: str = "results") -> list[Row]:
    """The rows of a result file, also of one written by an earlier version."""
    content = json.loads(path.read_text())
    return [Row(row) for row in content.get(name, content.get("rows", ()))]


# ---- options


def positive(text: str) -> float:
    """An argparse type: a positive finite number."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def count(text: str) -> int:
    """An argparse type: a positive whole number."""
    value = int(text)
    if not value >= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return value


@dataclass(frozen=True)
class Option:
    """An option of a script.  full: its value if it is not given.  quick: with ``--quick``, where
    that differs.

    several: whether it takes more than one value; numbers are sorted.  needed: why it cannot be
    missing.
    """

    name: str
    help: str
    full: Any = None
    quick: Any = SAME
    kind: Callable[[str], Any] = str
    several: bool = False
    choices: Sequence[Any] | None = None
    flag: bool = False
    needed: str | None = None

    @property
    def place(self) -> str:
        """The name in the namespace."""
        return self.name.removeprefix("--").replace("-", "_")

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Adds it to a parser."""
        if self.flag:
            parser.add_argument(self.name, action="store_true", help=self.help)
            return
        defaults = [f"default: {_words(self.full)}"] if self.full is not None else []
        if self.quick is not SAME and self.quick is not None:
            defaults.append(f"{_words(self.quick)} with --quick")
        said = f"{self.help} ({'; '.join(defaults)})" if defaults else self.help
        said = said.replace("%", "%%")  # argparse fills in what a percent sign names
        nargs = "+" if self.several else None
        parser.add_argument(self.name, type=self.kind, nargs=nargs, choices=self.choices, help=said)

    def value(self, given: Any, quick: bool) -> Any:
        """What is chosen."""
        if self.flag:
            return given
        if given is None:
            given = self.full if self.quick is SAME or not quick else self.quick
        if self.several and self.kind in (count, positive, int) and given is not None:
            return sorted(set(given))
        return given


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def kept(*options: str, **constants: Any) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """The settings of an experiment: chosen options by name, and constants."""
    return lambda chosen: {**{name: getattr(chosen, name) for name in options}, **constants}


def data_option(holds: str, needed: str | None = None) -> Option:
    """``--data``, else the environment variable JAXCD_DATA."""
    return Option("--data", f"folder with {holds}, else JAXCD_DATA", kind=Path, needed=needed)


def numbers(name: str, help: str, full: Any = None, quick: Any = SAME) -> Option:
    """Several positive numbers."""
    return Option(name, help, full, quick, kind=positive, several=True)


def counts(name: str, help: str, full: Any = None, quick: Any = SAME) -> Option:
    """Several positive whole numbers."""
    return Option(name, help, full, quick, kind=count, several=True)


def one_count(name: str, help: str, full: Any = None, quick: Any = SAME) -> Option:
    """A positive whole number."""
    return Option(name, help, full, quick, kind=count)


def names(name: str, help: str, choices: Any = None, full: Any = None, quick: Any = SAME) -> Option:
    """Several names."""
    return Option(name, help, full, quick, choices=choices, several=True)


def max_level(quick: int | None = None) -> Option:
    """``--max-level``: the largest conditioning set of a search."""
    return Option(
        "--max-level",
        "largest conditioning set of every method",
        quick=quick,
        kind=int,
        choices=range(9),
    )


# ---- tables and pictures


@dataclass(frozen=True)
class Column:
    """A column of a table.  value: the name of an entry, or a function of the row; the heading
    without it.

    form: as in ``format``; numbers are right-aligned, and what has no form is left-aligned.  error:
    whether the standard error follows in brackets.  none: what stands for None.
    """

    head: str
    value: str | Callable[[Row], Any] = ""
    form: str = ""
    error: bool = False
    none: str = ""

    def cell(self, row: Row) -> str:
        """The text of a row."""
        name = self.value or self.head
        value = row.get(name) if isinstance(name, str) else name(row)
        if value is None:
            return self.none
        error = row.error(name) if self.error and isinstance(name, str) else None
        return format(value, self.form) + (
            "" if error is None else f" ({format(error, self.form)})"
        )


def columns_of(*parts: str | Column) -> tuple[Column, ...]:
    """Columns, several in a text: ``head=entry:form``, separated by semicolons.

    Without an entry it has the name of the head.  A plus after the entry: with its standard error.
    What follows a bar stands for None.
    """
    found: list[Column] = []
    for part in parts:
        if isinstance(part, Column):
            found.append(part)
            continue
        for text in part.split("; "):
            shown, _, none = text.partition("|")
            named, _, form = shown.partition(":")
            head, _, entry = named.partition("=")
            found.append(Column(head, (entry or head).rstrip("+"), form, entry[-1:] == "+", none))
    return tuple(found)


def table_of(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[Column],
    title: str | None = None,
    caption: str | None = None,
) -> Table:
    """Rows for the screen."""
    table = Table(title=title, caption=caption)
    for column in columns:
        table.add_column(column.head, justify="right" if column.form else "left", no_wrap=True)
    for row in rows:
        each = row if isinstance(row, Row) else Row(row)
        table.add_row(*(column.cell(each) for column in columns))
    return table


def panels(
    n_lines: int, n_columns: int, *, width: float, height: float, **shared: Any
) -> tuple[Figure, Any]:
    """A figure of panels, each of so many inches, and its axes as an array (lines, columns)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_lines, n_columns = max(n_lines, 1), max(n_columns, 1)
    size = (width * n_columns + 0.4, height * n_lines + 1.0)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(n_lines, n_columns, squeeze=False, **shared)


def save_picture(
    figure: Figure, path: Path, *, legend: int | None = None, fontsize: float = 8
) -> None:
    """Writes a PNG; ``legend``: the columns of one legend below, of what the first panel shows.

    It has 256 colours: a third of the size of one with all colours, and nobody sees the difference
    in lines and text.
    """
    from PIL import Image  # matplotlib needs it, too

    if legend is not None:
        shown = figure.axes[0].get_legend_handles_labels()
        figure.legend(*shown, loc="outside lower center", ncols=legend, fontsize=fontsize)
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120, facecolor="white")
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"wrote {path}")


# ---- experiments


class LeftOut(Exception):
    """A row that is not measured; the message is the reason."""


#: The values of the key, in its order; a function that measures the further entries; its arguments.
#: A function may also give several rows, with those entries of the key whose values are not there.
Job = tuple[Any, ...]


@dataclass(frozen=True)
class Experiment:
    """A benchmark.  name: of its result file.  key: the entries that tell its rows apart.  jobs:
    from the chosen options and the file to what is to be measured.

    columns, title: of its tables; a title that is a function of the row makes a table for each of
    its values, printed when its rows are done.  check: words of what is wrong with the options.
    known: whether a row of the file need not be measured again.  finish: further entries of the
    file, and what it prints about them.  draw: the picture, into a path that ends in .png.
    """

    name: str
    about: str
    key: tuple[str, ...]
    jobs: Callable[[argparse.Namespace, Record], Iterable[Job]]
    columns: Sequence[Column] = ()
    title: str | Callable[[Row], str] = ""
    options: Sequence[Option] = ()
    settings: Callable[[argparse.Namespace], Mapping[str, Any]] = lambda chosen: {}
    check: Callable[[argparse.Namespace], str | None] = lambda chosen: None
    known: Callable[[Row, argparse.Namespace], bool] = lambda row, chosen: True
    finish: Callable[[Record, argparse.Namespace, Console], Mapping[str, Any]] = (
        lambda record, chosen, console: {}
    )
    draw: Callable[[Sequence[Row], Path], object] | None = None
    width: int = 150

    def parse(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """The options given, and for the others their defaults; with ``--quick`` the default file
        is NAME_quick.json.
        """
        parser = argparse.ArgumentParser(description=self.about.splitlines()[0])
        out = RESULTS / f"{self.name}.json"
        parser.add_argument("--out", type=Path, default=out, help=f"JSON file (default: {out})")
        size = parser.add_mutually_exclusive_group()
        size.add_argument("--quick", action="store_true", help="few and small: a minute or two")
        size.add_argument("--full", action="store_true", help="everything: the committed results")
        parser.add_argument(
            "--resume", action="store_true", help="keep the file's rows, and run what it lacks"
        )
        for option in self.options:
            option.add_to(parser)
        chosen = parser.parse_args(arguments)
        for option in self.options:
            value = option.value(getattr(chosen, option.place), chosen.quick)
            if option.name == "--data" and value is None and "JAXCD_DATA" in os.environ:
                value = Path(os.environ["JAXCD_DATA"])
            if option.needed and value is None:
                parser.error(option.needed)
            setattr(chosen, option.place, value)
        if (wrong := self.check(chosen)) is not None:
            parser.error(wrong)
        if chosen.quick and chosen.out == out:
            chosen.out = out.with_name(f"{self.name}_quick.json")
        return chosen

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Runs the benchmark: measures, prints, writes and draws."""
        chosen = self.parse(arguments)
        console = Console(width=self.width)
        settings = self.settings(chosen)
        record = Record(chosen.out, key=self.key, settings=settings, resume=chosen.resume)
        last = None
        for row in measured(
            self.jobs(chosen, record), record, known=lambda row: self.known(row, chosen)
        ):
            if last is not None and self._title(last) != self._title(row):
                self._show(record, last, console)
            last = row
        if last is not None:
            self._show(record, last, console)
        record.write(**self.finish(record, chosen, console))
        print(f"wrote {chosen.out}")
        if self.draw is not None and record.rows:
            self.draw(record.rows, chosen.out.with_suffix(".png"))

    def _title(self, row: Row) -> str:
        return self.title if isinstance(self.title, str) else self.title(row)

    def _show(self, record: Record, row: Row, console: Console) -> None:
        title = self._title(row)
        if self.columns:
            rows = [other for other in record.rows if self._title(other) == title]
            console.print(table_of(rows, self.columns, title or None))


def measured(
    jobs: Iterable[Job],
    record: Record,
    *,
    known: Callable[[Row], bool] = lambda row: True,
    say: Callable[[str], None] = print,
) -> Iterator[Row]:
    """Runs the jobs that the record lacks; yields every row, the known ones too."""
    for values, measure, *arguments in jobs:
        entries = dict(zip(record.key, values, strict=False))
        found = [row for row in record.rows if row.like(**entries) and known(row)]
        if not found:
            try:
                measures = measure(*arguments)
            except (LeftOut, jaxcd.errors.JaxcdError) as error:
                kind = "" if isinstance(error, LeftOut) else f"{type(error).__name__}: "
                record.leave_out(entries, f"{kind}{error}")
                say(f"left out: {', '.join(map(str, entries.values()))}: {kind}{error}")
                continue
            for each in [measures] if isinstance(measures, Mapping) else measures:
                found.append(record.add({**entries, **each}))
        yield from found
