"""Opens Spark sessions, with the settings of a configuration and the keys of a source's catalog."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from mirror_assets.config.variables import fill_settings, has_reference
from mirror_assets.lakes.azure import VARIABLE, start_token_server, storage_token
from mirror_assets.lakes.catalogs import VendedTable
from mirror_assets.lakes.errors import SPARK_CANNOT_SIGN_IN
from mirror_assets.redaction import hide
from mirror_assets.source.log import DeltaLog
from mirror_assets.telemetry.scope import current_scope

if TYPE_CHECKING:
    # Loaded when something opens that needs them: commands that read logs do without.
    from pyspark.sql import SparkSession

    from mirror_assets.encode.spark_catalogs import CatalogKeys

# Opens the Spark session of an owner, or a new one for None.
Session: TypeAlias = "Callable[[str | None], SparkSession]"


def session_from(session: Session, owner: str | None) -> SparkSession:
    """Return the owner's session, made from the one that `session` returns. Raises what `own_session` raises."""
    from mirror_assets.encode.session import own_session

    return own_session(session(owner), owner)


def reporting_start(session: Session, report: Callable[[str], None]) -> Session:
    """Return `session` with a line for `report` before and after it starts Spark; other threads wait meanwhile."""
    starting = threading.Lock()

    def opened(owner: str | None) -> SparkSession:
        from mirror_assets.encode.session import spark_has_started

        if spark_has_started():
            return session(owner)
        with starting:
            if spark_has_started():
                return session(owner)
            report("Starting Spark: this can take 20 s")
            began = time.monotonic()
            found = session(owner)
            report(f"Spark has started in {time.monotonic() - began:.1f} s")
            return found

    return opened


def session_factory(source: DeltaLog, session: Callable[[], SparkSession]) -> Callable[[], SparkSession]:
    """Return a factory for Spark sessions that hold the catalog credentials of this source, or none."""

    def opened() -> SparkSession:
        from mirror_assets.encode.spark_catalogs import use_keys
        from mirror_assets.spark_api import is_classic

        spark, scope = session(), current_scope()
        use_keys(spark, catalog_keys(source))
        # Spark's UI shows it beside the jobs that this thread starts from now on.
        if is_classic(spark):
            spark.sparkContext.setJobDescription(scope.text if scope else None)
        return spark

    return opened


def catalog_keys(source: DeltaLog) -> CatalogKeys | None:
    """Return what Spark needs to read the source with its catalog's keys; None where no catalog hands out any."""
    from mirror_assets.encode.spark_catalogs import CatalogKeys

    access = source.access
    if not isinstance(access, VendedTable):
        return None
    client, token = access.client, access.client.token()
    if token and client.token_variable:
        hide(client.token_variable, token)
    return CatalogKeys(
        f"{access.name} of the catalog {client.label}",
        client.server,
        access.table_id,
        access.address.scheme.value,
        token,
        access.store.reach_settings(),
        access.store.own_names(),
    )


def no_spark(owner: str | None = None) -> NoReturn:
    """Stand in the place of a session where only logs and the landing zone are read. Raises RuntimeError."""
    raise RuntimeError(f"{owner} asks for Spark where none may start")


@dataclass(frozen=True)
class SparkSettings:
    """The settings of Spark sessions beside this project's own.

    `reach` is how stores are reached, `packages` the JARs for them, `written` what mirror.yaml sets, with references to
    environment variables that are resolved when a session opens. `of_catalogs` asks catalogs for the addresses of
    their tables, and returns the JARs for these.
    """

    reach: Mapping[str, str]
    written: Mapping[str, str]
    packages: Sequence[str] = ()
    jars_folder: Path | None = None
    of_catalogs: Callable[[], Sequence[str]] = tuple

    def filled(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return all settings with environment variables resolved.

        Raises VARIABLE_UNSET and JARS_MISSING.
        """
        from mirror_assets.encode.session import spark_settings

        written = fill_settings(self.written, environment)
        packages = (*self.packages, *self.of_catalogs())
        return spark_settings({**self.reach, **written}, packages, self.jars_folder)

    def shown(self) -> dict[str, str]:
        """Return the settings that may appear in the JVM's command line. Raises what `filled` raises."""
        return self._filled_apart()[0]

    def require_machine(self) -> None:
        """Raise MACHINE_UNFIT if Spark can't start on this machine, and what `filled` raises; no catalog is asked.

        A step that lands calls this first: no table is at fault, and a rebuild would already have dropped one.
        """
        from mirror_assets.encode.machine import require_machine
        from mirror_assets.encode.session import spark_has_started
        from mirror_assets.encode.spark_version import REMOTE

        settings = replace(self, of_catalogs=tuple).filled()
        if REMOTE not in settings and not spark_has_started():
            require_machine(settings)

    def open(self, owner: str | None = None, *, is_brief: bool = False) -> SparkSession:
        """Return the owner's session, or a new one.

        Raises VARIABLE_UNSET, JARS_MISSING, SPARK_CANNOT_SIGN_IN and SPARK_NOT_STARTED. `is_brief`: if
        this call starts Spark, its JVM is one for small slices.
        """
        from mirror_assets.encode.session import open_session
        from mirror_assets.encode.spark_start import for_brief_work

        shown, secret = self._filled_apart()
        if any(f"{{env.{VARIABLE}}}" in value for value in self.reach.values()):
            master = shown.get("spark.master", shown.get("spark.remote", ""))
            if not master.startswith("local"):
                raise SPARK_CANNOT_SIGN_IN(master=master)
            start_token_server(storage_token)
        return open_session(for_brief_work(shown) if is_brief else shown, secret, owner)

    def _filled_apart(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the filled settings for the JVM's command line, and the secret ones, which only a session gets."""
        filled = self.filled()
        secret = {n for n, text in self.written.items() if n.startswith("spark.hadoop.") and has_reference(text)}
        shown = {name: value for name, value in filled.items() if name not in secret}
        return shown, {name: filled[name] for name in secret}
