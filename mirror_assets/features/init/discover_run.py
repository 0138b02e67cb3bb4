"""The command `discover`: which tables the rules find, which of them are mirrored, and why the others are not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show
from mirror_assets.config.discovered import RuleOutcome, When
from mirror_assets.config.errors import Problem
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.features.init.discover_rule import DiscoverSettings


@dataclass(frozen=True)
class FoundLine:
    """A folder that a rule has found; `rule` is the rule's line in the file."""

    table: str
    address: str
    rule: str
    state: str
    reason: str
    keys: tuple[str, ...]


def discover(path: Path | None, *, accept: bool, as_json: bool) -> Exit:
    """Discover the tables, save them, and show the result for each.

    It fails for a rule that finds no table, and for a table whose name is taken. With `accept`, all tables that are not
    listed any more are removed.
    """
    config = load_config(path, when=When.ACCEPT if accept else When.NOW)
    if not DiscoverSettings.of(config).discover:
        raise config.invalid((Problem("discover", "no rule finds tables"),))
    lines = [
        FoundLine(row.name, row.address, config.place(f"discover.{row.rule}"), row.state.value, row.reason, row.keys)
        for row in config.discovered.tables
    ]
    rows = [(x.state, x.table, ", ".join(x.keys), x.address, x.reason) for x in lines]
    show("Found", ("state", "table", "keys", "address", "why"), rows, lines, as_json=as_json)
    for rule in config.discovered.rules:
        _note(config, rule)
    for message in config.discovered.refused:
        note(f"error: {message}")
    is_fine = all(rule.is_well for rule in config.discovered.rules) and not config.discovered.refused
    return Exit.FINE if is_fine else Exit.FAILED


def _note(config: Config, rule: RuleOutcome) -> None:
    place = config.place(f"discover.{rule.rule}")
    if rule.trouble:
        note(f"error: {place}: {rule.trouble}")
    elif not rule.is_well:
        note(f"error: {place}: no table at {rule.place}; correct `from`, or write the tables first")
    else:
        note(f"{place}: {rule.folders} folders, {rule.tables} tables, {rule.mirrored} mirrored")
    if rule.unused_keys:
        note(f"{place}: `keys` names tables that were not found: {', '.join(rule.unused_keys)}")
