"""What Spark says goes to a file, what we say to the terminal."""

from __future__ import annotations

import subprocess
import sys

_COMMAND = """
import subprocess, sys
from mirror_assets.cli.spark_log import spark_log

with spark_log() as log:
    subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write('from a child')"], check=True)
    print("ours", file=sys.stderr)
    print(log.read_text())
    log.unlink()
print("after", file=sys.stderr)
"""


def test_a_childs_errors_go_to_the_file_and_ours_to_the_terminal() -> None:
    ran = subprocess.run([sys.executable, "-c", _COMMAND], capture_output=True, text=True, check=True)
    assert ran.stdout == "from a child\n"
    assert ran.stderr == "ours\nafter\n"
