"""What all commands share: options, the types of their values, and exit codes. Imports nothing heavy, for `--help`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import IntEnum
from functools import wraps
from pathlib import Path
from typing import TypeVar, cast

import click

from mirror_assets.errors import ErrorRecord, MirrorError, SettingError

Decorated = TypeVar("Decorated", bound=Callable[..., object])
PATH = click.Path(path_type=Path)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
CONFIG_HELP = "The configuration.  [default: $MIRROR_CONFIG, else ./mirror.yaml]"


class CommandGroup(click.Group):
    """Lists its commands in the order in which they were added, each with its whole summary, however narrow."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 click's signature
        """Return the names of the commands."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands; summaries are wrapped, where click cuts them."""
        rows = [(name, command.get_short_help_str(_UNCUT)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


_UNCUT = 10_000


def examples(*commands: str) -> str:
    """Return the last part of a command's help: examples."""
    return "\b\nExamples:\n" + "\n".join(f"  mirror-assets {command}" for command in commands)


def with_options(command: Decorated, *options: Callable[[Decorated], Decorated]) -> Decorated:
    """Add the options in the order in which the help shows them."""
    for option in reversed(options):
        command = option(command)
    return command


def configured(command: Decorated) -> Decorated:
    """Add `--config` and `--json`; `--config` before the command counts as its default."""

    def before_command() -> Path | None:
        path: Path | None = click.get_current_context().find_root().params.get("config")
        return path

    option = click.option("--config", type=PATH, default=before_command, show_default=False, help=CONFIG_HELP)
    return option(printed(command))


def printed(command: Decorated) -> Decorated:
    """Add `--json`, with which the output also has the errors that end the command."""

    @wraps(command)
    def answer(*, as_json: bool, **options: object) -> object:
        try:
            return command(as_json=as_json, **options)
        except MirrorError as error:
            if as_json:
                from mirror_assets.cli.output import show_json

                show_json((), error_records(error, options.get("name") or options.get("table")))
            raise

    return cast("Decorated", click.option("--json", "as_json", is_flag=True, help="Print JSON.")(answer))


def error_records(error: MirrorError, table: object = None) -> list[ErrorRecord]:
    """Return the error as data, of the table that the command names; mistakes of mirror.yaml as a record for each."""
    record, problems = error.record(), error.facts.get("problems", ())
    mistakes = [replace(record, message=problem.at(error.facts["file"])) for problem in problems]
    return mistakes or [replace(record, table=None if table is None else str(table))]


def tables(command: Decorated) -> Decorated:
    """Add the arguments TABLE and the option `--table`, which may be repeated: both add to `names`."""

    @wraps(command)
    def answer(*, arguments: tuple[str, ...], names: tuple[str, ...], **options: object) -> object:
        return command(names=(*arguments, *names), **options)

    only = "Only this table, or the tables that match a pattern; may be repeated."
    argument = click.argument("arguments", nargs=-1, metavar="[TABLE]...", shell_complete=table_names)
    option = click.option("--table", "names", multiple=True, metavar="TABLE", shell_complete=table_names, help=only)
    return cast("Decorated", argument(option(answer)))


dry_run = click.option("--dry-run", is_flag=True, help="Only show what would happen; write nothing.")


def table(command: Decorated) -> Decorated:
    """Add the argument TABLE, a name in mirror.yaml."""
    return click.argument("name", metavar="TABLE", shell_complete=table_names)(command)


def table_names(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the tables of mirror.yaml that begin with the typed text, for the shell's completion."""
    from mirror_assets.config.discovered import When
    from mirror_assets.config.load import load_config

    try:
        known = load_config(context.params.get("config"), when=When.NEVER).tables
        return [name for name in known if name.startswith(typed)]
    except MirrorError:
        return []


def commit_range(default: str) -> Callable[[Decorated], Decorated]:
    """Add `--from`, `--to` and `--clip`; `default` describes the commits that are taken without them."""
    first = "First commit: a version, or yyyy-MM-dd[ HH:mm:ss[.SSS]][ zone], in UTC without a zone."

    def decorate(command: Decorated) -> Decorated:
        return with_options(
            command,
            click.option("--from", "first", type=point, metavar="POINT", help=f"{first}  [default: {default}]"),
            click.option("--to", "last", type=point, metavar="POINT", help="Last commit, written in the same way."),
            click.option("--clip", is_flag=True, help="Let a range that goes beyond the newest commit end with it."),
        )

    return decorate


def point(text: str) -> str:
    """Return the text if it is a version or a time. Raises click.BadParameter."""
    from mirror_assets.source.ranges import parse_point

    try:
        parse_point(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return text


def duration(text: str) -> float:
    """Return the seconds of a time such as `5s`, `500ms`, `2min`, `4h` or `2d`. Raises click.BadParameter."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2] or "s"] if match else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"expected a time like 5s, 500ms, 2min, 4h or 2d, got {text!r}")
    return seconds


FAILED_CHECK = "check"


class Exit(IntEnum):
    """Fine; a check or a table failed; the configuration or the command line must be corrected."""

    FINE = 0
    FAILED = 1
    BAD_SETTING = 2


def exit_code(families: Iterable[str]) -> Exit:
    """Return the exit code for errors of these families, in every command: BAD_SETTING if all are setting errors.

    A failed check, which is no error, counts as `FAILED_CHECK`.
    """
    found = set(families)
    if not found:
        return Exit.FINE
    return Exit.BAD_SETTING if found == {SettingError.family} else Exit.FAILED
