"""Deletion vectors of one file in two versions: the rows that only one of them shows.

Vectors are read, compared and applied by Delta's own classes, which are private (see `versions`). A bitmap is one of
these: a set of row indices of a file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property

from py4j.java_gateway import JavaClass, JavaObject

from mirror_assets.delta.jvm import Jvm


@dataclass(frozen=True)
class Vectors:
    """The deletion vectors of one table; each is read once."""

    jvm: Jvm
    store: JavaObject
    folder: JavaObject
    _read: dict[str, JavaObject] = field(default_factory=dict)

    @classmethod
    def of(cls, jvm: Jvm, log: JavaObject) -> Vectors:
        """Those of the table with this log."""
        stores = jvm.singleton(jvm.delta.storage.dv, "DeletionVectorStore")
        return cls(jvm, stores.createInstance(log.newDeltaHadoopConf()), log.dataPath())

    def no_rows(self) -> JavaObject:
        """An empty bitmap."""
        return self._bitmap()

    def hidden_only_in(self, file: JavaObject, other: JavaObject) -> JavaObject | None:
        """A bitmap of the rows that `file` hides and `other`, the same file, shows; None: no row. Not to be changed."""
        hidden, shown_not = self._hidden(file), self._hidden(other)
        if hidden is None or shown_not is None:
            return hidden
        rest = hidden.copy()
        rest.andNot(shown_not)
        return None if rest.isEmpty() else rest

    def only_in(self, file: JavaObject, other: JavaObject) -> JavaObject | None:
        """The file with a vector that leaves only those of its rows that `other`, the same file, hides; None: no row.

        A file that doesn't say how many rows are stored in it is given back whole.
        """
        shown, stored = self.hidden_only_in(other, file), file.numPhysicalRecords()
        if shown is None or stored.isEmpty():
            return None if shown is None else file
        rest, ranges = self.no_rows(), self.jvm.singleton(self.jvm.root.scala.collection.immutable, "Range")
        rest.addRange(ranges.apply(0, stored.get(), 1))
        rest.andNot(shown)
        return self.with_vector(file, rest)

    def with_vector(self, file: JavaObject, rows: JavaObject) -> JavaObject:
        """The file with a vector of these rows in place of its own."""
        delta = self.jvm.delta
        rows.runOptimize()
        portable = self.jvm.singleton(delta.deletionvectors, "RoaringBitmapArrayFormat").Portable()
        inline = delta.actions.DeletionVectorDescriptor.inlineInLog(
            rows.serializeAsByteArray(portable), rows.cardinality()
        )
        action = json.loads(file.json())  # Scala's own copy takes every field by position
        action["add"]["deletionVector"] = {
            "storageType": inline.storageType(),
            "pathOrInlineDv": inline.pathOrInlineDv(),
            "sizeInBytes": inline.sizeInBytes(),
            "cardinality": inline.cardinality(),
        }
        return delta.actions.Action.fromJson(json.dumps(action))

    def _hidden(self, file: JavaObject) -> JavaObject | None:
        """The rows that a file's vector hides; None where it has no vector."""
        vector = file.deletionVector()
        if vector is None:
            return None
        name = vector.uniqueId()
        if name not in self._read:
            self._read[name] = self._stored.create(vector, self.folder).load(self.store)
        return self._read[name]

    @cached_property
    def _bitmap(self) -> JavaClass:
        return self.jvm.delta.deletionvectors.RoaringBitmapArray

    @cached_property
    def _stored(self) -> JavaClass:
        return self.jvm.delta.deletionvectors.StoredBitmap
