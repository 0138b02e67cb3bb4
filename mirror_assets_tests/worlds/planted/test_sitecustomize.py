"""The clock of a process that `make planted` starts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

_PROGRAM = """
import datetime, os, time
monotonic, file = time.monotonic(), os.environ["CLOCK_FILE"]
print(time.time(), datetime.datetime.now(datetime.timezone.utc).timestamp(), flush=True)
with open(file + ".new", "w") as new:
    new.write("172800")
os.replace(file + ".new", file)
began = time.time()
while time.time() - began < 1000 and time.monotonic() - monotonic < 20:
    time.sleep(0.1)
print(time.time(), time.monotonic() - monotonic)
"""


def test_the_clock_follows_its_file(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    file.write_text("86400", encoding="utf-8")
    environment = os.environ | {"CLOCK_FILE": str(file), "PYTHONPATH": str(Path(__file__).parent / "clock")}
    command, now = [sys.executable, "-c", _PROGRAM], time.time()
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, second = ([float(word) for word in line.split()] for line in ran.stdout.splitlines())
    assert [round((seconds - now) / 86_400) for seconds in (*first, second[0])] == [1, 1, 2]
    assert second[1] < 20, "the monotonic clock does not jump"
