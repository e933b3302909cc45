"""What the benchmarks share: networks, the environment that goes into every result, timing,
files.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

import jaxcd
from jaxcd import networks
from jaxcd.data import BayesianNetwork
from jaxcd.data.structural import linear_gaussian_sem
from jaxcd.graphs import dag_to_cpdag, random_dag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: a data set and the true CPDAG, for a seed
Source = Callable[[int], tuple[jaxcd.Dataset, jaxcd.MixedGraph]]

BUILT_IN = ("cancer", "earthquake", "survey", "asia")
FROM_FILE = ("sachs", "child", "alarm")
BIF_ENDINGS = (".bif", ".bif.gz")
RESULTS = Path(__file__).resolve().parent / "results"


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


def parser(description: str, *, out: Path) -> argparse.ArgumentParser:
    """The options that benchmarks on networks have."""
    options = plain_parser(description, out=out)
    options.add_argument(
        "--data", type=Path, default=os.environ.get("JAXCD_DATA"), help="folder with networks/*.bif"
    )
    options.add_argument(
        "--networks", nargs="+", choices=[*BUILT_IN, *FROM_FILE], help="default: all that are there"
    )
    options.add_argument("--rows", type=count, help="records (default: 100000; 10000 with --quick)")
    options.add_argument("--runs", type=count, help="runs of each row")
    return options


def plain_parser(description: str, *, out: Path) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    options.add_argument(
        "--quick", action="store_true", help="small networks, few rows, few runs: under a minute"
    )
    options.add_argument("--out", type=Path, default=out, help="JSON file to write")
    return options


def add_sizes(options: argparse.ArgumentParser) -> None:
    """``--sizes``: several numbers of records."""
    options.add_argument("--sizes", type=count, nargs="+", help="records")


def add_epsilon(options: argparse.ArgumentParser) -> None:
    """``--epsilon``: several prices of one answer."""
    options.add_argument("--epsilon", type=positive, nargs="+", help="of one noisy answer")


def add_resume(options: argparse.ArgumentParser) -> None:
    """``--resume``: go on with a result file."""
    options.add_argument(
        "--resume",
        action="store_true",
        help="keep the rows of the file, and run those that it lacks",
    )


def add_levels(options: argparse.ArgumentParser) -> None:
    """``--levels``: several numbers of conditioning columns."""
    options.add_argument(
        "--levels", type=int, choices=range(0, 9), nargs="+", help="conditioning columns"
    )


def add_max_level(options: argparse.ArgumentParser) -> None:
    """``--max-level``: the largest conditioning set of a search."""
    options.add_argument(
        "--max-level",
        type=int,
        choices=range(0, 9),
        help="largest conditioning set of every method",
    )


def parse(
    options: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    *,
    full: Mapping[str, Any],
    quick: Mapping[str, Any],
) -> argparse.Namespace:
    """The options given, and for the others the values of ``quick`` with ``--quick``, else of
    ``full``.

    Several values of one option are sorted, each once.  With ``--quick`` the default file is
    NAME_quick.json.
    """
    chosen = options.parse_args(arguments)
    for name, value in (quick if chosen.quick else full).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    for name in ("sizes", "epsilon", "epsilons", "per_round", "levels"):
        if getattr(chosen, name, None) is not None:
            setattr(chosen, name, sorted(set(getattr(chosen, name))))
    if chosen.quick and chosen.out == options.get_default("out"):
        chosen.out = chosen.out.with_name(f"{chosen.out.stem}_quick{chosen.out.suffix}")
    return chosen


def load_networks(names: Sequence[str] | None, data: Path | None) -> dict[str, BayesianNetwork]:
    """The named networks, or all: the built-in ones, and those whose file is there (the screen
    names the others).

    A name that ends in .bif or .bif.gz is a file anywhere; its network goes by the file's name
    without the ending.
    """
    loaded = {}
    for name in names or [*BUILT_IN, *FROM_FILE]:
        if name.endswith(BIF_ENDINGS):
            if not Path(name).is_file():
                sys.exit(
                    f"{name}: no such file; give the path of a BIF file, or one of "
                    f"{', '.join((*BUILT_IN, *FROM_FILE))}"
                )
            loaded[Path(name).name.split(".bif")[0]] = networks.read_bif(name)
            continue
        if name in BUILT_IN:
            loaded[name] = networks.load(name)
            continue
        path = None if data is None else Path(data) / "networks" / f"{name}.bif"
        if path is not None and path.is_file():
            loaded[name] = networks.read_bif(path)
        elif names:
            sys.exit(
                f"{name}: no file networks/{name}.bif in the folder {data}; give --data FOLDER or "
                "set JAXCD_DATA"
            )
        else:
            print(
                f"{name} is left out: no networks/{name}.bif; give --data FOLDER or set JAXCD_DATA",
                file=sys.stderr,
            )
    return loaded


def network_source(network: BayesianNetwork, n: int) -> Source:
    """Samples of n rows from a network."""
    return lambda seed: (network.sample(n, key=jax.random.key(seed)), network.cpdag())


def gaussian_source(n_variables: int, n: int) -> Source:
    """Samples of n rows, each from its own random linear Gaussian model: expected degree 2,
    |weights| in [0.5, 1.5].
    """

    def source(seed: int) -> tuple[jaxcd.Dataset, jaxcd.MixedGraph]:
        dag = random_dag(n_variables, expected_degree=2.0, seed=seed)
        named = {node: f"x{node}" for node in dag}
        dag = type(dag)([(named[a], named[b]) for a, b in dag.edges]) if dag.edges else dag
        for name in named.values():
            dag.add_node(name)
        model_key, data_key = jax.random.split(jax.random.key(seed))
        data = linear_gaussian_sem(dag, key=model_key).sample(n, key=data_key)
        return data, dag_to_cpdag(jaxcd.MixedGraph.from_dag(dag))

    return source


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


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes a result file, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    print(f"wrote {path}")


def save_picture(figure: Figure, path: Path) -> None:
    """Writes a PNG of 256 colours: a third of the size of one with all colours, and nobody sees the
    difference in lines and text.
    """
    from PIL import Image  # matplotlib needs it, too

    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120, facecolor="white")
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"wrote {path}")


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
        self._key = tuple(key)
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
    def rows(self) -> list[dict[str, Any]]:
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
            results = content["results"]
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
            self._put({**row, "environment": first + row.get("environment", 0)})
        ran = {self._of(row) for row in self.rows}
        for entry, key in zip(content.get("left_out", ()), keys[len(results) :], strict=True):
            if key not in ran and key not in map(self._of, self.left_out):
                self.left_out.append(entry)

    def find(self, entries: Mapping[str, Any]) -> dict[str, Any] | None:
        """The row of these key entries, if it is there."""
        wanted = self._of(entries)
        return next((row for row in self.rows if self._of(row) == wanted), None)

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds a row, in the place of one with the same key, and writes the file."""
        if self._here is None:
            self._here = len(self._content["environments"])
            self._content["environments"].append(environment())
        self._put({**finite(row), "environment": self._here})
        self._content["left_out"] = [
            entry for entry in self.left_out if self._of(entry) != self._of(row)
        ]
        self.write()

    def leave_out(self, entries: Mapping[str, Any], reason: str) -> None:
        """Records that a row was not run, and writes the file."""
        self._content["left_out"] = [
            entry for entry in self.left_out if self._of(entry) != self._of(entries)
        ]
        self.left_out.append({**{name: entries[name] for name in self._key}, "reason": reason})
        self.write()

    def write(self, **more: Any) -> None:
        """Writes the file, each row on a line; ``more`` are further entries, such as a summary of
        the rows.
        """
        self._content |= more
        parts = []
        for name, value in self._content.items():
            if isinstance(value, list) and value:
                lines = ",\n".join("  " + json.dumps(entry, allow_nan=False) for entry in value)
                parts.append(f" {json.dumps(name)}: [\n{lines}\n ]")
            else:
                parts.append(f" {json.dumps(name)}: {json.dumps(value, allow_nan=False)}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Beside the file first: a run that is stopped while it writes must not take the rows along.
        beside = self.path.with_name(self.path.name + ".part")
        beside.write_text("{\n" + ",\n".join(parts) + "\n}\n")
        beside.replace(self.path)

    def _of(self, entries: Mapping[str, Any]) -> tuple[Any, ...]:
        values = (entries[name] for name in self._key)
        return tuple(tuple(value) if isinstance(value, list) else value for value in values)

    def _put(self, row: dict[str, Any]) -> None:
        for place, known in enumerate(self.rows):
            if self._of(known) == self._of(row):
                self.rows[place] = row
                return
        self.rows.append(row)


def finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with None for numbers that JSON does not have."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
