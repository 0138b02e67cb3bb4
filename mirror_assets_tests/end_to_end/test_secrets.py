"""No secret leaves the environment: not into the noisiest logs, Dagster's storage, messages or the landing zone."""

from __future__ import annotations

import json
import logging
import sqlite3
import uuid
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster_graphql.cli import execute_query
from deltalake import write_deltalake
from werkzeug.wrappers import Response

from mirror_assets.cli import main
from mirror_assets.composition import open_spark, spark_settings_of
from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.encode.jvm import Jvm
from mirror_assets.orchestration.check_jobs import ALL_CHECKS
from mirror_assets.orchestration.jobs import REPLICATE
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, MirrorAssets
from mirror_assets.orchestration.resources import resources
from mirror_assets.zones.onelake.clients import shared_clients
from mirror_assets.zones.onelake.onelake_zone import Staging
from mirror_assets_tests import figures
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, PREFIX, REGION, S3Server
from mirror_assets_tests.worlds.onelake import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.lab import OneLakeLab

_FEED = {"delta.enableChangeDataFeed": "true"}
_PARTITIONS = "spark.sql.shuffle.partitions"
PLANTED = "planted-secret-that-is-wrong-0123456789"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Dagster's storage; clients of another test hold another test's secret."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    shared_clients.cache_clear()
    yield tmp_path / "home"
    shared_clients.cache_clear()


@pytest.fixture
def zone(lab: Lab, signed_in: LoopbackOneLake) -> OneLakeLab:
    """The lab's table, mirrored into OneLake by whom the environment names."""
    return OneLakeLab.on(lab, signed_in, Staging.UPLOAD)


@pytest.fixture
def planted(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The lab's table, with settings of Spark from the environment."""
    monkeypatch.setenv("PLANTED", PLANTED)
    monkeypatch.setenv("PARTITIONS", "2")
    settings = {"spark.hadoop.fs.lake.account.key": "${PLANTED}", "spark.mine": "x-${PLANTED}-x"}
    written = ", ".join(f'{name}: "{value}"' for name, value in settings.items())
    text = lab.config_file.read_text()
    lab.config_file.write_text(f'{text}spark: {{settings: {{{written}, {_PARTITIONS}: "${{PARTITIONS}}"}}}}\n')
    return lab


def stored(home: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of Dagster's storage, and every value in its databases, unpacked."""
    yield from written(home)
    for path in home.rglob("*.db"):
        with closing(sqlite3.connect(path)) as database:
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                for row in database.execute(f'SELECT * FROM "{table}"'):
                    yield from ((f"{path.name}: {table}", _unpacked(value)) for value in row)


def _unpacked(value: object) -> bytes:
    """The value as bytes; Dagster packs its snapshots of jobs."""
    if not isinstance(value, bytes):
        return str(value).encode()
    try:
        return zlib.decompress(value)
    except zlib.error:
        return value


def written(*roots: Path) -> Iterator[tuple[str, bytes]]:
    for root in roots:
        yield from ((str(path), path.read_bytes()) for path in root.rglob("*") if path.is_file())


def test_successful_and_failed_runs_show_no_secret(
    zone: OneLakeLab,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    config = ["--config", str(zone.lab.config_file)]
    assert main(["run", *config]) == 0
    right = zone.server.principal.secret
    monkeypatch.setenv("AZURE_CLIENT_SECRET", PLANTED)
    shared_clients.cache_clear()
    assert main(["status", *config]) == 2
    out, err = capfd.readouterr()
    assert "could not be reached as this identity" in err
    told = {"log": caplog.text, "out": out, "err": err}
    files = dict(written(home, zone.lab.root))
    files |= {path: zone.item.read(path) for path in zone.item.paths()}
    assert zone.server.entra.tokens
    for secret in (right, PLANTED, *zone.server.entra.tokens):
        assert [name for name, text in told.items() if secret in text] == []
        assert [name for name, data in files.items() if secret.encode() in data] == []
    assert "azure" in caplog.text, "the noisiest logs were not checked"


def test_no_setting_of_spark_or_dagster_holds_a_secret(zone: OneLakeLab) -> None:
    zone.lab.config_file.write_text(zone.lab.config_file.read_text().replace("staging: upload", "staging: direct"))
    config = load_config(zone.lab.config_file)
    secret = zone.server.principal.secret
    settings = spark_settings_of(config).filled()
    assert "${env.AZURE_CLIENT_SECRET}" in settings.values()
    dumped = [
        str(settings),
        config.model_dump_json(),
        repr(config),
        *map(repr, resources(MirrorAssets(config)).values()),
    ]
    assert [text for text in dumped if secret in text] == []


def test_settings_from_the_environment_reach_spark_and_nothing_of_dagsters(
    planted: Lab, home: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    assert main(["run", "--json", "--config", str(planted.config_file)]) == 0
    session = open_spark(planted.config, str(TABLE))
    assert session.conf.get("spark.mine") == f"x-{PLANTED}-x"
    hadoop = Jvm(session).session.sessionState().newHadoopConf()
    assert hadoop.get("fs.lake.account.key") == PLANTED
    config = planted.config
    told = [*capfd.readouterr(), caplog.text, repr(config), str(config), config.model_dump_json()]
    assert [text for text in told if PLANTED in text] == []
    assert [name for name, data in stored(home) if PLANTED.encode() in data] == []
    assert any(str(TABLE).encode() in data for _, data in stored(home)), "Dagster's storage was not looked at"


@pytest.mark.parametrize("command", ["run", "check", "history"])
def test_a_setting_that_spark_refuses_is_reported_by_its_reference(
    mirrored: Lab,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    command: str,
) -> None:
    """The step of the history's asset fails with a traceback, and its causes, in the events of its run."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("PARTITIONS", PLANTED)
    mirrored.sql("UPDATE {t} SET amount = 300 WHERE id = 2")
    mirrored.replicator.poll()
    text = mirrored.config_file.read_text() + ("    history: slices\n" if command == "history" else "")
    mirrored.config_file.write_text(f'{text}spark: {{settings: {{{_PARTITIONS}: "${{PARTITIONS}}"}}}}\n')
    assert main([command, "--config", str(mirrored.config_file)]) != 0
    out, err = capfd.readouterr()
    files = list(stored(home))
    if command == "history":
        assert any(b"RedactedError" in data and b"${PARTITIONS}" in data for _, data in files), "no crash was checked"
    else:
        assert "${PARTITIONS}" in out + err
    assert [text for text in (out, err, caplog.text) if PLANTED in text] == []
    assert [name for name, data in files if PLANTED.encode() in data] == []


def test_a_mistake_in_the_file_shows_what_is_written_there(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = PLANTED * 3
    monkeypatch.setenv("PLANTED", secret)
    text = lab.config_file.read_text().replace("keys: [id]", 'keys: "${PLANTED}"\n    start: "${PLANTED}"')
    lab.config_file.write_text(text.replace("{path: ./mirror}", '"${PLANTED}"'))
    with raises_row(MISTAKES) as raised:
        load_config(lab.config_file)
    assert str(raised.value).count("${PLANTED}") == 3
    assert PLANTED not in str(raised.value)


def test_the_web_server_answers_with_references(planted: Lab, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRROR_CONFIG", str(planted.config_file))
    assert main(["run", "--config", str(planted.config_file)]) == 0
    origin = ModuleTarget("mirror_assets.definitions", None, str(Path(__file__).parents[2]), "mirror_assets")
    with dg.DagsterInstance.get() as instance, WorkspaceProcessContext(instance, origin) as context:
        answers = {query: json.dumps(execute_query(context, query)) for query in _QUERIES}
    assert [query for query, answer in answers.items() if '"errors"' in answer] == []
    assert [query for query, answer in answers.items() if PLANTED in answer] == []
    assert any("${PLANTED}" in answer for answer in answers.values()), "the resource was not looked at"
    assert home.exists()


_REPOSITORY = '{repositoryName: "__repository__", repositoryLocationName: "mirror_assets"}'
_QUERIES = (
    f"""{{ allTopLevelResourceDetailsOrError(repositorySelector: {_REPOSITORY}) {{ ... on ResourceDetailsList {{
    results {{ name resourceType configFields {{ name description defaultValueAsJson }}
    configuredValues {{ key value type }} }} }} }} }}""",
    """{ runConfigSchemaOrError(selector: {repositoryName: "__repository__", repositoryLocationName: "mirror_assets",
    pipelineName: "mirror_all"}) { ... on RunConfigSchema { rootDefaultYaml allConfigTypes { key description
    ... on CompositeConfigType { fields { name defaultValueAsJson } } } } } }""",
    """{ runsOrError { ... on Runs { results { runId runConfigYaml tags { key value }
    eventConnection { events { __typename ... on MessageEvent { message level }
    ... on EngineEvent { metadataEntries { label description } } } } } } } }""",
)


def test_keys_of_sources_are_nowhere_in_dagsters_storage(
    lab: Lab,
    s3: S3Server,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A run that works, one with a wrong key, and one whose key may not read; the launched run's events, too."""
    caplog.set_level(logging.DEBUG)
    root, rows = f"s3://{BUCKET}/{uuid.uuid4().hex}", pa.table({"id": [1, 2]})
    write_deltalake(f"{root}/orders", rows, configuration=_FEED, storage_options=s3.options)
    place = f'region: {REGION}, endpoint: "{s3.url}", credential: environment, env_prefix: {PREFIX}'
    lab.config_file.write_text(
        "landing_zone: {path: ./landing}\nautomation: {mode: batch}\n"
        f'stores: {{lake: {{root: "{root}", {place}}}}}\n'
        "tables: {orders: {source: {store: lake, path: orders}, keys: [id]}}\n"
    )
    config = ["--config", str(lab.config_file)]
    assert main(["run", *config]) == 0
    write_deltalake(f"{root}/orders", rows, mode="append", storage_options=s3.options)
    monkeypatch.setenv(f"{PREFIX}AWS_SECRET_ACCESS_KEY", PLANTED)
    assert main(["run", *config]) == 2
    s3.fault = lambda _: Response(b"<Error><Code>AccessDenied</Code></Error>", 403)
    assert main(["run", *config]) == 2
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("moto", "botocore"))]
    told = [*capfd.readouterr(), *ours]
    assert any("can't be read" in text for text in told), "no failure was looked at"
    everything = [(name, data) for name, data in (*stored(home), *written(lab.root))]
    assert any(root.encode() in data for _, data in stored(home)), "the source's address was not looked at"
    for secret in (s3.keys.secret, PLANTED):
        assert [text for text in told if secret in text] == []
        assert [name for name, data in everything if secret.encode() in data] == []


_WORDS = "words of a row"
_BAD = {
    "unknown column": "nme || '${SALT}'",
    "syntax": "name || '${SALT}",
    "type": "name + array('${SALT}')",
    "struct": "named_struct('${SALT}', name)",
    "value": "string(CAST(name || '${SALT}' AS INT))",
}


def test_secrets_of_expressions_and_masked_values_are_nowhere_outside_of_the_lake(
    lab: Lab,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The salt of a mask, in runs that work and in runs that fail for each kind of reason."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SALT", f"{PLANTED} '\\ \"")
    lab.sql(f"UPDATE {{t}} SET name = '{_WORDS}' WHERE id = 3")
    outcomes: dict[str, bool] = {}
    with dg.DagsterInstance.get() as instance:
        for name, sql in {"good": "sha2(concat(name, '${SALT}'), 256)", **_BAD}.items():
            lab.configure(f"where: name <> '${{SALT}}'\n    columns:\n      name: \"{sql}\"")
            for job in (MIRROR_ALL, REPLICATE, ALL_CHECKS) if name == "good" else (MIRROR_ALL,):
                definitions = build_definitions(lab.config).resolve_job_def(job)
                run = definitions.execute_in_process(instance=instance, raise_on_error=False)
                outcomes[f"{name}: {job}"] = run.success
    assert [name for name, success in outcomes.items() if not success] == [f"{name}: {MIRROR_ALL}" for name in _BAD]
    told = {"log": caplog.text, "settings": repr(lab.config), **capfd.readouterr()._asdict()}
    searched = [(name, text.encode()) for name, text in told.items()]
    searched += [*stored(home), *written(lab.root / "landing", lab.root / "mirror", lab.config_file)]
    assert any(b"its value is struct" in data for _, data in stored(home)), "no refusal was looked at"
    for secret in (PLANTED, _WORDS):
        assert [name for name, data in searched if secret.encode() in data] == []
    figures.report("secrets", "places searched", len(searched))
    figures.report("secrets", "bytes searched", sum(len(data) for _, data in searched))
