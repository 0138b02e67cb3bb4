"""Runs one command, and turns every error into one message and an exit code.

Spark's own messages go to a file, which is named when a command fails.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from mirror_assets.cli.commands import app
from mirror_assets.cli.json_log import is_json, print_line, print_unexpected
from mirror_assets.cli.options import Exit, exit_code
from mirror_assets.errors import MirrorError
from mirror_assets.process import search_rarely


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of this command line, by default the process's; return its exit code.

    Raises SystemExit after `--help` and for a wrong command line, and when the reader of the output has ended.
    """
    search_rarely()
    with spark_log() as log:
        code = _run(arguments)
        log.keep = code is Exit.FAILED
    return int(code)


def _answer(arguments: Sequence[str] | None) -> object:
    """Run the command; raise the error that names the extra if it needs Spark, and Spark is missing."""
    try:
        return app.main(arguments, "mirror-assets", standalone_mode=False)
    except ModuleNotFoundError:
        import mirror_assets.encode  # noqa: F401 raises it

        raise


def _run(arguments: Sequence[str] | None) -> Exit:
    try:
        answer = _answer(arguments)
    except click.ClickException as error:
        if is_json():
            print_line("error", error.format_message())
        else:
            error.show()
        raise SystemExit(error.exit_code) from None
    except click.Abort:
        raise SystemExit(130) from None  # Ctrl-C, as shells count it
    except MirrorError as error:
        if is_json():
            print_line("error", str(error), {"code": error.code.value})
        else:
            click.echo(f"error: {error}", err=True)
        return exit_code([error.family])
    except Exception as error:
        if not is_json():
            raise
        print_unexpected(error)
        return Exit.FAILED
    if isinstance(answer, Exit):
        return answer
    raise SystemExit(answer)  # click itself answered: --help


@dataclass
class SparkLog:
    """The file that receives what child processes (Spark's JVM) write to the error stream, and whether to keep it."""

    path: Path | None
    keep: bool = True


@contextmanager
def spark_log() -> Iterator[SparkLog]:
    """Redirect the error stream of child processes to a file; this process's own messages still reach the terminal.

    The file is named and kept, unless it is empty or the block sets `keep` to false before it ends.
    """
    if not _can_redirect():
        yield SparkLog(None)
        return
    handle, name = tempfile.mkstemp(prefix="mirror-assets-spark-", suffix=".log")
    sys.stderr.flush()
    terminal = os.dup(2)
    os.dup2(handle, 2)
    os.close(handle)
    path, before = Path(name), sys.stderr
    log = SparkLog(path)
    sys.stderr = os.fdopen(terminal, "w", buffering=1, encoding="utf-8", errors="replace")
    try:
        yield log
    finally:
        if not (log.keep and path.stat().st_size):
            path.unlink()
        elif is_json():
            print_line("info", f"messages of Spark and other libraries are in {path}")
        else:
            click.echo(f"messages of Spark and other libraries are in {path}", err=True)
        sys.stderr.flush()
        os.dup2(terminal, 2)
        sys.stderr = before


def _can_redirect() -> bool:
    """Return whether the error stream is the process's, and a folder for temporary files can be written."""
    try:
        tempfile.gettempdir()
        return sys.stderr.fileno() == 2
    except (io.UnsupportedOperation, AttributeError, FileNotFoundError):
        return False
