"""What a replicator with unlimited eyes could have seen: each landing file from the moment when it is visible."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.landing.format import Receipt
from mirror_assets.landing.receipt import parse_receipt

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_MOMENT = 10.0


class Eyes:
    """Everything that was ever visible under a landing file's name, and all that was wrong with it.

    Who watches a table folder either shows all that is there, by `see`, or reports every file that appears, in that
    order, and every one that changes.
    """

    def __init__(self) -> None:
        self._digests: dict[int, str | None] = {}
        self._visible: Mapping[int, bytes] = {}
        self._incarnations: list[str] = []
        self._appeared = threading.Event()
        self.wrong: list[str] = []
        self.landed = 0

    @property
    def newest(self) -> int:
        """The highest number that was ever visible in this epoch."""
        return max(self._digests, default=0)

    def see(self, files: Iterable[tuple[int, bytes]]) -> None:
        """See all landing files that are there now, wherever the service has put them."""
        now: dict[int, bytes] = {}
        for number, data in sorted(files):
            if number in now:
                self.wrong.append(f"{number} is in two places")
            now[number] = data
        for number, data in now.items():
            if self._visible.get(number) != data:
                self.appeared(number, data)
        self.wrong += [f"{number} is of an ended epoch" for number in now.keys() - self._digests.keys()]
        self._visible = now

    def appeared(self, number: int, data: bytes | None) -> None:
        """A file got the number; `data` is None if it had been moved on before anybody could look."""
        receipt = None if data is None else receipt_of(data)
        if receipt is not None:
            self._check(number, receipt)
        elif data is not None:
            self.wrong.append(f"{number} was visible before it was whole")
        if number in self._digests:
            self.wrong.append(f"{number} landed twice, or was changed")
        elif number != self.newest + 1:
            self.wrong.append(f"{number} landed after {self.newest}")
        self._digests[number] = None if data is None else _digest(data)
        self.landed += 1
        self._appeared.set()

    def _check(self, number: int, receipt: Receipt) -> None:
        """A new epoch begins with number 1, and none of an ended one lands any more."""
        if receipt.incarnation not in self._incarnations and (number == 1 or not self._incarnations):
            self._incarnations.append(receipt.incarnation)
            self._digests = {}
        if receipt.incarnation != self._incarnations[-1]:
            self.wrong.append(f"{number} is of another epoch")
        if number < receipt.first_number:
            self.wrong.append(f"{number} is of a slice that begins with {receipt.first_number}")

    def changed(self, number: int, how: str) -> None:
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
        elif receipt_of(data) is None:
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


def receipt_of(data: bytes) -> Receipt | None:
    """The receipt of ours in a Parquet file that can be read to its last row; None for any other bytes."""
    try:
        table = pq.read_table(io.BytesIO(data), page_checksum_verification=True)
    except (pa.ArrowException, OSError):
        return None
    return parse_receipt("", (table.schema.metadata or {}).get(_SPARK_SCHEMA))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
