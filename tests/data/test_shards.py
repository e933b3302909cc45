"""Rows over several devices and several processes: the same bits as on one."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
CHECKS = re.findall(r"@check\ndef (\w+)", (HERE / "on_devices.py").read_text())


@pytest.fixture(scope="module")
def eight_devices() -> dict[str, str]:
    """What went wrong in each check of ``on_devices.py``."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(HERE / "on_devices.py")],
        env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CHECKS)
def test_on_1_2_3_and_8_devices(eight_devices: dict[str, str], name: str) -> None:
    assert eight_devices[name] == "", eight_devices[name]
