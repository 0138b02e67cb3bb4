from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.composition import spark_settings_of
from mirror_assets.config.errors import CONFIG_MISSING, MISTAKES
from mirror_assets.config.load import load_config, load_mirror, parse_config
from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import StorePath, TableConfig
from mirror_assets.errors import ErrorCode
from mirror_assets.zones.landing_zone import LandingZoneConfig
from mirror_assets_tests.config.reading import read
from mirror_assets_tests.errors import raises_row

MINIMAL = """\
landing_zone:
  path: landing
tables:
  planes:
    source: lake/planes
    keys: [tailnum]
"""


def test_a_minimal_file_has_every_default() -> None:
    config = read(MINIMAL)
    assert config.file == Path("/etc/mirror.yaml")
    assert config.landing_zone.path == Path("/etc/landing")
    assert config.mirror.path == Path("/etc/mirror")
    assert config.spark.settings == {}
    assert config.table("planes").slices.max_bytes == 16 << 30


def test_settings_of_every_kind_are_read() -> None:
    config = read(
        MINIMAL
        + """\
    changes: feed
    start: snapshot
    on_break: rebuild
    slices: {max_commits: 2, max_rows: 1_000, max_bytes: 1.5 GiB}
    files: {target_rows: 10}
    lag: {warn_seconds: 0.5, error_seconds: 2}
mirror: {path: /data/mirror}
spark:
  settings: {spark.a: true, spark.b: 7, spark.c: 0.5, spark.d: text}
"""
    )
    table = config.table("planes")
    assert table.slices.model_dump() == {"max_commits": 2, "max_rows": 1000, "max_bytes": 3 << 29}
    assert table.files.target_rows == 10
    assert config.mirror.path == Path("/data/mirror")
    assert config.spark.settings == {"spark.a": "true", "spark.b": "7", "spark.c": "0.5", "spark.d": "text"}


def test_variables_reach_every_kind_of_setting() -> None:
    text = MINIMAL.replace("lake/planes", "${LAKE}/planes").replace("[tailnum]", '["${KEY:-tailnum}"]')
    table = read(text + "    slices: {max_rows: '${ROWS}'}\n", LAKE="s3://lake", ROWS="500").table("planes")
    assert (table.source, table.keys, table.slices.max_rows) == ("s3://lake/planes", ("tailnum",), 500)


def test_a_secret_from_the_environment_is_taken_and_not_shown() -> None:
    config = read(MINIMAL + 'spark: {settings: {spark.account.key.x: "${KEY}"}}\n', KEY="hush")
    assert config.spark.settings["spark.account.key.x"] == "${KEY}"
    assert spark_settings_of(config).filled({"KEY": "hush"})["spark.account.key.x"] == "hush"
    assert "hush" not in repr(config) + config.model_dump_json()


def test_anchors_share_settings() -> None:
    text = MINIMAL.replace("[tailnum]", "&keys [tailnum]") + "  other: {source: o, keys: *keys}\n"
    assert read(text).table("other").keys == ("tailnum",)


@pytest.mark.parametrize("uri", ["file:///lake/a b", "file:/lake/a%20b", "FILE://localhost/lake/a%20b"])
def test_a_file_uri_is_the_path_that_it_names(uri: str) -> None:
    assert read(MINIMAL.replace("lake/planes", uri)).table("planes").source == "/lake/a b"


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        ("abfss://a@b/c", "abfss://a@b/c"),
        ("s3a://b/c/", "s3://b/c"),
        ("hdfs://n:80/c", "hdfs://n:80/c"),
        ("wasbs://a@x.blob.core.windows.net/c%20d", "abfss://a@x.dfs.core.windows.net/c d"),
        (
            "https://onelake.dfs.fabric.microsoft.com/w/i/Tables/t",
            "abfss://w@onelake.dfs.fabric.microsoft.com/i/Tables/t",
        ),
    ],
)
def test_an_address_gets_the_spelling_that_both_readers_take(written: str, taken: str) -> None:
    assert read(MINIMAL.replace("lake/planes", f'"{written}"')).table("planes").source == taken


def test_the_file_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.yaml").write_text(MINIMAL)
    (tmp_path / "mirror.yaml").write_text(MINIMAL.replace("planes:", "jets:"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIRROR_CONFIG", raising=False)
    assert list(load_config().tables) == ["jets"]
    assert load_config().landing_zone.path == tmp_path / "landing"
    monkeypatch.setenv("MIRROR_CONFIG", "other.yaml")
    assert list(load_config().tables) == ["planes"]
    assert list(load_config(Path("mirror.yaml")).tables) == ["jets"]


def test_no_file(tmp_path: Path) -> None:
    with raises_row(CONFIG_MISSING, match=r"No such file.*MIRROR_CONFIG") as missing:
        load_config(tmp_path / "mirror.yaml")
    assert missing.value.code is ErrorCode.CONFIG_INVALID
    with raises_row(CONFIG_MISSING, match="Is a directory"):
        load_config(tmp_path)


def test_all_mistakes_are_reported_at_once_by_line() -> None:
    text = MINIMAL.replace("path: landing", "pat: landing").replace("[tailnum]", "tailnum") + "  planes: {}\n"
    with raises_row(MISTAKES) as invalid:
        read(text)
    first, *mistakes = str(invalid.value).splitlines()[:4]
    assert first == "/etc/mirror.yaml has 3 mistakes:"
    for mistake, expected in zip(
        mistakes, ("2: landing_zone.pat: unknown", "6: tables.planes.keys:", "7: tables.planes:"), strict=True
    ):
        assert mistake.startswith(f"/etc/mirror.yaml:{expected}")
    assert invalid.value.code is ErrorCode.CONFIG_INVALID


def test_a_file_that_is_not_utf_8_names_the_line() -> None:
    with raises_row(MISTAKES, match=":7: it is not UTF-8: byte 0xE9; save it as UTF-8"):
        parse_config((MINIMAL + "    # caf\xe9\n").encode("latin-1"), Path("mirror.yaml"), {})


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with raises_row(MISTAKES) as invalid:
        parse_config(text, Path("mirror.yaml"), {})
    assert invalid.value.facts["problems"]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), st.lists))
def test_any_value_of_any_setting_is_read_or_refused(value: object) -> None:
    settings = ("landing_zone", "history", "mirror", "spark", "defaults", "tables")
    text = "\n".join(f"{setting}: {value!r}" for setting in settings)
    with raises_row(MISTAKES):
        read(text)


_IN_CI = """\
landing_zone:
  onelake: {url: "https://${HOST}/${WORKSPACE}/${ITEM}/Files/LandingZone", credential: client_secret}
stores:
  lake: {root: "${LAKE}", credential: environment, env_prefix: LAKE_}
  silver: {root: "abfss://${CONTAINER}@acme.dfs.core.windows.net/", credential: client_secret}
catalogs: {main: {type: unity, url: "${CATALOG}", token_variable: UC_TOKEN}}
metrics: {prometheus: {port: "${PORT}"}}
discover: [{from: {store: lake, path: "*/"}, keys: {default: [id]}}]
tables:
  sales.orders: {source: {store: lake, path: orders}, keys: [id], where: "country <> '${HIDDEN}'"}
  sales.items: {source: {store: silver, path: items}, keys: [id], columns: [{c: "sha2(c, '${SALT}')"}]}
  sales.lines: {source: "${ROOT}/lines", keys: [id]}
"""


def test_definitions_load_without_the_variables_of_their_runs(tmp_path: Path) -> None:
    (tmp_path / "mirror.yaml").write_text(_IN_CI.replace("${HOST}", "onelake.dfs.fabric.microsoft.com"))
    config = load_mirror(tmp_path / "mirror.yaml")
    assert [str(name) for name in config.names] == ["sales.orders", "sales.items", "sales.lines"]
    with raises_row(MISTAKES, match="WORKSPACE is not set") as refused:
        config.require_variables()
    problems = refused.value.facts["problems"]
    assert [problem.line for problem in problems] == [2, 4, 5, 6, 7, 12]
    assert "HIDDEN" not in str(refused.value)  # reading this table reports it; the others are mirrored
    with raises_row(MISTAKES, match="WORKSPACE is not set"):
        load_config(tmp_path / "mirror.yaml")


def test_mistakes_are_reported_whether_variables_are_set_or_not(tmp_path: Path) -> None:
    text = _IN_CI.replace("${HOST}", "onelake.dfs.fabric.microsoft.com").replace(
        "keys: [id], where", "key: [id], where"
    )
    (tmp_path / "mirror.yaml").write_text(text)
    with raises_row(MISTAKES) as refused:
        load_mirror(tmp_path / "mirror.yaml")
    assert {problem.line for problem in refused.value.facts["problems"]} == {10}


def test_a_mirror_is_made_of_a_path_a_mapping_or_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mirror.yaml").write_text(
        "landing_zone: {path: landing}\nstores: {lake: {root: lake}}\ndefaults: {compact: true}\n"
        "tables: {planes: {source: {store: lake, path: planes}, keys: [tailnum]}}\n"
    )
    mapping = {
        "landing_zone": LandingZoneConfig(path=Path("landing")),
        "stores": {"lake": {"root": Path("lake")}},
        "defaults": {"compact": True},
        "tables": {"planes": TableConfig(source=StorePath("lake", "planes"), keys=("tailnum",))},
    }
    made = [load_mirror(source) for source in ("mirror.yaml", Path("mirror.yaml"), mapping, Config(**mapping))]
    assert len({config.model_dump_json() for config in made}) == 1
    assert {config.table("planes").compact for config in made} == {True}
    assert load_mirror(made[0]) is made[0]
    for wrong in ({**mapping, "tables": {"planes": {"source": "x"}}}, {**mapping, "tabels": {}}):
        with raises_row(MISTAKES, match=r"^mirror has one mistake:\nmirror: tab"):
            load_mirror(wrong)


def test_a_file_with_the_name_of_settings_made_in_python_has_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mirror").write_text("landing_zone: {path: landing}\ntables: {planes: {source: x}}\n")
    with raises_row(MISTAKES) as refused:
        load_config(Path("mirror"))
    assert [problem.line for problem in refused.value.facts["problems"]] == [2]
