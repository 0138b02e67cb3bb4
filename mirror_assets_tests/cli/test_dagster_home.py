"""A DAGSTER_HOME that Dagster can't use is one line with the file, or the host and port, and no secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.postgres import free_port
from mirror_assets.cli.dagster_home import opened_instance
from mirror_assets.cli.main import main
from mirror_assets_tests.pipeline.paper import Paper

_SECRET = "secret-of-the-database"  # noqa: S105 planted
Check = Callable[[str], tuple[int, str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Runs the command `check` with a DAGSTER_HOME; returns its exit code, and what it prints on the error stream."""
    paper = Paper(tmp_path)
    paper.create()
    file = tmp_path / "mirror.yaml"
    file.write_text("landing_zone: {path: ./landing}\ntables: {shop.orders: {source: ./lake, keys: [id]}}\n")

    def checked(home: str) -> tuple[int, str]:
        monkeypatch.setenv("DAGSTER_HOME", home)
        code = main(["check", "--config", str(file), "--only", "lag"])
        return code, capsys.readouterr().err

    return checked


def _home(folder: Path, text: str) -> str:
    folder.mkdir()
    (folder / "dagster.yaml").write_text(text)
    return str(folder)


def test_a_folder_that_is_relative_or_missing_is_named(check: Check) -> None:
    code, error = check(".dagster")
    assert (code, error.count("\n")) == (2, 1)
    assert error.startswith("error: DAGSTER_HOME=.dagster can't be used: it is no absolute path. Next: ")
    code, error = check("/no/where")
    assert (code, error.count("\n")) == (2, 1)
    assert error.startswith("error: DAGSTER_HOME=/no/where can't be used: no such folder. Next: make the folder")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("concurency: 3\n", 'Received unexpected config entry "concurency" at the root'),
        ("storage:\n  postgres: {\n", "line 3 of dagster.yaml: "),
        ("storage: {postgres: {postgres_url: {env: NO_SUCH_VARIABLE}}}\n", "NO_SUCH_VARIABLE"),
        ("run_storage: {module: no_such_module, class: Runs}\n", "no_such_module"),
        (f"storage: {{postgres: {{postgres_db: {{port: {_SECRET}}}}}}}\n", "at path root:storage:postgres"),
        (f'storage: {{postgres: {{postgres_url: "postgresql//u:{_SECRET}@h:1/d"}}}}\n', "dagster.yaml"),
    ],
)
def test_a_mistake_in_dagster_yaml_is_one_line(check: Check, tmp_path: Path, text: str, why: str) -> None:
    home = _home(tmp_path / "home", text)
    code, error = check(home)
    assert (code, error.count("\n")) == (2, 1), error
    assert why in error
    assert f"Next: correct {home}/dagster.yaml, or unset DAGSTER_HOME" in error
    assert _SECRET not in error


def test_a_home_that_cannot_be_written_is_named(check: Check, tmp_path: Path) -> None:
    home = _home(tmp_path / "home", "telemetry: {enabled: false}\n")
    (tmp_path / "home" / "history").touch()
    code, error = check(home)
    assert (code, error.count("\n")) == (2, 1), error
    assert f"{home}/history" in error
    assert "make the folder writable" in error


def test_a_database_that_does_not_respond_is_named_without_its_password(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    account = f"username: u, password: {_SECRET}, db_name: d, scheme: postgresql+psycopg2"
    database = f"{{hostname: 127.0.0.1, port: {port}, {account}}}"
    home = _home(tmp_path / "home", f"storage: {{postgres: {{postgres_db: {database}}}}}\n")
    monkeypatch.setattr("dagster_postgres.utils.time.sleep", lambda _: None)
    code, error = check(home)
    assert (code, error.count("\n")) == (1, 1), error
    assert f"{home}/dagster.yaml" in error
    assert f'"127.0.0.1", port {port} failed: Connection refused' in error
    assert _SECRET not in error


def test_an_error_of_the_command_itself_is_raised_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", _home(tmp_path / "home", "telemetry: {enabled: false}\n"))
    with pytest.raises(KeyError, match="ours"), opened_instance():
        raise KeyError("ours")
