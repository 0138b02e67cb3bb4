"""How many requests a look at a table of a store costs, and that a fault of the store is told and passes."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from werkzeug.wrappers import Response

from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.plan import plan_table
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, PREFIX, REGION, S3Server

_FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def context(s3: S3Server, tmp_path: Path) -> TableContext:
    """A table of three commits by delta-rs, of which nothing has landed."""
    uri = f"s3://{BUCKET}/{uuid.uuid4().hex}/orders"
    for row in range(3):
        rows = pa.table({"id": [row]})
        write_deltalake(uri, rows, mode="append", configuration=_FEED, storage_options=s3.options)
    (tmp_path / "mirror.yaml").write_text(
        f"landing_zone: {{path: ./landing}}\n"
        f'stores: {{lake: {{root: "s3://{BUCKET}", region: {REGION}, endpoint: "{s3.url}", credential: environment, '
        f"env_prefix: {PREFIX}}}}}\n"
        f"tables: {{{TABLE}: {{source: {uri}, keys: [id]}}}}\n"
    )
    config = load_config(tmp_path / "mirror.yaml")
    s3.forget()
    return compose(config).table(config.table(TABLE))


def test_a_quiet_table_costs_one_listing(context: TableContext, s3: S3Server) -> None:
    mark = context.log.tip_mark(2)
    assert mark is not None
    s3.requests.clear()
    assert context.log.is_still_tip(mark)
    assert len(s3.requests) == 1
    assert "list-type=2" in s3.requests[0]


def test_a_look_for_the_next_commit_alone_costs_one_request(context: TableContext, s3: S3Server) -> None:
    mark = context.log.tip_mark(2)
    assert mark is not None
    s3.requests.clear()
    assert not context.log.has_next(mark)
    assert len(s3.requests) == 1


def test_the_first_plan_of_a_table_costs_some_requests_whatever_its_size(context: TableContext, s3: S3Server) -> None:
    assert plan_table(context).slices
    assert len(s3.requests) <= 12, s3.requests


def test_a_store_that_is_busy_for_a_moment_is_asked_again(context: TableContext, s3: S3Server) -> None:
    refused = iter(range(2))
    s3.fault = lambda _: Response("slow down", 503) if next(refused, None) is not None else None
    assert context.log.state().version == 2


def test_credentials_that_have_ended_are_a_setting_and_the_next_ones_are_used(
    context: TableContext, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same context goes on when the environment's keys have changed: nothing keeps the old ones."""
    assert context.log.state().version == 2
    monkeypatch.setenv(f"{PREFIX}AWS_SECRET_ACCESS_KEY", "ended")
    with pytest.raises(Exception, match="SignatureDoesNotMatch"):
        context.log.state()
    monkeypatch.setenv(f"{PREFIX}AWS_SECRET_ACCESS_KEY", s3.keys.secret)
    assert context.log.state().version == 2
    assert context.log.earliest() == 0
