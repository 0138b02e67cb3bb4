"""A table whose store fails, beside one whose store does not: one message, the other lands, nothing is lost."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from werkzeug.wrappers import Request, Response

from mirror_assets.cli import main
from mirror_assets.cli.options import Exit
from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, PREFIX, REGION, S3Server

_FEED = {"delta.enableChangeDataFeed": "true"}
_Fault = Callable[[Request], Response | None]


class _Error(TypedDict):
    table: str
    message: str
    family: str


class _Report(TypedDict):
    table: str
    covered: int | None
    error: _Error | None


@dataclass
class _Pair:
    """`shop.orders` in the server's bucket and `shop.items` on this machine: of each a commit has landed, one waits."""

    s3: S3Server
    root: Path
    capsys: pytest.CaptureFixture[str]
    folder: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(self, row: int) -> None:
        rows = pa.table({"id": [row], "name": [f"n{row}"]})
        for uri, options in ((self.uri, self.s3.options), (str(self.root / "items"), None)):
            write_deltalake(uri, rows, mode="append", configuration=_FEED, storage_options=options)

    @property
    def uri(self) -> str:
        return f"s3://{BUCKET}/{self.folder}/orders"

    def configure(self) -> None:
        (self.root / "mirror.yaml").write_text(
            "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\n"
            f'stores: {{lake: {{root: "s3://{BUCKET}/{self.folder}", region: {REGION}, endpoint: "{self.s3.url}", '
            f"credential: environment, env_prefix: {PREFIX}}}}}\n"
            "tables:\n  shop.orders: {source: {store: lake, path: orders}, keys: [id]}\n"
            "  shop.items: {source: ./items, keys: [id]}\n"
        )

    def run(self, *options: str, code: Exit = Exit.FINE) -> dict[str, _Report]:
        """Run `mirror-assets run`; return its reports by table."""
        self.capsys.readouterr()
        ended = main(["run", "--config", str(self.root / "mirror.yaml"), "--json", *options])
        told = self.capsys.readouterr()
        assert ended == code, told.err
        reports: list[_Report] = json.loads(told.out)
        return {report["table"]: report for report in reports}

    @property
    def landed(self) -> list[str]:
        folder = self.root / "landing" / "shop.schema" / "orders"
        return sorted(path.name for path in folder.glob("0*.parquet"))

    def is_equal(self) -> bool:
        """Apply what has landed; whether both mirrors equal their sources."""
        config = ["--config", str(self.root / "mirror.yaml")]
        return main(["replicate", *config]) == Exit.FINE == main(["reconcile", *config])


@pytest.fixture
def pair(spark: SparkSession, s3: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> _Pair:
    """The two tables; `spark` is the session on whose context the command's own sessions are."""
    assert spark
    made = _Pair(s3, tmp_path, capsys)
    made.configure()
    made.write(1)
    assert {table: report["covered"] for table, report in made.run().items()} == {"shop.orders": 0, "shop.items": 0}
    made.write(2)
    return made


def _refused(status: int, code: str, on: str = "") -> _Fault:
    """Refuse requests for paths that contain `on`; the answer to a HEAD request has no words."""

    def fault(request: Request) -> Response | None:
        if on not in request.path:
            return None
        return Response(b"" if request.method == "HEAD" else f"<Error><Code>{code}</Code></Error>".encode(), status)

    return fault


def _ended_at(on: str, refused: _Fault) -> _Fault:
    """Refuse everything from the first request on for a path that contains `on`."""
    seen: list[str] = []

    def fault(request: Request) -> Response | None:
        if on in request.path:
            seen.append(request.path)
        return refused(request) if seen else None

    return fault


# What fails, the message about it, and its family. `lakes/test_store_faults.py` has all causes.
_FAULTS = {
    "keys that end between plan and read": (
        _ended_at("part-", _refused(400, "ExpiredToken")),
        "refuses keys whose time is over (ExpiredToken)",
        "retry",
    ),
    "one file denied": (_refused(403, "AccessDenied", "part-"), "denies access (", "setting"),
}


@pytest.mark.long(30)
@pytest.mark.parametrize("name", _FAULTS)
def test_a_store_that_refuses(name: str, pair: _Pair) -> None:
    fault, told, family = _FAULTS[name]
    pair.s3.fault = fault
    reports = pair.run(code=Exit.BAD_SETTING if family == "setting" else Exit.FAILED)
    orders = reports["shop.orders"]
    assert (reports["shop.items"]["covered"], reports["shop.items"]["error"]) == (1, None)
    error = orders["error"]
    assert error is not None
    assert told in error["message"]
    assert f"the store s3://{BUCKET} " in error["message"]
    assert (error["table"], error["family"]) == ("shop.orders", family)
    assert not [word for word in ("calling o", "NO_HINT", pair.s3.keys.secret) if word in str(error)]
    if "file" in name:
        assert ".parquet" in error["message"]
    assert pair.landed == [f"{1:020d}.parquet"]
    pair.s3.forget()
    assert pair.run()["shop.orders"]["covered"] == 1
    assert pair.is_equal()


@pytest.mark.long(30)
def test_a_file_that_was_cut_short(pair: _Pair) -> None:
    commit = pair.s3.read(BUCKET, f"{pair.folder}/orders/_delta_log/{1:020d}.json").splitlines()
    (path,) = (action["add"]["path"] for action in map(json.loads, commit) if "add" in action)
    key = f"{pair.folder}/orders/{path}"
    whole = pair.s3.read(BUCKET, key)
    pair.s3.put(BUCKET, key, whole[:100] + b"x" * (len(whole) - 100))
    reports = pair.run(code=Exit.FAILED)
    assert reports["shop.items"]["covered"] == 1
    assert "a file can't be read as it was written" in str(reports["shop.orders"]["error"])
    assert path in str(reports["shop.orders"]["error"])
    assert "'family': 'stop'" in str(reports["shop.orders"]["error"])
    assert pair.landed == [f"{1:020d}.parquet"]
    pair.s3.put(BUCKET, key, whole)
    assert pair.run()["shop.orders"]["covered"] == 1
    assert pair.is_equal()


@pytest.mark.long(30)
def test_a_table_that_vanishes_between_plan_and_read(pair: _Pair) -> None:
    def vanish(request: Request) -> Response | None:
        if request.method == "GET" and "part-" in request.path:
            pair.s3.forget()  # the requests that delete pass
            for key in pair.s3.objects(BUCKET, pair.folder):
                pair.s3.delete(BUCKET, key)
        return None

    pair.s3.fault = vanish
    reports = pair.run(code=Exit.BAD_SETTING)
    assert reports["shop.items"]["covered"] == 1
    assert "is not a Delta table" in str(reports["shop.orders"]["error"])
    assert "'family': 'setting'" in str(reports["shop.orders"]["error"])
    assert pair.landed == [f"{1:020d}.parquet"]
