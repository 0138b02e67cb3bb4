"""What the history's own log says of each slice that it keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TypedDict

# The application id of the history's transactions; their version is the generation.
APPLICATION = "mirror_assets/history"


class _Txn(TypedDict):
    appId: str
    version: int


class _CommitInfo(TypedDict, total=False):
    userMetadata: str
    operationMetrics: dict[str, str]


class _Line(TypedDict, total=False):
    txn: _Txn
    commitInfo: _CommitInfo


@dataclass(frozen=True)
class Kept:
    """A slice that the history keeps: the feed of commits `first` to `last` of the table `table_id`.

    Each is one commit of the history's table, and each has the generation after the one before: Delta commits a
    generation once. `attempt` tells who did. A slice without commits (`last` is `first` - 1) only says again what is
    covered. `rows` is what was written.
    """

    generation: int
    table_id: str
    first: int
    last: int
    attempt: str
    rows: int = 0

    @property
    def text(self) -> str:
        """What its commit carries as user metadata."""
        return json.dumps({"table_id": self.table_id, "first": self.first, "last": self.last, "attempt": self.attempt})


def read_record(commit: bytes) -> Kept | None:
    """The slice that a commit of the history's table keeps; None for a commit of anyone else."""
    lines: list[_Line] = [json.loads(text) for text in commit.splitlines() if text.strip()]
    generations = [line["txn"]["version"] for line in lines if "txn" in line and line["txn"]["appId"] == APPLICATION]
    info = next((line["commitInfo"] for line in lines if "commitInfo" in line), _CommitInfo())
    if not generations or "userMetadata" not in info:
        return None
    told = json.loads(info["userMetadata"])
    kept = Kept(generations[0], told["table_id"], told["first"], told["last"], told["attempt"])
    return replace(kept, rows=int(info.get("operationMetrics", {}).get("numOutputRows", 0)))
