"""Where a series of kills happens: a landing zone, the source that it mirrors, and how runs are started there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import Store
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.quick_jvm import OPTIONS
from mirror_assets_tests.worlds.eyes import Eyes
from mirror_assets_tests.worlds.kills.points import Point, Side
from mirror_assets_tests.worlds.kills.process import Run
from mirror_assets_tests.worlds.kills.source import Orders

Arrival = Callable[[], object]
# The first load, 60 rows in three files, lands in two chunks.
_SLICES, _PART_ROWS = "{max_commits: 2, max_rows: 45}", 20
_SPARK = {
    "spark.master": "local[1]",
    "spark.driver.memory": "1g",
    # A scan of several small files is several partitions, as one of large files is.
    "spark.sql.files.maxPartitionBytes": "4MB",
    "spark.driver.extraJavaOptions": "${JAVA_OPTIONS}",
}


@dataclass(frozen=True)
class Ground:
    """The folder of a series: its source, its mirror, its mirror.yaml and what its runs leave."""

    root: Path

    @property
    def source(self) -> Orders:
        return Orders(self.root / "lake" / "orders")

    @property
    def config_file(self) -> Path:
        return self.root / "mirror.yaml"

    def replicator(self, store: Store) -> LocalReplicator:
        return LocalReplicator(store, self.root / "mirror")

    def configure(self, zone: str, spark: Mapping[str, str] = MappingProxyType({})) -> None:
        """Write mirror.yaml. What differs from run to run comes from the environment."""
        settings = "".join(f'    {name}: "{value}"\n' for name, value in {**_SPARK, **spark}.items())
        self.config_file.write_text(
            f"landing_zone: {zone}\nmirror: {{path: ./mirror}}\n"
            f"defaults:\n  slices: {_SLICES}\n  files: {{target_rows: {_PART_ROWS}}}\n"
            f"spark:\n  settings:\n{settings}"
            f"tables:\n  {TABLE}:\n    source: ./lake/orders\n    keys: [id]\n"
        )

    def environment(self) -> dict[str, str]:
        """What a run needs; its scraps stay in the series' folder, for kill -9 leaves them."""
        scraps = self.root / "scraps"
        scraps.mkdir(exist_ok=True)
        places = dict.fromkeys(("TMPDIR", "SPARK_LOCAL_DIRS"), str(scraps))
        return {**places, "JAVA_OPTIONS": f"{OPTIONS} -Djava.io.tmpdir={scraps}"}


class Place(Protocol):
    """A landing zone in which publishers are killed."""

    ground: Ground
    eyes: Eyes

    @property
    def store(self) -> Store: ...

    def start(self, name: str, at: Point | None = None) -> Run: ...

    @property
    def sides(self) -> Sequence[Side]: ...

    def requests(self, name: str) -> int:
        """How many requests the newest run with this name has sent."""
        ...

    def last_request(self, name: str) -> str: ...

    def attempts(self) -> frozenset[str]:
        """The attempts that anybody has begun to stage, as long as they are there."""
        ...

    def late(self) -> Sequence[Arrival]:
        """The requests that were on their way when their senders were killed, to let each arrive; told once."""
        ...

    def settle(self) -> None: ...
