"""Runs one command, and turns every error into one message and an exit code."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mirror_assets.cli.commands import app
from mirror_assets.cli.exit import Exit, exit_code
from mirror_assets.cli.json_log import is_json, print_line, print_unexpected
from mirror_assets.cli.spark_log import spark_log
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
