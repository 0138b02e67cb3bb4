"""What a replicator could have seen: each landing file from the moment when it is visible."""

from __future__ import annotations

import hashlib
import io
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.landing.receipt import parse_receipt

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_MOMENT = 10.0


class Eyes:
    """Everything that was ever visible under a landing file's name, and all that was wrong with it.

    Whoever watches a table folder tells of every file that appears, in that order, and of every one that changes.
    """

    def __init__(self) -> None:
        self._digests: dict[int, str | None] = {}
        self._appeared = threading.Event()
        self.wrong: list[str] = []

    @property
    def newest(self) -> int:
        """The highest number that was ever visible."""
        return max(self._digests, default=0)

    def appeared(self, number: int, data: bytes | None) -> None:
        """A file got the number; `data` is None if it had been moved on before anybody could look."""
        if number in self._digests:
            self.wrong.append(f"{number} landed twice")
        elif number != self.newest + 1:
            self.wrong.append(f"{number} landed after {self.newest}")
        if data is not None and not is_whole(data):
            self.wrong.append(f"{number} was visible before it was whole")
        self._digests[number] = None if data is None else _digest(data)
        self._appeared.set()

    def changed(self, number: int, how: str) -> None:
        """Somebody touched a visible file."""
        self.wrong.append(f"{number} was {how} while it was visible")

    def missed(self, what: str) -> None:
        """The eyes were shut for a moment, so they have shown nothing."""
        self.wrong.append(f"not watched: {what}")

    def recognise(self, number: int, data: bytes) -> None:
        """Look at the file again at the end, wherever it is now."""
        if number not in self._digests:
            self.wrong.append(f"{number} was never seen to land")
        elif self._digests[number] not in (None, _digest(data)):
            self.wrong.append(f"{number} is not what it was when it landed")
        elif not is_whole(data):
            self.wrong.append(f"{number} is not whole")

    def expect(self, number: int) -> None:
        """Wait a moment for whoever watches to tell of this number."""
        deadline = time.monotonic() + _MOMENT
        while self.newest < number and time.monotonic() < deadline:
            time.sleep(_MOMENT / 1000)

    def wait(self, seconds: float) -> bool:
        """Whether a file appeared since the last wait, or in this time."""
        appeared = self._appeared.wait(seconds)
        self._appeared.clear()
        return appeared


def is_whole(data: bytes) -> bool:
    """Whether it is a Parquet file that can be read to its last row, with a receipt of ours."""
    try:
        table = pq.read_table(io.BytesIO(data), page_checksum_verification=True)
    except (pa.ArrowException, OSError):
        return False
    return parse_receipt("", (table.schema.metadata or {}).get(_SPARK_SCHEMA)) is not None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
