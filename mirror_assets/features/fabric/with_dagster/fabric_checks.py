"""The asset check `sql_columns`: whether the SQL endpoint shows every column, and its values whole."""

from mirror_assets.column_types import LONG_BYTES, MOST_BYTES, NTZ
from mirror_assets.landing.format import Manifest
from mirror_assets.orchestration.asset_check import Check, CheckedTable
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.verify.check_result import CheckResult

SQL_COLUMNS = "sql_columns"


def _sql_columns(checked: CheckedTable) -> CheckResult:
    manifest = checked.context.manifest()
    return CheckResult(SQL_COLUMNS) if manifest is None else check_sql_columns(manifest)


def check_sql_columns(manifest: Manifest) -> CheckResult:
    """Warn of columns that the endpoint leaves out, and of those whose values it may cut or refuse."""
    live = {column.name for column in manifest.live_columns}
    hidden = [f"`{column.name}`" for column in manifest.live_columns if column.type == NTZ]
    long = {name: most for name, most in manifest.long_values.items() if name in live}
    problems = [f"the SQL endpoint leaves out columns of type {NTZ}: {', '.join(hidden)}"] if hidden else []
    problems += [
        f"column `{name}` has a value of {most:,} bytes, and the SQL endpoint shows at most "
        + (f"{MOST_BYTES:,}" if most > MOST_BYTES else f"{LONG_BYTES:,} of a table from before 2025-11-18")
        for name, most in long.items()
    ]
    steps = ["set `timestamp_ntz` to utc or text."] if hidden else []
    if any(most > MOST_BYTES for most in long.values()):
        steps.append("land a part of the value, by an expression in `columns` such as {sql: 'left(text, 1000000)'}.")
    elif long:
        steps.append("if the mirrored table is older, rebuild it: a new one has varchar(max).")
    metadata: dict[str, int | float | str] = {"longest_value_bytes": max(long.values())} if long else {}
    return CheckResult(SQL_COLUMNS, tuple(problems), metadata, is_warning=True, next_step=" ".join(steps))


FABRIC_CHECKS = (
    Check(
        SQL_COLUMNS,
        AssetKind.LANDING,
        "Fabric's SQL endpoint shows every column, and its values whole.",
        _sql_columns,
        reads_source=False,
        applies=lambda config, _: config.zone.is_metered,
    ),
)
