"""Every mistake that mirror.yaml can have: where it is reported, and what is said."""

# ruff: noqa: E501 - one mistake a line reads as a table

from __future__ import annotations

import pytest

from mirror_assets.config.table_settings import TableConfig
from mirror_assets_tests.config.reading import mistake, mistakes, read

# Each case is added to this file, whose own last line is line 7.
BASE = """\
landing_zone:
  path: landing
tables:
  planes:
    source: lake/planes
    keys: [tailnum]
    start: snapshot
"""
LINE = BASE.count("\n") + 1


TABLE_MISTAKES = [
    ("archive: {}", f"archive: unknown setting; it is one of: {', '.join(TableConfig.model_fields)}"),
    ("onbreak: hold", "onbreak: unknown setting; did you mean 'on_break'?"),
    ("changes: cdc", "changes: expected 'feed', 'row_tracking', 'files' or 'append_only', got 'cdc'"),
    ("columns: []", "columns: it must not be empty"),
    ("columns: id", "columns: expected a list, like [one, two], got 'id'"),
    ("columns: [a, A]", "columns: 'A' and 'a' are the same column"),
    ("columns: [a, {A: b}]", "columns: 'A' and 'a' are the same column"),
    ("columns: [5]", "columns.0: expected text (quotes make it text), got 5"),
    ("columns: {}", "columns: it must not be empty"),
    ("columns: {a: 7}", "columns.a: expected settings below it (name: value), got 7"),
    ("columns: {a: ''}", "columns.a.sql: it must not be empty"),
    ("columns: {a: {type: int}}", "columns.a.sql: this setting is missing"),
    ("columns: [{a: {sql: b, typ: int}}]", "columns.0.a: unknown setting 'typ'; did you mean 'type'?"),
    ("columns: {a: {sql: b, type: 'decimal(39,2)'}}", "columns.a.type: 'decimal(39,2)' can't land; it must be one of tinyint, smallint, int, bigint, float, double, boolean, string, binary, date, timestamp, timestamp_ntz, decimal(p,s)"),
    ("columns: {a: 'concat(b, ${UNSET_SALT})'}", "columns.a: the environment variable UNSET_SALT is not set; set it, or write ${UNSET_SALT:-default}"),
    ("where: ''", "where: it must not be empty"),
    ("where: [a]", "where: expected text (quotes make it text), got a list"),
    ("on_drop_column: hold", "on_drop_column: expected 'keep' or 'rebuild', got 'hold'"),
    ("on_break: stop", "on_break: expected 'rebuild', 'repair' or 'hold', got 'stop'"),
    ("on_break:", "on_break: expected 'rebuild', 'repair' or 'hold', got nothing"),
    ("slices:", "slices: expected settings below it (name: value), got nothing"),
    ("slices: 5", "slices: expected settings below it (name: value), got 5"),
    ("slices: {max_rows: 0}", "slices.max_rows: it must be greater than or equal to 1"),
    ("slices: {max_rows: many}", "slices.max_rows: expected a whole number, got 'many'"),
    ("slices: {max_rows: 1.5}", "slices.max_rows: expected a whole number, got 1.5"),
    ("slices: {max_rows: true}", "slices.max_rows: expected a number, got true"),
    ("slices: {max_rows: }", "slices.max_rows: expected a whole number, got nothing"),
    ("slices: {max_bytes: 16 XB}", "slices.max_bytes: expected a size like 16GiB (units: B, KiB, MiB, GiB, TiB, KB, MB, GB, TB), got '16 XB'"),
    ("slices: {max_bytes: 0.1B}", "slices.max_bytes: '0.1B' is not a whole number of bytes"),
    ("lag: {warn_seconds: 0}", "lag.warn_seconds: it must be greater than 0"),
    ("lag: {warn_seconds: .inf}", "lag.warn_seconds: it must be a finite number"),
    ("lag: {warn_seconds: soon}", "lag.warn_seconds: expected a number, got 'soon'"),
    ("source: other", "source: it is already set on line 5"),
    ("lag: {warn_seconds: 1, warn_seconds: 2}", f"lag.warn_seconds: it is already set on line {LINE}"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), TABLE_MISTAKES)
def test_mistakes_in_a_table(line: str, expected: str) -> None:
    assert mistakes(f"{BASE}    {line}\n") == [f"{LINE}: tables.planes.{expected}"]


KEYS_NEEDED = (
    "`changes: feed` and `changes: files` need `keys`, the columns that identify a row; `changes: row_tracking` can do "
    "without, and so can `changes: append_only`, for a table whose rows never change"
)
REPLACED = [
    ("    keys: [tailnum]\n", "", f"4: tables.planes.keys: {KEYS_NEEDED}"),
    ("[tailnum]", "[]", f"6: tables.planes.keys: {KEYS_NEEDED}"),
    ("[tailnum]", "tailnum", "6: tables.planes.keys: expected a list, like [one, two], got 'tailnum'"),
    ("[tailnum]", "[7]", "6: tables.planes.keys.0: expected text (quotes make it text), got 7"),
    ("[tailnum]", "\n    - a\n    - no", "8: tables.planes.keys.1: expected text (quotes make it text), got false"),
    ("[tailnum]", "['']", "6: tables.planes.keys.0: it must not be empty"),
    ("[tailnum]", "[a, b, A]", "6: tables.planes.keys: 'A' and 'a' are the same column"),
    ("start: snapshot", "start: {version: -3}", "7: tables.planes.start: expected 'snapshot', 'latest', {version: N} or {timestamp: yyyy-MM-dd HH:mm:ss}, got {version: -3}"),
    ("start: snapshot", "start: {timestamp: 2026-02-30}", "7: tables.planes.start: no such time: '2026-02-30' (day is out of range for month)"),
    ("start: snapshot", "start: now", "7: tables.planes.start: expected 'snapshot', 'latest', {version: N} or {timestamp: yyyy-MM-dd HH:mm:ss}, got 'now'"),
    ("lake/planes", "{table: a.b.c}", "5: tables.planes.source: expected a path, an address, {store: <name in stores>, path: <path below its root>}, or {catalog: <name in catalogs>, table: <schema>.<table>}"),
    ("lake/planes", "", "5: tables.planes.source: expected text (quotes make it text), got nothing"),
    ("lake/planes", "' '", "5: tables.planes.source: expected a path, got an empty text"),
    ("lake/planes", "~/planes", "5: tables.planes.source: `~` is not expanded in '~/planes'; write ${HOME}"),
    ("lake/planes", "${LAKE}", "5: tables.planes.source: the environment variable LAKE is not set; set it, or write ${LAKE:-default}"),
    ("lake/planes", "${LAKE", "5: tables.planes.source: `${` must begin a reference; write ${NAME} or ${NAME:-default}"),
    ("lake/planes", "!!python/name:os.system x", "5: tables.planes.source: the tag !!python/name:os.system can't be used here"),
    ("lake/planes", "landing/planes", "5: tables.planes.source: /etc/landing/planes overlaps with landing_zone.path on line 2; use separate folders"),
    ("lake/planes", "file:///etc/landing/planes", "5: tables.planes.source: /etc/landing/planes overlaps with landing_zone.path on line 2; use separate folders"),
    ("lake/planes", "file://host/lake", "5: tables.planes.source: 'file://host/lake' names another machine; write file:///path or the path itself"),
    ("lake/planes", "lake/a%41", "5: tables.planes.source: 'lake/a%41' has a percent sign and two digits, which readers of Delta tables decode"),
    ("lake/planes", ".", "5: tables.planes.source: /etc overlaps with landing_zone.path on line 2; use separate folders"),
    ("    source: lake/planes\n", "", "4: tables.planes.source: this setting is missing"),
    ("path: landing", "path: mirror/x", "1: mirror.path: /etc/mirror overlaps with landing_zone.path on line 2; use separate folders"),
    ("path: landing", "path: abfss://a@b/c", "2: landing_zone.path: expected a folder on this machine, got 'abfss://a@b/c'"),
    ("path: landing", "path: 7", "2: landing_zone.path: expected a path, got 7"),
    ("  path: landing", "  path: landing\n  onelake: {url: x}", "3: landing_zone.onelake: expected the GUIDs of workspace and item, not their names: write https://onelake.dfs.fabric.microsoft.com/<workspace GUID>/<item GUID>/Files/LandingZone, or paste the address of the mirrored database's page in the portal"),
    ("landing_zone:\n  path: landing\n", "", "1: landing_zone: this setting is missing"),
    ("  planes:", "  a.b.planes:", "4: tables.a.b.planes: name 'a.b.planes' can't be used in a landing zone: it has more than one dot; write [schema.]table."),
    ("  planes:", "  _planes:", "4: tables._planes: name '_planes' can't be used in a landing zone: Fabric ignores names that start with an underscore."),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), REPLACED)
def test_mistakes_in_place_of_a_setting(old: str, new: str, expected: str) -> None:
    assert BASE.count(old) == 1
    assert mistakes(BASE.replace(old, new)) == [expected]


ELSEWHERE = [
    ("landing: {}", "landing: unknown setting; did you mean 'landing_zone'?"),
    ("automation: {checks_every_minutes: 7}", "automation.checks_every_minutes: expected auto, null or one of 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60"),
    ("mirror:", "mirror: expected settings below it (name: value), got nothing"),
    ("defaults: {source: x}", "defaults.source: unknown setting; did you mean 'source_asset'?"),
    ("spark: {settings: {sql.x: 1}}", "spark.settings.sql.x: expected a name that starts with `spark.`, because Spark ignores others, got 'sql.x'"),
    ("spark: {settings: {spark.x: [1]}}", "spark.settings.spark.x: expected text (quotes make it text), got a list"),
    ("spark: {settings: {spark.x: }}", "spark.settings.spark.x: expected text (quotes make it text), got nothing"),
    ("? [a]\n: 1", "a name must be text, not a list or a mapping"),
    ("mirror: &a {path: *a}", "mirror.path: this alias refers to itself"),
    ("mirror: {path: !!int x}", "mirror.path: 'x' can't be read as int"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ELSEWHERE)
def test_mistakes_beside_the_tables(text: str, expected: str) -> None:
    assert mistakes(f"{BASE}{text}\n") == [f"{LINE}: {expected}"]


@pytest.mark.parametrize(
    "name",
    ["spark.x.password", "spark.ssl.keyPassword", "spark.client.secret", "spark.account.key.lake", "spark.sas-token"],
)
@pytest.mark.parametrize("value", ["plain", "7", '"${UNSET:-plain}"'])
def test_secrets_must_come_from_the_environment(name: str, value: str) -> None:
    found = mistake(f"{BASE}spark: {{settings: {{{name}: {value}}}}}\n")
    assert found.startswith(f"{LINE}: spark.settings.{name}: this looks like a secret; keep it in an environment")


def test_two_tables_in_one_folder() -> None:
    found = mistake(f"{BASE}  Planes: {{source: x, keys: [a]}}\n")
    assert found == f"{LINE}: tables.Planes: its landing folder is that of 'planes' on line 4; choose another name"


def test_keys_are_needed_unless_changes_do_without() -> None:
    text = BASE.replace("[tailnum]", "[]") + "defaults: {keys: [id]}\n"
    assert mistake(text) == f"6: tables.planes.keys: {KEYS_NEEDED}", "an empty list overrides the defaults"
    assert (
        mistake(text.replace("{keys: [id]}", "{keys: [id], changes: files}")) == f"6: tables.planes.keys: {KEYS_NEEDED}"
    )
    assert read(BASE.replace("keys: [tailnum]", "changes: append_only")).table("planes").keys == ()


@pytest.mark.parametrize("tables", ["tables: {}", "tables:"])
def test_no_tables(tables: str) -> None:
    assert mistake(f"landing_zone: {{path: l}}\n{tables}\n").startswith("2: tables: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1: the file is empty"),
        ("# nothing\n", "1: the file is empty"),
        ("just text", "1: expected settings below it (name: value), got 'just text'"),
        ("- a list", "1: expected settings below it (name: value), got a list"),
        ("a: 1\nb: c: d\n", "2: this is not YAML: mapping values are not allowed here"),
        ("a: 1\n---\nb: 1\n", "2: this is not YAML: expected a single document in the stream, but found another document"),
        ("a: 1\nb: *c\n", "2: this is not YAML: found undefined alias 'c'"),
        ("a: 'b\n", "2: this is not YAML: while scanning a quoted scalar, found unexpected end of stream"),
        ("a: \x01", "1: this is not YAML: unacceptable character #x0001: special characters are not allowed"),
        ("[" * 5000, "1: the file is nested too deeply"),
        ("a: {b: ${X}}", "1: this is not YAML: while parsing a flow mapping, expected ',' or '}', but got '{'; inside { } and [ ] put quotes around ${NAME}"),
    ],
)  # fmt: skip
def test_what_is_not_a_configuration(text: str, expected: str) -> None:
    assert mistakes(text) == [expected]


@pytest.mark.parametrize(
    "source", ["s3a://ID:hush-hush@lake/planes", "https://a.blob.core.windows.net/l/p?sv=1&sig=hush-hush"]
)
def test_a_source_holds_no_credentials(source: str) -> None:
    found = mistake(BASE.replace("lake/planes", f"'{source}'"))
    assert found.startswith("5: tables.planes.source: credentials in a URI")
    assert "hush" not in found
