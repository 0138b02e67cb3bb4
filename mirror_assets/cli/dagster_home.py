"""Opens the instance of Dagster in which commands record their runs."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import yaml

from mirror_assets.errors import ErrorCode, ErrorRow, MirrorError, RetryError, SettingError
from mirror_assets.orchestration.dagster_internals import ephemeral_instance
from mirror_assets.redaction import redacted

_HOME, _UNSET = "DAGSTER_HOME", "unset DAGSTER_HOME    # runs are then recorded in memory"
HOME_UNFIT = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "DAGSTER_HOME is no folder that Dagster can use, or its dagster.yaml has a mistake.",
    "DAGSTER_HOME={home} can't be used: {why}.",
    "{step}, or unset DAGSTER_HOME to run without an instance of Dagster.",
    _UNSET,
)
STORAGE_DOWN = ErrorRow(
    ErrorCode.STORE_UNAVAILABLE,
    RetryError,
    "The database that dagster.yaml names doesn't respond, or rejects the account.",
    "the database of {home}/dagster.yaml can't be used: {why}.",
    "start the database, correct its address or account, or unset DAGSTER_HOME to run without an instance of Dagster.",
    _UNSET,
)
# Passwords in URLs, and values of dagster.yaml that Dagster quotes.
_SECRETS = re.compile(r"(?<=://)[^@\s]*@|(?<=Value )\"[^\"]*\"")
# What Dagster prints around a mistake: the schema of all settings.
_NOISE = re.compile(r"^.*?Error 1: |(?:Expected:|You must provide|Error 2:).*", re.DOTALL)
_MAX_TEXT = 300


@contextmanager
def opened_instance() -> Iterator[dg.DagsterInstance]:
    """Open the instance of DAGSTER_HOME, which the UI shows; one in memory, if that is not set.

    Raises HOME_UNFIT, and STORAGE_DOWN, which also replaces errors of the database that the block raises.
    """
    home = os.environ.get(_HOME)
    if not home:
        with ephemeral_instance() as instance:
            yield instance
        return
    if not (Path(home).is_absolute() and Path(home).is_dir()):
        why = "no such folder" if Path(home).is_absolute() else "it is no absolute path"
        raise HOME_UNFIT(home=home, why=why, step="make the folder, set the variable to its absolute path")
    # Otherwise each attempt to reach a host that drops packets takes minutes.
    os.environ.setdefault("PGCONNECT_TIMEOUT", "10")
    is_open = False
    logging.disable(logging.WARNING)  # dagster-postgres logs each attempt; the error has the last
    try:
        with dg.DagsterInstance.get() as instance:
            is_open = True
            logging.disable(logging.NOTSET)
            yield instance
    except Exception as error:
        if is_open and not any(map(_is_of_database, _chain(error))):
            raise
        raise _home_error(home, error) from error
    finally:
        logging.disable(logging.NOTSET)


def _home_error(home: str, error: Exception) -> MirrorError:
    """Return the error for an exception of Dagster or of its storage, without secrets."""
    chain, file = _chain(error), f"{home}/dagster.yaml"
    first, step = chain[-1], f"correct {file}"
    text = _NOISE.sub("", _SECRETS.sub("…", redacted(str(first)))).strip(" \n.")
    if isinstance(first, OSError) or type(first).__module__ == "sqlite3":
        step = "make the folder writable for this user, with free space"
    elif any(map(_is_of_database, chain)):
        return STORAGE_DOWN(home=home, why=text.partition("\n")[0])
    elif isinstance(first, yaml.MarkedYAMLError) and first.problem_mark is not None:
        text = f"line {first.problem_mark.line + 1} of dagster.yaml: {first.problem}"  # the rest quotes the line
    return HOME_UNFIT(home=home, why=" ".join(text.split())[:_MAX_TEXT], step=step)


def _chain(error: BaseException) -> list[BaseException]:
    """Return the error and its causes, the first of them last."""
    cause = error.__cause__ or error.__context__
    return [error, *(_chain(cause) if cause else [])]


def _is_of_database(error: BaseException) -> bool:
    """Return whether SQLAlchemy has raised it for an error of the database's client, which it adds as `orig`."""
    return type(error).__module__ == "sqlalchemy.exc" and hasattr(error, "orig")
