"""Assigns rows to parts: which commits one Spark write encodes, and the part of each row within it.

The plan gives each commit a first part and a number of parts (`source/batching.py`); a row's part follows from its
commit and the hash of its key. Spark's `repartition` puts a row into the partition of its columns' Murmur3 hash, modulo
the number of partitions. So a part's rows get the number whose hash is the part (`shuffle_key`). Spark 4.1 has
`repartitionById` for this, but Spark 4.0 doesn't.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from mirror_assets.encode.columns import COMMIT_VERSION
from mirror_assets.source.batching import PartAssignment

_BITS = 32
_ALL_BITS = (1 << _BITS) - 1
# Constants of Murmur3, and the seed of Spark's hashes.
_FIRST, _SECOND, _ADDED, _LAST, _LAST_BUT_ONE, _SEED = 0xCC9E2D51, 0x1B873593, 0xE6546B64, 0xC2B2AE35, 0x85EBCA6B, 42
_INT_BYTES = 4


@dataclass(frozen=True)
class EncodeGroup:
    """Consecutive commits of a slice that one Spark write encodes: a single unpaired commit, or one or more paired."""

    assignments: tuple[PartAssignment, ...]
    unpaired: bool = False

    @property
    def first(self) -> int:
        """The version of the first commit that changes data."""
        return self.assignments[0].version

    @property
    def last(self) -> int:
        """The version of the last commit that changes data."""
        return self.assignments[-1].version

    @property
    def first_part(self) -> int:
        """The number of the group's first part in the slice."""
        return self.assignments[0].first_part

    @property
    def parts(self) -> int:
        """The number of parts of the group."""
        return max(assignment.first_part + assignment.parts for assignment in self.assignments) - self.first_part

    def commits_of(self, index: int) -> tuple[int, int]:
        """Return the versions of the first and the last commit whose rows Spark partition `index` writes.

        The partitions of a paired group are the plan's parts. An unpaired group has one commit; its partitions are the
        scan's.
        """
        if len(self.assignments) == 1:
            return self.first, self.first
        part = self.first_part + index
        held = [
            assignment.version
            for assignment in self.assignments
            if assignment.first_part <= part < assignment.first_part + assignment.parts
        ]
        return held[0], held[-1]


def group_commits(assignments: Sequence[PartAssignment]) -> tuple[EncodeGroup, ...]:
    """Group the commits, in order: each unpaired commit alone, the paired ones between them together."""
    groups: list[list[PartAssignment]] = []
    for assignment in assignments:
        if not groups or assignment.unpaired or groups[-1][0].unpaired:
            groups.append([])
        groups[-1].append(assignment)
    return tuple(EncodeGroup(tuple(group), group[0].unpaired) for group in groups)


def part_of_row(group: EncodeGroup, hash_: Column) -> Column:
    """Compute a row's part within the group from the plan alone, without a counting pass or range sampling."""
    first_part = _by_version(group, [assignment.first_part - group.first_part for assignment in group.assignments])
    if all(assignment.parts == 1 for assignment in group.assignments):
        return first_part
    return first_part + F.pmod(hash_, _by_version(group, [assignment.parts for assignment in group.assignments]))


def shuffle_key(part: Column, parts: int) -> Column:
    """Compute the INT that `repartition` into `parts` partitions sends to the partition with the part's number."""
    return F.get(F.lit([int_with_hash(number) for number in range(parts)]), part)


def int_with_hash(hash_: int) -> int:
    """Return the INT whose hash in Spark (`hash`) is this one: Murmur3 of four bytes, step by step backwards."""
    mixed = _unshifted(hash_ & _ALL_BITS, 16)
    mixed = _unshifted(_divided(mixed, _LAST), 13)
    mixed = _unshifted(_divided(mixed, _LAST_BUT_ONE), 16) ^ _INT_BYTES
    mixed = _rotated(_divided(mixed - _ADDED, 5), -13) ^ _SEED
    value = _divided(_rotated(_divided(mixed, _SECOND), -15), _FIRST)
    return value - (1 << _BITS) if value >> (_BITS - 1) else value


def _divided(value: int, factor: int) -> int:
    return value * pow(factor, -1, 1 << _BITS) & _ALL_BITS


def _rotated(value: int, bits: int) -> int:
    bits %= _BITS
    return (value << bits | value >> (_BITS - bits)) & _ALL_BITS


def _unshifted(value: int, bits: int) -> int:
    """Return the x of which `value` is x ^ x >> bits, for at least 11 bits."""
    return value ^ value >> bits ^ value >> 2 * bits


def _by_version(group: EncodeGroup, values: Sequence[int]) -> Column:
    """Look up the value of a row's commit in a constant array; `values` has one for each assignment."""
    if len(set(values)) == 1:
        return F.lit(values[0])
    table = [0] * (group.last - group.first + 1)
    for assignment, value in zip(group.assignments, values, strict=True):
        table[assignment.version - group.first] = value
    index = (F.col(COMMIT_VERSION) - group.first + 1).cast("int")
    return F.element_at(F.lit(table), index)
