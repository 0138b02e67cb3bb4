"""The files in deploy/ are valid, agree with each other and with docs/production.md, and have no secret."""

from __future__ import annotations

import configparser
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml
from dagster._core.instance.config import dagster_instance_config
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.workspace.load import location_origins_from_yaml_paths

from mirror_assets.config.load import CONFIG_VARIABLE, load_config
from mirror_assets.orchestration.schedules import SENSORS_VARIABLE
from mirror_assets_tests.deploy.services import (
    CODE,
    DAEMON,
    DEPLOY,
    WEBSERVER,
    dockerfile_command,
    read,
    references,
    services,
    text_of,
)
from mirror_assets_tests.pages import DOCS, ROOT, codes, table

_GUID = "11111111-1111-1111-1111-111111111111"
_ZONE = f"https://onelake.dfs.fabric.microsoft.com/{_GUID}/{_GUID}/Files/LandingZone"
_CREDENTIALS = {"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"}
_OURS = {CONFIG_VARIABLE, SENSORS_VARIABLE}
_UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


@pytest.mark.parametrize(
    ("schema", "name"), [("compose-spec", "compose.yaml"), ("github-workflows", "github-actions.yaml")]
)
def test_a_file_follows_its_schema(schema: str, name: str) -> None:
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(DEPLOY / name)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


def test_every_service_has_a_program_a_health_check_and_a_restart_policy() -> None:
    programs = {script.name for script in entry_points(group="console_scripts")} | {"python"}
    assert set(services()) == {CODE, DAEMON, WEBSERVER}
    for service in services().values():
        assert {service.command[0], service.health[0]} <= programs
    compose = read("compose.yaml")["services"]
    assert all(one["restart"] == "unless-stopped" and "healthcheck" in one for one in compose.values())
    assert set(compose[CODE]["depends_on"]) <= set(compose)
    named = {volume.partition(":")[0] for one in compose.values() for volume in one.get("volumes", ())}
    assert {volume for volume in named if not volume.startswith(".")} == set(read("compose.yaml")["volumes"])
    assert all((DEPLOY / volume).is_file() for volume in named if volume.startswith("."))


def test_every_variable_is_read_and_documented() -> None:
    instance, workspace = references(text_of("dagster.yaml")), references(text_of("workspace.yaml"))
    configured = references(text_of("mirror.yaml"))
    found = services()
    for name in (DAEMON, WEBSERVER):
        assert set(found[name].environment) == instance | workspace
    assert set(found[CODE].environment) == instance | workspace | configured | _CREDENTIALS | _OURS
    told = {name for names, *_ in table(DOCS / "production.md", "Settings and secrets") for name in codes(names)}
    assert told == set(found[CODE].environment) | {"DAGSTER_HOME"}


def test_no_file_has_a_secret() -> None:
    for file in DEPLOY.rglob("*"):
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        for name, value in re.findall(r"^\s*(\w*(?:PASSWORD|SECRET|TOKEN)\w*): (.*)$", "\n".join(lines), re.MULTILINE):
            assert re.match(r"\$\{\w+(:\?.*|:-)?\}|\$\{\{ secrets\.", value), f"{file.name}: {name}"
    assert "postgresqlPassword" not in text_of("helm-values.yaml")


def test_the_instance_has_the_project_s_settings_in_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in references(text_of("dagster.yaml")):
        monkeypatch.setenv(name, "5432")
    settings = read("dagster.yaml")
    assert dagster_instance_config(str(DEPLOY))[0]["storage"] == settings.pop("storage")
    assert settings == yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))


def test_the_workspace_is_the_code_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in references(text_of("workspace.yaml")):
        monkeypatch.setenv(name, "4266")
    (origin,) = location_origins_from_yaml_paths([str(DEPLOY / "workspace.yaml")])
    assert isinstance(origin, GrpcServerCodeLocationOrigin)
    assert (origin.host, origin.port) == ("4266", 4266)
    assert origin.location_name == services()[CODE].command[-1]


def test_the_example_of_mirror_yaml_needs_only_the_variables_of_compose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDING_ZONE_URL", _ZONE)
    config = load_config(DEPLOY / "mirror.yaml")
    assert config.spark.jars_folder == Path("/opt/jars")
    assert config.landing_zone.onelake is not None
    volumes = read("compose.yaml")["services"][CODE]["volumes"]
    assert f"staging:{config.landing_zone.onelake.staging_path}" in volumes


def test_the_image_is_pinned_without_root_and_checks_its_health() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^ARG BASE=\w+:\d", text, re.MULTILINE)
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["10001"]
    assert tuple(dockerfile_command("HEALTHCHECK")) == services()[CODE].health
    allowed = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = {word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for word in line.split()}
    assert copied == allowed
    assert all((ROOT / path).exists() for path in copied)


def test_the_units_run_the_services_of_compose() -> None:
    found = dict[str, list[str]]()
    for unit in _UNITS:
        parsed = configparser.ConfigParser(strict=False, interpolation=None)
        parsed.optionxform = str  # type: ignore[assignment,method-assign]  # names have capitals
        parsed.read(unit)
        found[unit.stem.rpartition("-")[2]] = shlex.split(parsed["Service"]["ExecStart"])
        assert parsed["Service"]["Restart"] == "always"
    other = {"127.0.0.1": "0.0.0.0", "${MIRROR_CODE_PORT}": "4266"}  # noqa: S104 inside a container
    for name, service in services().items():
        program, *words = [word.replace("/etc/mirror-assets/", "/opt/mirror/") for word in found[name]]
        assert (Path(program).name, *(other.get(word, word) for word in words)) == service.command
    target = (DEPLOY / "systemd" / "mirror-assets.target").read_text(encoding="utf-8")
    assert {unit.name for unit in _UNITS} == set(re.findall(r"[\w-]+\.service", target))


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd")
    for unit in (DEPLOY / "systemd").iterdir():
        # systemd-analyze requires the programs to exist.
        text = unit.read_text(encoding="utf-8").replace("/opt/mirror-assets/bin", str(Path(sys.executable).parent))
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", *map(str, tmp_path.iterdir())]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    # It ignores unknown settings with a warning and exit code 0.
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_helm_values_say_the_same_in_the_words_of_the_chart() -> None:
    values, instance = read("helm-values.yaml"), read("dagster.yaml")
    assert values["postgresql"]["postgresqlScheme"] == instance["storage"]["postgres"]["postgres_db"]["scheme"]
    daemon = values["dagsterDaemon"]
    written = {
        "concurrency": {name: values["concurrency"][name] for name in ("runs", "pools")},
        "run_monitoring": daemon["runMonitoring"],
        "sensors": daemon["sensors"],
        "retention": {"sensor": values["retention"]["sensor"]},
        "telemetry": values["telemetry"],
    }
    del instance["storage"], instance["run_monitoring"]["max_runtime_seconds"]
    assert _snake_case(written) | values["additionalInstanceConfig"] == instance
    (deployment,) = values["dagster-user-deployments"]["deployments"]
    words = ["dagster", "api", "grpc", *deployment["dagsterApiGrpcArgs"], "--host", "0.0.0.0", "--port", "4266"]  # noqa: S104
    assert set(words) - {deployment["name"]} == set(services()[CODE].command) - {"mirror_assets"}
    assert {one["name"] for one in deployment["env"]} == _OURS
    version = re.findall(r"^dagster==(.*)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    for text in ((DEPLOY / "helm-values.yaml").read_text(), (DOCS / "production.md").read_text()):
        assert re.findall(r"--version (\S+)", text) == version


def _snake_case(value: object) -> object:
    if not isinstance(value, dict):
        return value
    names = {name: re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name) for name in value}
    return {names[name]: _snake_case(one) for name, one in value.items()}


def test_the_workflow_passes_every_variable_to_the_command() -> None:
    (job,) = read("github-actions.yaml")["jobs"].values()
    (run,) = [step["run"] for step in job["steps"] if "docker run" in step.get("run", "")]
    assert set(re.findall(r"--env (\w+)", run)) == set(job["env"]) == references(text_of("mirror.yaml")) | _CREDENTIALS
    assert run.endswith("mirror-assets mirror-assets check")
