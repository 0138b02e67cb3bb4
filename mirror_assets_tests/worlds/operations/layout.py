"""What changes files, properties or constraints and no row; there before: 0 to 9, 600 to 602."""

from __future__ import annotations

from mirror_assets_tests.worlds.operations.operation import Lands, Operation, Trait, sql

_CLUSTERED = frozenset({Trait.CLUSTERED})


def _set(**values: str) -> Operation:
    ((name, value),) = values.items()
    return Operation(f"{name} = {value}", lambda source: source.properties(**values))


OPERATIONS = (
    Operation("OPTIMIZE", sql("OPTIMIZE {t}")),
    Operation("ZORDER", sql("OPTIMIZE {t} ZORDER BY (id)"), never_with=_CLUSTERED),
    Operation(
        "CLUSTER BY",
        sql("ALTER TABLE {t} CLUSTER BY (id, name)", "OPTIMIZE {t} FULL"),
        never_with=frozenset({Trait.PARTITIONED}),
    ),
    Operation("VACUUM", sql("VACUUM {t}")),
    Operation("constraint", sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)")),
    Operation("constraint dropped", sql("ALTER TABLE {t} DROP CONSTRAINT positive")),
    Operation("comments", sql("COMMENT ON TABLE {t} IS 'c'", "ALTER TABLE {t} ALTER COLUMN name COMMENT 'c'")),
    _set(logRetentionDuration="interval 90 days"),
    _set(enableDeletionVectors="true"),
    Operation("delete by deletion vector", sql("DELETE FROM {t} WHERE id = 9"), Lands(deletes=1)),
    Operation("second deletion vector", sql("DELETE FROM {t} WHERE id = 8"), Lands(deletes=1)),
    Operation("REORG", sql("REORG TABLE {t} APPLY (PURGE)")),
    _set(enableDeletionVectors="false"),
    Operation("delete without deletion vector", sql("DELETE FROM {t} WHERE id = 7"), Lands(deletes=1)),
    _set(enableRowTracking="true"),
    Operation("update of a tracked row", sql("UPDATE {t} SET name = 't' WHERE id = 6"), Lands(updates=1)),
    _set(enableInCommitTimestamps="true"),
    _set(checkpointPolicy="v2"),
    Operation("update with in-commit timestamp", sql("UPDATE {t} SET name = 'i' WHERE id = 5"), Lands(updates=1)),
)
