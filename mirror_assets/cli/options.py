"""Options that several commands have, and how their values are read. Imports nothing heavy: `--help` needs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mirror_assets.errors import MirrorError

if TYPE_CHECKING:
    from mirror_assets.source.ranges import Range

Decorated = TypeVar("Decorated", bound=Callable[..., object])
PATH = click.Path(path_type=Path)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0}
CONFIG_HELP = "The configuration.  [default: $MIRROR_CONFIG, else ./mirror.yaml]"
_ONLY = "Only this table; may be repeated."


def examples(*commands: str) -> str:
    """Return the end of a command's help: how it is typed."""
    return "\b\nExamples:\n" + "\n".join(f"  mirror-assets {command}" for command in commands)


def with_options(command: Decorated, *options: Callable[[Decorated], Decorated]) -> Decorated:
    """Add the options in the order in which the help shows them."""
    for option in reversed(options):
        command = option(command)
    return command


def configured(command: Decorated) -> Decorated:
    """Add `--config` and `--json`; `--config` before the command counts as its default."""
    option = click.option("--config", type=PATH, default=_config_before_command, show_default=False, help=CONFIG_HELP)
    return option(printed(command))


def _config_before_command() -> Path | None:
    path: Path | None = click.get_current_context().find_root().params.get("config")
    return path


def printed(command: Decorated) -> Decorated:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def store(command: Decorated) -> Decorated:
    """Add the settings of a store, by their names in mirror.yaml."""
    return with_options(
        command,
        click.option("--credential", metavar="KIND", help="Who reads the store.  [default: default]"),
        click.option("--region", help="S3: the bucket's region."),
        click.option("--endpoint", metavar="URL", help="Another server than the store's own."),
        click.option("--path-style/--host-style", default=None, help="S3: whether the bucket is in the path."),
        click.option("--profile", help="S3: the profile, for the credential `profile`."),
        click.option("--role", metavar="ARN", help="S3: a role to assume with the credential."),
        click.option("--key-file", type=PATH, help="Google: a service account's key, for the credential `key_file`."),
        click.option("--env-prefix", metavar="PREFIX_", help="What the names of environment variables begin with."),
    )


def catalog(command: Decorated) -> Decorated:
    """Add what names a catalog's tables; `CatalogOptions` has what was typed."""
    return with_options(
        command,
        click.option("--catalog", metavar="NAME", help="The tables of this catalog, which LAKE has."),
        click.option("--schema", metavar="PATTERN", help="Catalog: only schemas like this.  [default: *]"),
        click.option("--token-variable", metavar="NAME", help="Catalog: the environment variable that has its token."),
        click.option("--store", "stores", multiple=True, metavar="ADDRESS", help="Catalog: a store of its tables."),
        click.option(
            "--spark-setting", "spark_settings", multiple=True, metavar="NAME=VALUE", help="Catalog: Spark's, of it."
        ),
    )


@dataclass(frozen=True)
class CatalogOptions:
    """The options of a catalog as they were typed."""

    catalog: str
    schema: str | None
    token_variable: str | None
    stores: tuple[str, ...]
    spark_settings: tuple[str, ...]

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> CatalogOptions | None:
        """Take them out of a command's options; None without `--catalog`. Raises click.UsageError for others alone."""
        mine = {field.name: options.pop(field.name) for field in fields(cls)}
        if mine["catalog"]:
            return cls(**mine)
        given = next((name for name, value in mine.items() if value), None)
        if given:
            option = given.removesuffix("s").replace("_", "-")
            raise click.UsageError(f"--{option} goes with --catalog")
        return None

    @property
    def settings_of_spark(self) -> dict[str, str]:
        """Spark's settings by name. Raises click.BadParameter."""
        pairs = [setting.partition("=") for setting in self.spark_settings]
        for name, equals, _ in pairs:
            if not name or not equals:
                raise click.BadParameter(f"expected NAME=VALUE, got {name + equals!r}", param_hint="--spark-setting")
        return {name.strip(): value for name, _, value in pairs}


def tables(command: Decorated) -> Decorated:
    """Add `--table`, which may be repeated."""
    option = click.option("--table", "names", multiple=True, metavar="TABLE", shell_complete=table_names, help=_ONLY)
    return option(command)


def table(command: Decorated) -> Decorated:
    """Add the argument TABLE, a name in mirror.yaml."""
    return click.argument("name", metavar="TABLE", shell_complete=table_names)(command)


def require_tables(config: Path | None, names: Sequence[str]) -> None:
    """Raise TableUnknown for a table that mirror.yaml does not have: before Dagster is loaded, which takes seconds."""
    from mirror_assets.config import When, load_config

    if names:
        load_config(config, when=When.REFRESH).chosen(names)


def table_names(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the tables of mirror.yaml that begin with what was typed, for the shell's completion."""
    from mirror_assets.config import When, load_config

    try:
        known = load_config(context.params.get("config"), when=When.NEVER).tables
        return [name for name in known if name.startswith(typed)]
    except MirrorError:
        return []


@dataclass(frozen=True)
class RangeOptions:
    """`--from`, `--to` and `--clip` as they were typed; both points have been found to be valid."""

    first: str | None = None
    last: str | None = None
    clip: bool = False

    @property
    def range(self) -> Range:
        """The range of commits that they name."""
        from mirror_assets.source.ranges import parse_range

        return parse_range(self.first, self.last, clip=self.clip)


def commit_range(default: str) -> Callable[[Decorated], Decorated]:
    """Add `--from`, `--to` and `--clip`; `default` says which commits are taken without them."""
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


def check_name(text: str) -> str:
    """Return the text if a check has this name. Raises click.BadParameter."""
    from mirror_assets.orchestration.checks import CHECK_NAMES

    if text not in CHECK_NAMES:
        raise click.BadParameter(f"expected one of {', '.join(CHECK_NAMES)}, got {text!r}")
    return text


def duration(text: str) -> float:
    """Return the seconds of a time such as `5s`, `500ms` or `2min`. Raises click.BadParameter."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2] or "s"] if match else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"expected a time like 5s, 500ms or 2min, got {text!r}")
    return seconds


def whole_number(expected: str, least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the type of an option from `least` to `most`, both inclusive; its default is a string, as if typed."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise click.BadParameter(f"expected {expected}, got {text!r}")
        return int(text)

    return number
