"""What all processes know of discovered tables, whichever of them scans, and whatever can't be read meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from mirror_assets.config.discovered import FoundState, When, with_found_tables
from mirror_assets.config.model import Config
from mirror_assets.errors import ErrorCode, MirrorError
from mirror_assets.features.init import find_tables
from mirror_assets.features.init.discovery_memory import read_memory
from mirror_assets.features.init.find_tables import TimeLimit
from mirror_assets.features.init.finding import PlaceFinding, scan
from mirror_assets.features.init.listing import Listing, list_folders
from mirror_assets.lakes.access import Access
from mirror_assets.landing.names import DISCOVERED
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import STORE_DENIED, STORE_UNAVAILABLE
from mirror_assets_tests.worlds.disk_lake import DiskLake, names, states

_RULE = '{from: {store: lake, path: "*/*/"}, keys: {default: [id]}}'


@pytest.fixture
def lake(tmp_path: Path) -> DiskLake:
    made = DiskLake(tmp_path)
    made.configure(_RULE)
    return made


@pytest.fixture
def _zone_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    _fail(monkeypatch, "read")


def _fail(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def fail(_: LocalStore, path: str, *__: object) -> None:
        raise STORE_UNAVAILABLE(path=path, why="connection refused")

    monkeypatch.setattr(LocalStore, method, fail)


def _troubles(config: Config) -> list[tuple[str | None, str]]:
    return [(rule.code, rule.trouble) for rule in config.discovered.rules]


def _sources(config: Config) -> dict[str, str]:
    return {str(table.name): table.source for table in config.all_tables()}


def test_every_process_knows_the_tables_whatever_its_home(lake: DiskLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another pod has another home, or one that can't be written; what is known is in the landing zone."""
    lake.add("sales/orders", "sales/items", "sales/lines")
    (lake.root / "home").write_text("a file: nothing can be created below it")
    monkeypatch.setenv("DAGSTER_HOME", str(lake.root / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(lake.root / "home"))
    assert len(names(lake.load())) == 3
    assert len(names(lake.load(When.NEVER))) == 3
    (lake.lake / "sales").rename(lake.root / "unmounted")
    for _ in range(3):
        config = lake.load(When.REFRESH)
        assert len(names(config)) == 3
    assert "3 of 3 tables are no longer listed" in config.discovered.rules[0].trouble


@pytest.mark.parametrize("newcomer", ["backup/orders", "zz/Orders"])
def test_a_known_table_keeps_its_name(lake: DiskLake, newcomer: str, caplog: pytest.LogCaptureFixture) -> None:
    lake.add("sales/orders", "sales/items")
    before = _sources(lake.load())
    lake.add(newcomer)
    for when in (When.REFRESH, When.REFRESH, When.UNKNOWN, When.NEVER):
        config = lake.load(when)
        assert _sources(config) == before
        assert states(config)[newcomer] is FoundState.NAME_TAKEN
        (message,) = config.discovered.refused
        assert message == (
            f"{lake.lake}/{newcomer} is not mirrored as {newcomer.partition('/')[2]}: {lake.lake}/sales/orders has "
            "this name. Next: rename or exclude the new folder, or list it under `tables`."
        )
        assert _troubles(config) == [(None, "")]
    assert f"{newcomer} is not mirrored" in caplog.text
    lake.configure(_RULE.replace("keys", "exclude: [sales/orders], keys"))
    assert _sources(lake.load(When.REFRESH))[newcomer.partition("/")[2]] == f"{lake.lake}/{newcomer}", (
        "a person's choice"
    )


def test_a_name_is_free_when_its_table_was_deleted(lake: DiskLake) -> None:
    lake.add("sales/orders", "sales/items", "sales/lines", "backup/other")
    lake.load()
    lake.add("backup/orders")
    shutil.rmtree(lake.lake / "sales/orders")
    assert _sources(lake.load(When.REFRESH))["orders"] == f"{lake.lake}/sales/orders"
    assert _sources(lake.load(When.REFRESH))["orders"] == f"{lake.lake}/backup/orders"
    lake.add("sales/orders")
    config = lake.load(When.REFRESH)
    assert _sources(config)["orders"] == f"{lake.lake}/backup/orders"
    assert states(config)["sales/orders"] is FoundState.NAME_TAKEN


def test_two_mirrors_of_one_landing_zone_lose_no_finding_of_the_other(
    lake: DiskLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process finishes its scan while the other one is scanning."""
    lake.add("sales/orders", "stock/parts")
    first = '{from: {store: lake, path: "sales/*"}, keys: {default: [id]}}'
    lake.configure(first.replace("sales", "stock"))
    (lake.root / "mirror.yaml").rename(lake.root / "second.yaml")
    lake.configure(first)
    scans = list[str]()

    def interrupted(*arguments: object, **more: object) -> PlaceFinding:
        scans.append("scan")
        if len(scans) == 1:
            monkeypatch.setattr(find_tables, "scan", scan)
            other = lake.load(When.REFRESH, "second.yaml")
            assert names(other) == ["parts"]
        return scan(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(find_tables, "scan", interrupted)
    assert names(lake.load(When.REFRESH)) == ["orders"]
    memory = read_memory(lake.load(When.NEVER).zone, replaces_damaged=False).record
    assert memory is not None
    assert [one.place for one in memory.places] == [f"{lake.lake} sales/*", f"{lake.lake} stock/*"]
    assert memory.sources == {"orders": f"{lake.lake}/sales/orders", "parts": f"{lake.lake}/stock/parts"}


def test_processes_that_find_two_tables_of_one_name_agree_on_one(
    lake: DiskLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.add("a/items", "b/items2")
    lake.load()

    def interrupted(*arguments: object, **more: object) -> PlaceFinding:
        """Scan before the second table exists; another process has found the first by then."""
        monkeypatch.setattr(find_tables, "scan", scan)
        lake.add("b/orders")
        assert _sources(lake.load(When.REFRESH))["orders"] == f"{lake.lake}/b/orders"
        lake.add("a/orders")
        return scan(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(find_tables, "scan", interrupted)
    assert _sources(lake.load(When.REFRESH))["orders"] == f"{lake.lake}/b/orders"
    assert _sources(lake.load(When.NEVER))["orders"] == f"{lake.lake}/b/orders"


def test_a_scan_that_finds_nothing_new_writes_nothing(lake: DiskLake) -> None:
    lake.add("sales/orders", "sales/lines")
    lake.load()
    file = lake.root / "landing" / DISCOVERED
    before = file.stat()
    for _ in range(3):
        lake.load(When.REFRESH)
    lake.load(When.ACCEPT)
    assert file.stat() == before
    (lake.lake / "sales").rename(lake.root / "unmounted")
    for _ in range(2):
        lake.load(When.REFRESH)
    before = file.stat()
    for _ in range(3):
        lake.load(When.REFRESH)
    assert file.stat() == before, "a loss that lasts is written once"


@pytest.mark.usefixtures("_zone_is_unreachable")
def test_without_the_landing_zone_a_new_process_scans_for_itself(lake: DiskLake) -> None:
    lake.add("sales/orders", "sales/lines")
    config = lake.load()
    assert names(config) == ["lines", "orders"]
    ((code, trouble),) = _troubles(config)
    assert (code, "connection refused" in trouble) == (ErrorCode.STORE_UNAVAILABLE.value, True)
    assert not config.discovered.is_confirmed


def test_tables_that_were_found_without_the_memory_are_confirmed_by_the_next_reading(
    lake: DiskLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder may have the name of a known table: no run may land it before that is known."""
    lake.add("b/orders")
    assert lake.load().discovered.is_confirmed
    (lake.lake / "b").rename(lake.root / "unmounted")
    lake.add("backup/orders")
    with monkeypatch.context() as patched:
        _fail(patched, "read")
        config = lake.load()
        assert _sources(config)["orders"] == f"{lake.lake}/backup/orders"
        assert not config.discovered.is_confirmed
        assert not with_found_tables(config, When.REFRESH).discovered.is_confirmed
    confirmed = with_found_tables(config, When.NEVER)
    assert confirmed.discovered.is_confirmed
    assert _sources(confirmed)["orders"] == f"{lake.lake}/b/orders"


def test_without_landing_zone_and_scan_there_are_the_listed_tables(
    lake: DiskLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.add("sales/orders", "other/own")
    lake.configure(_RULE, "tables: {own: {source: {store: lake, path: other/own}, keys: [id]}}\n")
    with monkeypatch.context() as patched:
        _fail(patched, "read")
        lake.lake.rename(lake.root / "unmounted")
        config = lake.load()
        assert names(config) == ["own"]
        assert _troubles(config)[0][0] == ErrorCode.SOURCE_UNREADABLE.value
    (lake.root / "unmounted").rename(lake.lake)
    assert names(with_found_tables(config, When.REFRESH)) == ["own", "orders"], "the sensor's next scan"


def test_a_landing_zone_that_can_not_be_written_is_reported_and_holds_up_nothing(
    lake: DiskLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.add("sales/orders")
    lake.load()
    lake.add("sales/lines")

    def refuse(_: LocalStore, path: str, *__: object) -> None:
        raise STORE_DENIED(path=path, why="Permission denied")

    monkeypatch.setattr(LocalStore, "replace", refuse)
    config = lake.load(When.REFRESH)
    assert names(config) == ["lines", "orders"]
    ((code, trouble),) = _troubles(config)
    assert (code, "grant read and write on the landing zone" in trouble) == (ErrorCode.STORE_DENIED.value, True)
    assert names(lake.load()) == ["orders"]


def test_a_damaged_memory_drops_no_table_until_a_person_replaces_it(lake: DiskLake) -> None:
    lake.add("sales/orders", "sales/lines")
    config = lake.load()
    file = lake.root / "landing" / DISCOVERED
    file.write_text("{")
    (lake.lake / "sales").rename(lake.root / "unmounted")
    for _ in range(3):
        config = with_found_tables(config, When.REFRESH)
    assert names(config) == ["lines", "orders"]
    ((code, trouble),) = _troubles(config)
    assert (code, "discover --accept" in trouble) == (ErrorCode.LANDING_DAMAGED.value, True)
    assert file.read_text() == "{"
    (lake.root / "unmounted").rename(lake.lake / "sales")
    assert names(lake.load(When.ACCEPT)) == names(lake.load(When.NEVER)) == ["lines", "orders"]


def test_a_process_writes_a_deleted_memory_again(lake: DiskLake) -> None:
    lake.add("sales/orders", "sales/lines")
    config = lake.load()
    (lake.root / "landing" / DISCOVERED).unlink()
    (lake.lake / "sales").rename(lake.root / "unmounted")
    for _ in range(3):
        config = with_found_tables(config, When.REFRESH)
    assert names(config) == names(lake.load(When.NEVER)) == ["lines", "orders"]


@pytest.fixture
def stop() -> Iterator[Event]:
    stop = Event()
    yield stop
    stop.set()


def test_definitions_load_while_nothing_responds(lake: DiskLake, monkeypatch: pytest.MonkeyPatch, stop: Event) -> None:
    lake.add("sales/orders")

    def hang(*_: object) -> Listing:
        stop.wait()
        return Listing((), frozenset())

    with monkeypatch.context() as patched:
        patched.setattr(find_tables, "_LOADING_SECONDS", 0.5)
        patched.setattr(find_tables, "_ZONE_SECONDS", 0.2)
        patched.setattr(LocalStore, "read", hang)
        patched.setattr("mirror_assets.features.init.find_tables.list_folders", hang)
        for when in (When.UNKNOWN, When.NEVER):
            config = lake.load(when)
            assert names(config) == []
            assert "did not respond in time" in _troubles(config)[0][1]
    assert names(with_found_tables(config, When.REFRESH)) == ["orders"]


@pytest.mark.parametrize("when", [When.UNKNOWN, When.REFRESH])
def test_definitions_load_whatever_a_library_raises(
    lake: DiskLake, monkeypatch: pytest.MonkeyPatch, when: When
) -> None:
    def fail(*_: object) -> Listing:
        raise KeyError("answer")

    monkeypatch.setattr("mirror_assets.features.init.find_tables.list_folders", fail)
    ((code, trouble),) = _troubles(lake.load(when))
    assert (code, "KeyError: 'answer'" in trouble) == (ErrorCode.UNEXPECTED.value, True)


def test_two_rules_of_one_place_list_it_once(lake: DiskLake, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = list[str]()

    def counted(root: Access, pattern: str) -> Listing:
        listed.append(pattern)
        return list_folders(root, pattern)

    monkeypatch.setattr("mirror_assets.features.init.find_tables.list_folders", counted)
    lake.add("sales/orders", "sales/lines", "sales/items", "stock/parts")
    lake.configure(f"{_RULE}\n  - {_RULE}")
    lake.load()
    shutil.rmtree(lake.lake / "sales/lines")
    assert names(lake.load(When.REFRESH)) == ["items", "lines", "orders", "parts"], "one listing lacks it"
    assert names(lake.load(When.REFRESH)) == ["items", "orders", "parts"]
    assert len(listed) == 3


_ZONE = "https://onelake.dfs.fabric.microsoft.com/11111111-1111-1111-1111-111111111111"
_ITEM = "22222222-2222-2222-2222-222222222222"
_CREDENTIALS: dict[str, Callable[[Path], tuple[str, str]]] = {
    "of the landing zone": lambda root: (
        f"landing_zone: {{onelake: {{url: '{_ZONE}/{_ITEM}/Files/LandingZone', credential: client_secret}}}}",
        f"lake: {{root: '{root}/lake'}}",
    ),
    "of the store": lambda root: (
        f"landing_zone: {{path: '{root}/landing'}}",
        "lake: {root: 's3://acme/', credential: environment, env_prefix: SALES_, endpoint: 'http://127.0.0.1:9'}",
    ),
}


@pytest.mark.parametrize("missing", _CREDENTIALS)
def test_a_missing_variable_of_a_credential_fails_no_load(
    lake: DiskLake, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    lake.add("sales/orders", "own")
    zone, store = _CREDENTIALS[missing](lake.root)
    tables = f"tables: {{own: {{source: '{lake.lake}/own', keys: [id]}}}}"
    (lake.root / "mirror.yaml").write_text(f"{zone}\nstores: {{{store}}}\ndiscover: [{_RULE}]\n{tables}\n")
    config = lake.load()
    assert names(config) == (["own"] if missing == "of the store" else ["own", "orders"])
    ((code, trouble),) = _troubles(config)
    assert code == ErrorCode.CREDENTIAL_UNFIT.value
    assert "AZURE_CLIENT_" in trouble or "SALES_AWS_" in trouble


def test_a_request_without_an_answer_ends_at_its_own_limit_at_that_of_all_and_before_the_spare_time() -> None:
    never = Event()
    try:
        for limit, at_most, spare in ((TimeLimit(60), 0.05, 0), (TimeLimit(0.05), 60, 0), (TimeLimit(60), 60, 60)):
            with pytest.raises(MirrorError, match="the store did not respond in time"):
                limit.call("the store", never.wait, at_most=at_most, spare=spare)
    finally:
        never.set()
