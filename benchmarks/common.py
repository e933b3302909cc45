"""What the benchmarks share: networks, the environment that goes into every result, timing, files."""

from __future__ import annotations

import argparse
import json
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
from typing import Any

import jax

from jaxcd import BayesianNetwork, networks

BUILT_IN = ("cancer", "earthquake", "survey", "asia")
FROM_FILE = ("sachs", "child", "alarm")
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
    options.add_argument("--data", type=Path, default=os.environ.get("JAXCD_DATA"), help="folder with networks/*.bif")
    options.add_argument("--networks", nargs="+", choices=[*BUILT_IN, *FROM_FILE], help="default: all that are there")
    options.add_argument("--rows", type=count, help="records (default: 100000; 10000 with --quick)")
    options.add_argument("--runs", type=count, help="runs of each row")
    return options


def plain_parser(description: str, *, out: Path) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    options.add_argument("--quick", action="store_true", help="small networks, few rows, few runs: under a minute")
    options.add_argument("--out", type=Path, default=out, help="JSON file to write")
    return options


def add_sizes(options: argparse.ArgumentParser) -> None:
    """``--sizes``: several numbers of records."""
    options.add_argument("--sizes", type=count, nargs="+", help="records")


def add_epsilon(options: argparse.ArgumentParser) -> None:
    """``--epsilon``: several prices of one answer."""
    options.add_argument("--epsilon", type=positive, nargs="+", help="of one noisy answer")


def add_levels(options: argparse.ArgumentParser) -> None:
    """``--levels``: several numbers of conditioning columns."""
    options.add_argument("--levels", type=int, choices=range(0, 9), nargs="+", help="conditioning columns")


def add_max_level(options: argparse.ArgumentParser) -> None:
    """``--max-level``: the largest conditioning set of a search."""
    options.add_argument("--max-level", type=int, choices=range(0, 9), help="largest conditioning set of every method")


def parse(
    options: argparse.ArgumentParser, arguments: Sequence[str] | None, *, full: Mapping[str, Any], quick: Mapping[str, Any]
) -> argparse.Namespace:
    """The options given, and for the others the values of ``quick`` with ``--quick``, else of ``full``.

    Several values of one option are sorted, each once.  With ``--quick`` the default file is NAME_quick.json.
    """
    chosen = options.parse_args(arguments)
    for name, value in (quick if chosen.quick else full).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    for name in ("sizes", "epsilon", "levels"):
        if getattr(chosen, name, None) is not None:
            setattr(chosen, name, sorted(set(getattr(chosen, name))))
    if chosen.quick and chosen.out == options.get_default("out"):
        chosen.out = chosen.out.with_name(f"{chosen.out.stem}_quick{chosen.out.suffix}")
    return chosen


def load_networks(names: Sequence[str] | None, data: Path | None) -> dict[str, BayesianNetwork]:
    """The named networks, or all: the built-in ones, and those whose file is there (the screen names the others)."""
    loaded = {}
    for name in names or [*BUILT_IN, *FROM_FILE]:
        if name in BUILT_IN:
            loaded[name] = networks.load(name)
            continue
        path = None if data is None else Path(data) / "networks" / f"{name}.bif"
        if path is not None and path.is_file():
            loaded[name] = networks.read_bif(path)
        elif names:
            sys.exit(f"{name}: no file networks/{name}.bif in the folder {data}; give --data FOLDER or set JAXCD_DATA")
        else:
            print(f"{name} is left out: no networks/{name}.bif; give --data FOLDER or set JAXCD_DATA", file=sys.stderr)
    return loaded


@dataclass(frozen=True)
class Timing:
    """Seconds.  first: the first run, with compilation.  seconds: the later ones.

    processor_seconds: of the later ones, summed over threads: what a run needs where other programs share the machine.
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
    """Calls ``function`` on 0, ..., n_runs; its results (host values, so nothing is pending) without the first."""
    seconds, processor_seconds, results = [], [], []
    for run in range(n_runs + 1):
        start, processor_start = time.perf_counter(), time.process_time()
        results.append(function(run))
        seconds.append(time.perf_counter() - start)
        processor_seconds.append(time.process_time() - processor_start)
    return Timing(seconds[0], tuple(seconds[1:]), tuple(processor_seconds[1:])), results[1:]


def best(function: Callable[[], Any], *, n_runs: int = 3, first: bool = True) -> float:
    """The shortest of ``n_runs`` runs in seconds, after one that compiles where ``first``; ``function`` returns host values."""
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
        "n_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "scipy")},
    }


def _commit() -> str | None:
    folder = Path(__file__).resolve().parent
    try:
        commit, changed = (
            subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
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
