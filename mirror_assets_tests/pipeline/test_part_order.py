"""Slices of many parts in which keys change in several commits: the tables that once could never land."""

from __future__ import annotations

from mirror_assets.encode.part_assignment import group_commits
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets_tests.lab import Lab


def _lands_equal(lab: Lab) -> ProcessedSlice:
    """What waits lands as one slice, and the mirror is its source."""
    (mirrored,) = lab.mirror()
    assert lab.is_equal
    return mirrored


def test_a_restore_over_several_parts_and_a_delete_behind_it(lab: Lab) -> None:
    lab.configure("", "files: {target_rows: 50}")
    lab.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10, 60)",
    )
    lab.mirror()
    lab.sql(
        "UPDATE {t} SET amount = amount + 1", "RESTORE TABLE {t} TO VERSION AS OF 3", "DELETE FROM {t} WHERE id = 7"
    )
    mirrored = _lands_equal(lab)
    *_, run = (run for run in group_commits(mirrored.planned.assignments) if not run.unpaired)
    assert run.parts >= 3
    assert len(run.assignments) > 1


def test_overwrites_with_small_deletes_and_merges_between_them(lab: Lab) -> None:
    lab.configure("", "files: {target_rows: 90}\n  slices: {max_commits: 6}")
    lab.sql("INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10, 300)")
    lab.mirror()
    for turn in range(2):
        lab.sql(
            f"INSERT OVERWRITE {{t}} SELECT CAST(id AS INT), 'o{turn}', id * {turn + 2} FROM range({turn * 50}, 200)",
            f"DELETE FROM {{t}} WHERE id IN ({100 + turn}, {150 + turn})",
            f"MERGE INTO {{t}} t USING (SELECT {120 + turn} AS id UNION ALL SELECT {700 + turn}) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name, amount) VALUES (s.id, 'm', 1)",
        )
    mirrored = _lands_equal(lab)
    assert max(run.parts for run in group_commits(mirrored.planned.assignments)) >= 3
    versions = [(part.first_version, part.last_version) for part in mirrored.record.parts]
    assert all(None not in version for version in versions)
    assert versions == sorted(versions)
