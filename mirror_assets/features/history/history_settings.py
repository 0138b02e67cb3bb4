"""The settings of histories: their place, and for each table whether and how one is kept."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, field_validator

from mirror_assets.config.document import Document
from mirror_assets.config.setting_values import dump_start, start_among
from mirror_assets.lakes.lake_store import Scheme
from mirror_assets.lakes.stores import Address
from mirror_assets.settings import Section
from mirror_assets.source.ranges import TimePoint, VersionPoint

if TYPE_CHECKING:
    from mirror_assets.config.rules import Mistakes

HISTORY_PATH = "./history"
_NOT_ON_S3 = (
    "on S3, Spark detects concurrent commits only within one driver, so two runs could overwrite each other's; use a "
    "folder of this machine, or an address abfss://, gs:// or hdfs://"
)


class HistoryMode(str, Enum):
    """Whether and how the change data feed is stored permanently."""

    OFF = "false"
    SLICES = "slices"
    STREAM = "stream"


class HistoryStart(str, Enum):
    """The first rows of a new history, unless a version or a time is set."""

    SNAPSHOT = "snapshot"
    EARLIEST = "earliest"


def _history(value: object) -> object:
    if value is True or not isinstance(value, bool | str):
        shown = "nothing" if value is None else str(value).lower()
        raise ValueError(f"expected false, 'slices' or 'stream', got {shown}")
    return HistoryMode.OFF if value is False else value


KeepHistory = Annotated[HistoryMode, BeforeValidator(_history)]
HowHistoryStarts = Annotated[
    HistoryStart | VersionPoint | TimePoint, start_among(HistoryStart), PlainSerializer(dump_start)
]


class HistoryConfig(Section):
    """The histories: change feeds that are stored permanently."""

    path: Address = Field(
        default=HISTORY_PATH,
        validate_default=True,
        description="Folder or address of the histories' Delta tables.",
    )

    @field_validator("path")
    @classmethod
    def _not_on_s3(cls, path: str) -> str:
        if path.startswith(f"{Scheme.S3.value}://"):
            raise ValueError(_NOT_ON_S3)
        return path


class HistorySettings(Section):
    """The place of the histories."""

    history: HistoryConfig = Field(default={}, validate_default=True, description="Place of the stored change feeds.")


class HistoryTable(Section):
    """Whether a table has a history, and how it is kept."""

    history: KeepHistory = Field(
        default=HistoryMode.OFF, description="Store the change feed permanently: slice by slice, or with a stream."
    )
    history_start: HowHistoryStarts = Field(default=HistoryStart.SNAPSHOT, description="First rows of a new history.")

    @property
    def keeps_history(self) -> bool:
        """Whether the change data feed is stored permanently."""
        return self.history is not HistoryMode.OFF


def separate_histories(document: Document) -> Mistakes:
    """Refuse a folder of histories that overlaps with another one, if a table keeps a history."""
    from mirror_assets.config.rules import effective, overlap  # it loads all settings

    tables, place = [("tables", name) for name in document.names("tables")], ("history", "path")
    kept = (HistoryMode.SLICES.value, HistoryMode.STREAM.value)
    if any(effective(document, table, "history") in kept for table in tables):
        for ours in (("landing_zone", "path"), ("mirror", "path")):
            yield from overlap(document, ours, place)
        for table in tables:
            yield from overlap(document, place, (*table, "source"))
