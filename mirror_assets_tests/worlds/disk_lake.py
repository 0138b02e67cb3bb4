"""Lakes of small tables, and the mirror.yaml that finds them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from mirror_assets.config.discovered import FoundState, When
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config

FEED = {"delta.enableChangeDataFeed": "true"}


@dataclass(frozen=True)
class DiskLake:
    """Tables below `lake/` of a folder, and a mirror.yaml beside it."""

    root: Path

    @property
    def lake(self) -> Path:
        return self.root / "lake"

    @cached_property
    def _pattern(self) -> Path:
        write_deltalake(self.root / "pattern", pa.table({"id": [1], "of": ["a"]}), configuration=FEED)
        return self.root / "pattern"

    def add(self, *paths: str) -> None:
        """Make tables with the columns `id` and `of` and a feed; they are copies of one."""
        for path in paths:
            shutil.copytree(self._pattern, self.lake / path)

    def add_other(self, path: str, columns: Iterable[str] = ("id",), **configuration: str) -> None:
        """Make a table with these columns, and no other properties."""
        write_deltalake(
            self.lake / path, pa.table({name: [1] for name in columns}), configuration=configuration or None
        )

    def track_rows(self, path: str) -> None:
        """Switch on row tracking, which delta-rs does not know, in the table's first commit."""
        entry = self.lake / path / "_delta_log" / f"{0:020d}.json"
        text = entry.read_text()
        assert '"configuration":{}' in text
        entry.write_text(text.replace('"configuration":{}', '"configuration":{"delta.enableRowTracking":"true"}'))

    def configure(self, rule: str, more: str = "") -> None:
        (self.root / "mirror.yaml").write_text(
            f"landing_zone: {{path: ./landing}}\nstores:\n  lake: {{root: ./lake}}\ndiscover:\n  - {rule}\n{more}"
        )

    def load(self, when: When = When.UNKNOWN, file: str = "mirror.yaml") -> Config:
        return load_config(self.root / file, when=when)


def states(config: Config) -> Mapping[str, FoundState]:
    """The state of each found folder, by the end of its address."""
    return {"/".join(row.address.split("/")[-2:]): row.state for row in config.discovered.tables}


def names(config: Config) -> list[str]:
    return [str(name) for name in config.names]
