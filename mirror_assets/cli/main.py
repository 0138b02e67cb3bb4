"""Parses the command line and turns errors into one message and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mirror_assets.cli.asked import add_range, asked_of
from mirror_assets.cli.direct_lake.arguments import add_capacity, add_questions, add_readers, add_results, add_table
from mirror_assets.cli.exit import Exit
from mirror_assets.cli.spark_log import spark_log
from mirror_assets.errors import MirrorError, SettingError

_ABOUT_FABRIC = (
    "Create, start and ask the mirrored database in Fabric. There is no command to stop it, on purpose: an open mirror "
    "that is stopped and started again replays everything from the first landing file."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    options = _parser().parse_args(arguments)
    with spark_log() as log:
        try:
            code = _exit_code(options)
            sys.stdout.flush()
        except BrokenPipeError:
            code = _unheard()
        log.keep = code is Exit.FAILED
    return int(code)


def _exit_code(options: argparse.Namespace) -> Exit:
    try:
        return _run(options)
    except SettingError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 the command line's voice
        return Exit.BAD_SETTING
    except MirrorError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 the command line's voice
        return Exit.FAILED


def _unheard() -> Exit:
    """Whoever reads the output has closed it (`| head`): say no more, not even when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.FAILED


def _run(options: argparse.Namespace) -> Exit:
    """Dagster and Spark are imported only by the commands that need them: `--help` answers at once."""
    if options.command.startswith("direct-lake"):
        return _look_through_direct_lake(options)
    from mirror_assets.cli import execute, fabric, show
    from mirror_assets.cli.demo import demo
    from mirror_assets.cli.doctor import doctor
    from mirror_assets.cli.drop import drop
    from mirror_assets.cli.feed import feed
    from mirror_assets.cli.history import history

    commands = {
        "demo": lambda: demo(options.folder, options.months, options.settings, as_json=options.json),
        "run": lambda: execute.run(options.config, options.table, asked_of(options), as_json=options.json),
        "check": lambda: execute.check(options.config, as_json=options.json),
        "rebuild": lambda: execute.rebuild(options.config, options.name, as_json=options.json),
        "replicate": lambda: execute.replicate(options.config, as_json=options.json),
        "doctor": lambda: doctor(options.config, as_json=options.json),
        "plan": lambda: show.plan(options.config, options.table, asked_of(options).range, as_json=options.json),
        "status": lambda: show.status(options.config, options.table, as_json=options.json),
        "feed": lambda: feed(
            options.config, options.name, asked_of(options).range, options.limit, as_json=options.json
        ),
        "history": lambda: history(options.config, options.table, options.skip_to, as_json=options.json),
        "reconcile": lambda: show.reconcile(options.config, options.table, as_json=options.json),
        "drop": lambda: drop(options.config, options.name, yes=options.yes, as_json=options.json),
        "fabric create": lambda: fabric.create(options.config, options.name, as_json=options.json),
        "fabric start": lambda: fabric.start(options.config, replay=options.replay, as_json=options.json),
        "fabric status": lambda: fabric.status(options.config, as_json=options.json),
    }
    return commands[options.command]()


def _look_through_direct_lake(options: argparse.Namespace) -> Exit:
    """They read logs and footers only."""
    from mirror_assets.cli.direct_lake import commands
    from mirror_assets.cli.direct_lake.arguments import request_of

    looks = {
        "direct-lake report": commands.report,
        "direct-lake vacuum-plan": commands.vacuum_plan,
        "direct-lake guardrails": commands.guardrails,
    }
    return looks[options.command](request_of(options), as_json=options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mirror-assets", description="Mirror Delta tables into Microsoft Fabric.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = _command(commands, "demo", "build a lake of real tables with a past, mirror, replicate and reconcile it")
    demo.add_argument("--folder", type=Path, default=Path(".demo"), help="where everything goes (default: .demo)")
    demo.add_argument("--months", type=int, default=12, help="months of flights and weather, 2 to 12 (default: 12)")
    demo.add_argument(
        "--settings", type=Path, default=None, help="a file with settings such as landing_zone in place of the demo's"
    )
    for name, text in (
        ("run", "plan, encode, check and publish until nothing is left"),
        ("plan", "show the pending slices"),
        ("status", "show what is covered, landed and applied"),
        ("reconcile", "compare mirror and source; exit 1 on a difference"),
    ):
        command = _configured(commands, name, text)
        command.add_argument("--table", action="append", default=[], help="only this table; may be repeated")
        if name in ("run", "plan"):
            add_range(command, "everything that has not landed")
    feed = _configured(commands, "feed", "show rows of a source's change data feed, by version; needs no landing zone")
    feed.add_argument("name", metavar="TABLE", help="the table's name in mirror.yaml")
    add_range(feed, "the newest commit")
    feed.add_argument("--limit", type=_count, default=100, metavar="N", help="most rows to show (default: 100)")
    history = _configured(commands, "history", "keep the change feed of the tables that `history` is set for, for ever")
    history.add_argument("--table", action="append", default=[], help="only this table; may be repeated")
    history.add_argument(
        "--skip-to",
        type=_version,
        metavar="VERSION",
        help="of one table: go on at this version though commits before it are not kept, and never will be",
    )
    _configured(commands, "check", "run all asset checks; exit 1 on an ERROR")
    _configured(commands, "doctor", "ask the landing zone for what publishing exactly once rests on; exit 1 on a no")
    _configured(commands, "replicate", "let the local stand-in for Fabric's replicator apply what has landed")
    rebuild = _configured(commands, "rebuild", "drop a table's folder and start it again with a snapshot; resumable")
    rebuild.add_argument("name", metavar="TABLE", help="the table's name in mirror.yaml")
    drop = _configured(commands, "drop", "delete a table from the landing zone for good, so that the mirror drops it")
    drop.add_argument("name", metavar="TABLE", help="a table of mirror.yaml, or one that is no longer in it")
    drop.add_argument("--yes", action="store_true", help="don't ask")
    _fabric(commands)
    _direct_lake(commands)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")
    return int(text)


def _version(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a version of the source, got {text!r}")
    return int(text)


def _fabric(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The commands on the mirrored database in Fabric."""
    fabric = commands.add_parser(
        "fabric", help="create and start the mirrored database in Fabric, show its tables", description=_ABOUT_FABRIC
    )
    steps = fabric.add_subparsers(dest="command", required=True, metavar="COMMAND")
    create = _configured(steps, "create", "create a mirrored database, or find the one of this name, and tell its item")
    create.add_argument("name", metavar="NAME", help="its name in the workspace that mirror.fabric names")
    start = _configured(steps, "start", "start mirroring; fine when it runs already")
    start.add_argument(
        "--replay",
        action="store_true",
        help="also one that was stopped: Fabric reads the landing zone from file 1 again",
    )
    _configured(
        steps, "status", "show the mirrored database and the state of each table; exit 1 when a table has failed"
    )
    for name, step in steps.choices.items():
        step.set_defaults(command=f"fabric {name}")


def _direct_lake(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The commands on tables as Direct Lake reads them."""
    text = "what Direct Lake makes of a table: its report, guardrails, and whether VACUUM is safe"
    lake = commands.add_parser("direct-lake", help=text, description=text)
    looks = lake.add_subparsers(dest="command", required=True, metavar="COMMAND")
    report = _configured(looks, "report", "show layout, guardrails, types, VACUUM's plan and answers to questions")
    vacuum = _configured(looks, "vacuum-plan", "show what VACUUM would delete; exit 1 when someone needs it")
    guardrails = _configured(looks, "guardrails", "show which capacities it fits into; exit 1 when over those of --sku")
    for look in (report, vacuum, guardrails):
        add_table(look)
    for look in (report, vacuum):
        add_readers(look)
    for look in (report, guardrails):
        add_capacity(look)
    add_questions(report)
    add_results(report)
    for name, look in looks.choices.items():
        look.set_defaults(command=f"direct-lake {name}")


def _configured(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    command = _command(commands, name, text)
    command.add_argument("--config", type=Path, default=None, help="default: $MIRROR_CONFIG, else ./mirror.yaml")
    return command


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.add_argument("--json", action="store_true", help="print JSON for machines")
    return command
