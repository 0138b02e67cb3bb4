"""Reads scans: plain Parquet by Spark's public reader, joined with a small table of what the log says of each file.

Columns are read by their physical names, and get their names and types by position. Attributes that all files share are
constants; where all are, no join is needed. Rows that deletion vectors hide or name are found by their index in the
file: by a bit in an array of longs, or, where such rows are few, by a join with their numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, NullType, StringType, StructField, StructType

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, ROW_ID, ROW_VERSION, optional
from mirror_assets.encode.errors import TYPE_UNREADABLE
from mirror_assets.source.errors import SOURCE_UNSUPPORTED
from mirror_assets.source.log_paths import hadoop_path, java_encoded
from mirror_assets.source.scan import ChosenRows, RowKind, Scan, ScannedFile
from mirror_assets.spark_api import arrow_frame, file_metadata, lacking_types
from mirror_assets.spark_names import quoted

# A file that is lost or damaged is an error, whatever the session's settings say.
_OPTIONS = {
    "mergeSchema": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
# Spark asks for each named file, in three requests on S3. From this many files on, listing their folders is faster,
# unless there are almost as many folders.
_MANY_FILES, _FILES_OF_FOLDER = 32, 8
# Row numbers are smaller than a bitmap where at most one row in this many is named.
_SPARSE = 128
# The most row numbers that are broadcast.
_MOST_NUMBERS = 2_000_000
# A row's number in a scan: the file's number, then this many bits for its index in the file.
_INDEX_BITS = 40
# A listing of a folder leaves out what is below a folder of such a name.
_UNLISTED = re.compile(r"/(\.|_(?![^/]*=))")
# Spark takes paths as patterns. Its option `__globPaths__` would switch that off, but then it reads each of several
# paths with such characters as often as there are paths.
_OF_PATTERNS = re.compile(r"[\[\]{}*?\\]")
# Text that is the same in each of the parser's modes, and parsed faster than bytes.
_PLAIN = re.compile(r"[A-Za-z0-9 /:.=_+-]*")
_CHAR, _PHYSICAL, _FIELD_ID = "__CHAR_VARCHAR_TYPE_STRING", "delta.columnMapping.physicalName", "delta.columnMapping.id"
# The value of rows in files that lack the column. Delta doesn't write it, but Spark, and so Delta's reader, obeys it,
# and would evaluate any expression.
_DEFAULT = "EXISTS_DEFAULT"
_LITERAL = r"(?:[a-z]+\s*)?'(?:[^'\\]|\\.|'')*'|[-+]?[\d.]+(?:e[-+]?\d+)?(?:bd|[lsydf])?|true|false|null"
_CONSTANT = re.compile(rf"(?:{_LITERAL}|cast\((?:{_LITERAL}) as [a-z_]+(?:\(\d+(?:, ?\d+)?\))?\))", re.IGNORECASE)
_CHAR_LENGTH = re.compile(r"char\((\d+)\)", re.IGNORECASE)
# What logs have for NULL in a partition column that is no text. In one that is text, Spark takes them for values.
_NULLS = ("", "__HIVE_DEFAULT_PARTITION__")
_STORED_ID = "delta.rowTracking.materializedRowIdColumnName"
_STORED_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"
_PATH, _INDEX, _WORDS, _NUMBER, _STORED_KIND = "path", "row", "words", "number", "stored_kind"
_OF_FILE = "of_file"

_Longs = npt.NDArray[np.int64]


def read_scan(spark: SparkSession, scan: Scan, *, row_ids: bool = False) -> DataFrame:
    """Return the scan's rows: the table's columns, a feed's own columns, and with `row_ids` row tracking's two.

    Raises SOURCE_UNSUPPORTED, and what Spark raises. A file that the scan doesn't name, and NULL in a NOT NULL column,
    fail the query.
    """
    reader = _ScanReader(spark, scan, row_ids)
    numbered = _numbered(scan.files)
    others = [file for file in scan.files if id(file) not in numbered]
    parts = [reader.read(others)] if others else []
    if numbered:
        parts.append(reader.read_numbered([file for file in scan.files if id(file) in numbered]))
    if not parts:
        return reader.no_rows()
    return parts[0] if len(parts) == 1 else parts[0].union(parts[1])


def _numbered(files: Sequence[ScannedFile]) -> frozenset[int]:
    """Return the identities of the files of which rows are read by their numbers.

    Several commits may read rows of one file: then one scan reads them for all.
    """
    by_path: dict[str, list[ScannedFile]] = {}
    for file in files:
        if file.chosen and file.chosen.are_read:
            by_path.setdefault(file.path, []).append(file)
    numbered, rows = set[int](), 0
    # Files of which the fewest rows are read come first: a bitmap suits the others better.
    for group in sorted(by_path.values(), key=lambda group: sum(map(_chosen_rows, group))):
        rows += sum(map(_chosen_rows, group))
        if rows > _MOST_NUMBERS:
            break
        if len(group) > 1 or _is_sparse(group[0].chosen):
            numbered |= {id(file) for file in group}
    return frozenset(numbered)


def _chosen_rows(file: ScannedFile) -> int:
    return len(file.chosen.rows) if file.chosen else 0


def _is_sparse(chosen: ChosenRows | None) -> bool:
    return chosen is not None and len(chosen.rows) * _SPARSE < (chosen.rows.max() if chosen.rows else 1)


def _hides_few(file: ScannedFile) -> bool:
    return file.chosen is not None and not file.chosen.are_read and _is_sparse(file.chosen)


@dataclass(frozen=True)
class _Attribute:
    """A column of the table of files: its value for each file, and the type of both."""

    name: str
    type: pa.DataType
    value: Callable[[ScannedFile], object]


@dataclass(frozen=True)
class _ScanReader:
    """Reads files of a scan."""

    spark: SparkSession
    scan: Scan
    row_ids: bool
    _schema: StructType = field(init=False)

    def __post_init__(self) -> None:
        """Parse the schema once. Raises TYPE_UNREADABLE, and SOURCE_UNSUPPORTED for a default that is no constant."""
        for column, why in lacking_types(self.scan.metadata.schema_string):
            raise TYPE_UNREADABLE(place=self.scan.uri, column=column, why=why)
        schema = _delta_schema(self.scan.metadata.schema_string)
        for one in schema.fields:
            default = one.metadata.get(_DEFAULT)
            if default is not None and not _CONSTANT.fullmatch(str(default)):
                raise SOURCE_UNSUPPORTED(
                    uri=self.scan.uri, why=f"{default!r} as the old default of its column `{one.name}`"
                )
        object.__setattr__(self, "_schema", schema)

    def no_rows(self) -> DataFrame:
        """Return no rows, with the columns of all others."""
        types: dict[str, DataType] = {alias: field.dataType for alias, field in self._stored_fields.items()}
        types |= dict.fromkeys(("kind", *self._partitions), StringType())
        types |= dict.fromkeys((_INDEX, "version", "time", "first_id", "first_version"), LongType())
        nothing = (F.lit(None).cast(type_).alias(name) for name, type_ in types.items())
        return self._output(self.spark.range(0, 0, 1, 1).select(*nothing), {})

    def read(self, files: Sequence[ScannedFile]) -> DataFrame:
        """Return the rows of these files that they show."""
        sparse = [file for file in files if _hides_few(file)]
        numbers = {id(file): number for number, file in enumerate(sparse)}
        dense = [file for file in files if file.chosen and id(file) not in numbers]
        attributes = [*self._of_table(), *self._of_commit()]
        if sparse:
            attributes.append(_Attribute(_NUMBER, pa.int64(), lambda file: numbers.get(id(file), -1)))
        if dense:
            attributes.append(_Attribute(_WORDS, pa.list_(pa.int64()), _words))
            attributes.append(
                _Attribute("wanted", pa.int32(), lambda f: int(f.chosen is not None and f.chosen.are_read))
            )
        differing, constants = _apart(attributes, files)
        if not (differing or sparse or self.row_ids):
            return self._output(self._parquet(files), constants, self._names)
        rows = self._joined(files, differing)
        if dense:
            # An index after the array's end is that of a row that the vector doesn't name.
            bit = (
                f"coalesce(getbit(get({_WORDS}, CAST(shiftright({_INDEX}, 6) AS INT)), CAST({_INDEX} & 63 AS INT)), 0)"
            )
            rows = rows.where(f"{_WORDS} IS NULL OR {bit} = {constants.get('wanted', 'wanted')}")
        if sparse:
            hidden = pa.table({"hidden": np.concatenate([_keys(numbers[id(file)], file) for file in sparse])})
            rows = rows.join(
                F.broadcast(arrow_frame(self.spark, hidden)), F.expr(f"{_key(constants)} = hidden"), "left_anti"
            )
        return self._output(rows, constants)

    def read_numbered(self, files: Sequence[ScannedFile]) -> DataFrame:
        """Return the rows that these files name, by their numbers: one scan of each file for all commits."""
        by_path = {file.path: file for file in files}
        once, numbers = list(by_path.values()), {path: number for number, path in enumerate(by_path)}
        attributes = [*self._of_table(), _Attribute(_NUMBER, pa.int64(), lambda file: numbers[file.path])]
        differing, constants = _apart(attributes, once)
        rows = self._joined(once, differing)
        keys = [_keys(numbers[file.path], file) for file in files]
        counts = [len(of_file) for of_file in keys]
        named = {"named": pa.array(np.concatenate(keys))}
        for one in self._of_commit():
            values = pa.array([one.value(file) for file in files], one.type)
            named[one.name] = values.take(pa.array(np.repeat(np.arange(len(files)), counts)))
        side = arrow_frame(self.spark, pa.table(named))
        return self._output(rows.join(F.broadcast(side), F.expr(f"{_key(constants)} = named")), constants)

    def _parquet(self, files: Sequence[ScannedFile]) -> DataFrame:
        """Return the stored columns of the files by their names there."""
        paths = sorted({self._path(file) for file in files})
        reader = self.spark.read.schema(StructType(list(self._stored_fields.values()))).options(**_OPTIONS)
        folders = sorted({path.rpartition("/")[0] for path in paths})
        if len(paths) <= max(_MANY_FILES, _FILES_OF_FOLDER * len(folders)):
            return reader.parquet(*map(_escaped, paths))
        tops = [one for one in folders if not any(_is_listed(one, other) for other in folders)]
        listed = reader.option("recursiveFileLookup", "true").parquet(*map(_escaped, tops))
        # As text: PySpark's `isin` calls the JVM once for each path, which takes 8 s for 10,000.
        named = ", ".join(_literal(java_encoded(path)) for path in paths)
        place = "p" * (1 + max(map(len, self._stored_fields), default=0))  # longer than any name, so it is no column's
        return listed.withColumn(place, file_metadata(listed, "file_path")).where(f"{place} IN ({named})").drop(place)

    def _joined(self, files: Sequence[ScannedFile], differing: Sequence[_Attribute]) -> DataFrame:
        """Return the rows with short names of stored columns, their index, and the attributes in which files differ."""
        stored = self._parquet(files)
        columns = [F.expr(f"{quoted(name)} AS {alias}") for alias, name in self._names.items()]
        place = file_metadata(stored, "file_path").alias(_PATH), file_metadata(stored, "row_index").alias(_INDEX)
        rows = stored.select(*columns, *place)
        if not differing:
            return rows
        of_path = pa.array([java_encoded(self._path(file)) for file in files], pa.string())
        values = {one.name: pa.array([one.value(file) for file in files], one.type) for one in differing}
        side = arrow_frame(self.spark, pa.table({_PATH: of_path, **values}))
        # A join by texts takes four times as long as one by numbers. Two files with the same hash would give each row
        # twice, which `row_conservation` finds.
        hash_ = F.expr(f"xxhash64({_PATH})").alias(_OF_FILE)
        joined = rows.join(F.broadcast(side.select(hash_, *values)), F.expr(f"xxhash64({_PATH}) = {_OF_FILE}"), "left")
        why = _literal("Spark read a file that the log doesn't name: ")
        return joined.where(f"IF({_OF_FILE} IS NULL, CAST(raise_error(concat({why}, {_PATH})) AS BOOLEAN), TRUE)")

    def _of_table(self) -> Iterator[_Attribute]:
        """Yield the attributes of a file that are the same for all commits."""
        for name, alias in zip(self.scan.metadata.partition_columns, self._partitions, strict=True):
            yield _Attribute(alias, pa.string(), partial(_partition_value, name))
        if self.row_ids:
            yield _Attribute("first_id", pa.int64(), lambda file: file.first_row_id)
            yield _Attribute("first_version", pa.int64(), lambda file: file.row_version)

    def _of_commit(self) -> Iterator[_Attribute]:
        """Yield the attributes that a feed has for the commit."""
        if self.scan.feed:
            times = self.scan.times_ms
            yield _Attribute("kind", pa.string(), lambda f: None if f.kind is RowKind.AS_ROWS_SAY else f.kind.value)
            yield _Attribute("version", pa.int64(), lambda file: file.version)
            yield _Attribute("time", pa.int64(), lambda file: times.get(file.version))

    def _output(
        self, rows: DataFrame, constants: Mapping[str, str], names: Mapping[str, str] | None = None
    ) -> DataFrame:
        """Return the scan's columns, by position: their names, types and order are those of the schema.

        `constants` are attributes that all files share, as SQL, and `names` the columns of `rows` by their short names.
        """
        found = {**constants, **{alias: quoted(name) for alias, name in (names or {}).items()}}

        def sql(alias: str) -> str:
            return str(found.get(alias, alias))

        columns = list[Column]()
        partitions = dict(zip(self.scan.metadata.partition_columns, self._partitions, strict=True))
        data = iter(self._data)
        for one in self._schema.fields:
            alias = partitions.get(one.name) or next(data)
            stored, wanted = self._stored_type(one.dataType), _plain(one.dataType)
            value = F.expr(sql(alias))
            if one.name in partitions:
                value = _partition_column(one, wanted, sql(alias))
            elif isinstance(wanted, NullType):
                value = F.lit(None)
            elif stored.simpleString() != wanted.simpleString():
                value = value.cast(wanted)
            if alias in constants and constants[alias] != "NULL":
                value = optional(value)
            columns.append(_without_null(one, wanted, value).alias(one.name))
        if self.scan.feed:
            kinds = [sql("kind"), *([sql(_STORED_KIND)] if _STORED_KIND in self._names else [])]
            columns.append(F.expr(f"CAST(coalesce({', '.join(kinds)}) AS STRING) AS {CHANGE_TYPE}"))
            version = _uncompiled(constants["version"]) if "version" in constants else sql("version")
            columns.append(F.expr(f"CAST({version} AS BIGINT) AS {COMMIT_VERSION}"))
            columns.append(F.expr(f"timestamp_millis(CAST({sql('time')} AS BIGINT)) AS {COMMIT_TIMESTAMP}"))
        if self.row_ids:
            ids = {"stored_id": f"{sql('first_id')} + {_INDEX}", "stored_version": sql("first_version")}
            for (stored_in, computed), name in zip(ids.items(), (ROW_ID, ROW_VERSION), strict=True):
                either = f"coalesce({stored_in}, {computed})" if stored_in in self._names else computed
                columns.append(F.expr(f"CAST({either} AS BIGINT) AS {name}"))
        return rows.select(*columns)

    @property
    def _data(self) -> list[str]:
        """The short names of the stored columns: as many as the schema has beside the partition columns."""
        return [f"c{at}" for at in range(len(self._schema.fields) - len(self._partitions))]

    @property
    def _partitions(self) -> list[str]:
        return [f"p{at}" for at in range(len(self.scan.metadata.partition_columns))]

    @cached_property
    def _stored_fields(self) -> dict[str, StructField]:
        """The columns to read from files, by their short names: the table's, then those of the feed and of row ids."""
        fields = (one for one in self._schema.fields if one.name not in self.scan.metadata.partition_columns)
        found = {
            alias: StructField(
                self._physical(one), self._stored_type(one.dataType), metadata=self._stored_metadata(one)
            )
            for alias, one in zip(self._data, fields, strict=True)
        }
        if self.scan.feed and self.scan.reads_change_files:
            found[_STORED_KIND] = StructField(CHANGE_TYPE, StringType())
        if self.row_ids:
            for alias, name in (("stored_id", _STORED_ID), ("stored_version", _STORED_VERSION)):
                if column := self.scan.metadata.configuration.get(name):
                    found[alias] = StructField(column, LongType())
        return found

    @cached_property
    def _names(self) -> dict[str, str]:
        return {alias: field.name for alias, field in self._stored_fields.items()}

    @property
    def _mapping(self) -> str:
        return self.scan.metadata.configuration.get("delta.columnMapping.mode", "none").lower()

    def _physical(self, one: StructField) -> str:
        return one.name if self._mapping == "none" else str(one.metadata.get(_PHYSICAL, one.name))

    def _stored_metadata(self, one: StructField) -> dict[str, object]:
        """Return what Spark's reader has to know: CHAR columns, which it pads, defaults, and field ids."""
        kept = {name: value for name, value in one.metadata.items() if name in (_CHAR, _DEFAULT)}
        if self._mapping == "id" and _FIELD_ID in one.metadata:
            kept["parquet.field.id"] = one.metadata[_FIELD_ID]
        return kept

    def _stored_type(self, type_: DataType) -> DataType:
        """Return the type as it is in files: physical names of nested fields, texts without collation."""
        if isinstance(type_, StructType):
            return StructType(
                [
                    StructField(self._physical(x), self._stored_type(x.dataType), metadata=self._stored_metadata(x))
                    for x in type_.fields
                ]
            )
        if isinstance(type_, ArrayType):
            return ArrayType(self._stored_type(type_.elementType))
        if isinstance(type_, MapType):
            return MapType(self._stored_type(type_.keyType), self._stored_type(type_.valueType))
        # No file has a column of VOID, and Spark 3.5 refuses to read one.
        return StringType() if isinstance(type_, StringType | NullType) else type_

    def _path(self, file: ScannedFile) -> str:
        return hadoop_path(self.scan.uri, file.path)


@lru_cache(maxsize=64)
def _delta_schema(schema_string: str) -> StructType:
    return StructType.fromJson(json.loads(schema_string))


def _plain(type_: DataType) -> DataType:
    """Return the type without metadata; everything in it may be NULL."""
    if isinstance(type_, StructType):
        return StructType([StructField(one.name, _plain(one.dataType)) for one in type_.fields])
    if isinstance(type_, ArrayType):
        return ArrayType(_plain(type_.elementType))
    if isinstance(type_, MapType):
        return MapType(_plain(type_.keyType), _plain(type_.valueType))
    return type_


def _apart(attributes: Sequence[_Attribute], files: Sequence[ScannedFile]) -> tuple[list[_Attribute], dict[str, str]]:
    """Return the attributes in which the files differ, and the values of all others as SQL."""
    differing, constants = list[_Attribute](), dict[str, str]()
    for one in attributes:
        first = one.value(files[0])
        if one.name != _WORDS and all(one.value(file) == first for file in files):
            constants[one.name] = _literal(first)
        else:
            differing.append(one)
    return differing, constants


def _literal(value: object) -> str:
    """Return the text, number or NULL as SQL, without characters that the parser's settings could change."""
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return f"{value}L"
    return f"'{value}'" if _PLAIN.fullmatch(value) else f"CAST(X'{value.encode().hex()}' AS STRING)"


def _uncompiled(value: str) -> str:
    """Return the value as an element of an array, which Spark passes to compiled code in place of writing it into it.

    With a commit's version in the code, it would compile the code of each slice again: two classes, tens of
    milliseconds. Spark can't know that the index is always 0; it would replace an element that it knows by its value.
    """
    return f"get(array({value}), CAST(monotonically_increasing_id() < 0 AS INT))"


def _key(constants: Mapping[str, str]) -> str:
    return f"(shiftleft({constants.get(_NUMBER, _NUMBER)}, {_INDEX_BITS}) | {_INDEX})"


def _is_listed(folder: str, other: str) -> bool:
    """Whether a listing of the other folder has what is in this one."""
    return folder.startswith(f"{other}/") and _UNLISTED.search(folder, len(other)) is None


def _escaped(path: str) -> str:
    return _OF_PATTERNS.sub(r"\\\g<0>", path)


def _partition_column(column: StructField, type_: DataType, sql: str) -> Column:
    """Return a partition's value, which the log has as text. Text that is no value of the type fails the query."""
    text, name = F.expr(sql), type_.simpleString()
    if isinstance(type_, StringType):
        padded = _CHAR_LENGTH.fullmatch(str(column.metadata.get(_CHAR, "")))
        return F.rpad(text, int(padded[1]), " ") if padded else text.cast(type_)
    why = F.concat(F.lit(f"partition column `{column.name}` is {name}, and a file has the value "), text)
    is_null = text.isNull() | text.isin(*_NULLS)
    # Columns have no `try_cast` before Spark 4.0.
    return F.coalesce(F.expr(f"try_cast({sql} AS {name})"), F.when(~is_null, F.raise_error(why)).cast(type_))


def _without_null(column: StructField, type_: DataType, value: Column) -> Column:
    """Return the column's value. NULL where the schema has NOT NULL, in it or in a struct, fails the query."""
    if not column.nullable:
        why = _literal(f"column `{column.name}` is NOT NULL, and a file has NULL in it, or no such column")
        value = F.coalesce(value, F.expr(f"raise_error({why})"))
    lacks = _lacks_a_member(value, column.dataType)
    if lacks is None:
        return value
    why = _literal(f"a NOT NULL field of column `{column.name}` is NULL in a file, or the file lacks it")
    return F.when(~lacks, value).otherwise(F.expr(f"raise_error({why})").cast(type_))


def _lacks_a_member(struct: Column, type_: DataType) -> Column | None:
    """Return whether a NOT NULL field of a struct, or of one in it, is NULL; None for types without such fields."""
    found: Column | None = None
    for one in type_.fields if isinstance(type_, StructType) else ():
        member = struct.getField(one.name)
        for lacks in (None if one.nullable else member.isNull(), _lacks_a_member(member, one.dataType)):
            if lacks is not None:
                found = lacks if found is None else found | lacks
    return None if found is None else struct.isNotNull() & found


def _partition_value(name: str, file: ScannedFile) -> str | None:
    return file.partition.get(name)


def _words(file: ScannedFile) -> _Longs | None:
    """Return the file's chosen rows as bits of longs, up to the last one; None for all, and where few are hidden."""
    if file.chosen is None or _hides_few(file):
        return None
    rows = _indices(file.chosen)
    bits = np.zeros((int(rows[-1]) // 64 + 1) * 64, np.uint8)
    bits[rows] = 1
    return np.packbits(bits, bitorder="little").view(np.int64)


def _keys(number: int, file: ScannedFile) -> _Longs:
    """Return the numbers of the file's chosen rows in a scan, for a file with this number."""
    assert file.chosen is not None  # noqa: S101 only such files have a number
    keys: _Longs = _indices(file.chosen) | np.int64(number << _INDEX_BITS)
    return keys


def _indices(chosen: ChosenRows) -> _Longs:
    return np.frombuffer(chosen.rows.to_array(), np.uint64).astype(np.int64)
