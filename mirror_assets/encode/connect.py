"""Sessions of a Spark Connect server: this process has no JVM, and the server may be on another machine.

All that decides bytes is set on the session and then asked back from the server. The server has to see the folder of
staged parts as this process does.
"""

from __future__ import annotations

import atexit
import shutil
import threading
import uuid
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_assets.byte_settings import CONTEXT_SETTINGS, PINNED, context_unfit, session_settings
from mirror_assets.encode.errors import CONNECT_UNFIT, spark_not_started
from mirror_assets.encode.spark_version import REMOTE
from mirror_assets.errors import SettingError
from mirror_assets.redaction import redacted, redacted_error
from mirror_assets.spark_api import is_classic
from mirror_assets.spark_names import spark_path

# Some settings that decide bytes are deprecated, and the server says so for each session.
warnings.filterwarnings("ignore", category=UserWarning, module=r"pyspark\.sql\.connect\.conf")
_INSTALL = "run `pip install 'mirror-assets[connect]'`; `spark.remote` is sc://host:15002."
_OWNED: dict[str, SparkSession] = {}
_OPENING = threading.Lock()
_OPENED: WeakSet[SparkSession] = WeakSet()
# Servers and folders that were found to be shared.
_SHARED: set[tuple[str, Path]] = set()


def remote_session(settings: Mapping[str, str], owner: str | None) -> SparkSession:
    """Return a new session of the server that `spark.remote` names, in place of the owner's last one.

    Raises SPARK_NOT_STARTED and CONNECT_UNFIT.
    """
    own = session_settings({name: value for name, value in settings.items() if name != REMOTE})
    try:
        # PySpark's public way; from then on, functions of columns are those of Spark Connect in this process.
        session = SparkSession.builder.remote(settings[REMOTE]).config(map=own).create()
    except ImportError as error:
        raise CONNECT_UNFIT(why=redacted(str(error)).partition("\n")[0], next_step=_INSTALL) from error
    except (PySparkException, ValueError) as error:  # ValueError: no address
        raise spark_not_started(redacted(str(error)).partition("\n")[0]) from redacted_error(error)
    return _checked(session, owner)


def remote_beside(handed: SparkSession, owner: str | None) -> SparkSession:
    """Return a new session on the server of a project's session, which stays unchanged. Raises CONNECT_UNFIT."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    channel = handed.client._builder  # noqa: SLF001 it has the project's way to sign in
    session: SparkSession = RemoteSession.builder.channelBuilder(channel).create()
    if session.session_id == handed.session_id:
        step = "leave session_id out of its address: this program needs sessions of its own."
        raise CONNECT_UNFIT(why="its address fixes the session", next_step=step)
    there = session.conf.getAll
    theirs = {name: value for name, value in handed.conf.getAll.items() if there.get(name) != value}
    for name, value in session_settings(theirs).items():
        with suppress(PySparkException):  # the server's own, which no session can change
            session.conf.set(name, value)
    return _checked(session, owner)


def _checked(session: SparkSession, owner: str | None) -> SparkSession:
    """Ask the server for what decides bytes; close the owner's last session. Raises CONNECT_UNFIT and context_unfit."""
    _OPENED.add(session)
    there = session.conf.getAll
    for name, value in PINNED.items():
        if there.get(name) != value:
            step = f"set {name}={value} on the server."
            raise CONNECT_UNFIT(why=f"its sessions have {name}={there.get(name)}, and can't change it", next_step=step)
    for setting in CONTEXT_SETTINGS:
        if there.get(setting.name, setting.value) != setting.value:
            raise context_unfit(setting, there[setting.name])
    if owner is not None:
        with _OPENING:
            last, _OWNED[owner] = _OWNED.get(owner), session
        if last is not None:
            last.stop()
    return session


@atexit.register
def _end_all() -> None:
    """Close what is open: at the end of a process, gRPC waits without end for a channel that Python frees."""
    for session in _OPENED:
        if not session.is_stopped:
            with suppress(PySparkException):
                session.stop()


def is_usable(spark: SparkSession) -> bool:
    """Return whether the session still answers: a server that has started again has forgotten it."""
    if is_classic(spark):
        return True
    try:
        spark.conf.get("spark.app.name", "")
    except PySparkException:
        return False
    return True


def require_shared(spark: SparkSession, folder: Path) -> None:
    """Raise CONNECT_UNFIT unless a file that the server writes into the folder is there for this process as well."""
    if is_classic(spark):
        return
    key = spark.client.host, folder
    if key in _SHARED:
        return
    probe = folder / f".probe-{uuid.uuid4().hex}"
    try:
        spark.range(0, 1, 1, 1).write.parquet(spark_path(str(probe)))
        is_there = any(probe.glob("part-*"))
    except PySparkException as error:
        raise _unshared(folder, redacted(str(error)).partition("\n")[0]) from redacted_error(error)
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    if not is_there:
        raise _unshared(folder, "a file that it wrote there is not here")
    _SHARED.add(key)


def _unshared(folder: Path, why: str) -> SettingError:
    step = f"mount {folder} at the same path on the server and its executors, or set `staging: direct`."
    return CONNECT_UNFIT(why=f"it doesn't share the folder {folder} with this process: {why}", next_step=step)
