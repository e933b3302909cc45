"""A measurement in a process of its own, whose peak memory is its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

#: The shell stands between, because a process's peak begins with the memory of the one that starts
#: it; what follows the command keeps the shell from becoming the process itself.
_SHELL = ("sh", "-c", '"$@"; exit $?', "sh")


def alone(module: str, *words: object) -> dict[str, Any]:
    """What ``python -m MODULE --one WORDS`` prints last, as JSON."""
    command = [*_SHELL, sys.executable, "-W", "ignore", "-m", module, "--one", *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
