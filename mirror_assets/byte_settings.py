"""The settings of Spark, Hadoop, Parquet and Delta that decide which rows are read and which bytes are written.

Each has one value on every Spark version, and each session of this package has all of them. So `spark-defaults.conf`,
Hadoop's XML files and a context that was started by others change nothing. Every setting of `SET -v`, the internal ones
and Delta's were examined. The table leaves out settings that only change speed, memory, logs or error messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mirror_assets.errors import ErrorCode, ErrorRow, SettingError

# Spark passes settings with this prefix on to Hadoop.
HADOOP = "spark.hadoop."
# Without it, Spark 3.5 takes the table of a scan's files row by row.
_ARROW = "spark.sql.execution.arrow.pyspark.enabled"
# A shuffle whose number of partitions no query names begins with many. Adaptive execution joins them by their bytes and
# the cluster's cores: one task for a small table, 64 MB a task for a large one. Users may set other values.
_SHUFFLES = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "1000"}
_CATALYST = "org.apache.spark.sql.catalyst.optimizer"
_SQL, _PARQUET, _DELTA = "spark.sql.", "spark.sql.parquet.", "spark.databricks.delta."


@dataclass(frozen=True)
class ByteSettings:
    """Settings that share a reason, with their values. `reason` completes the sentence "it has this value: …"."""

    topic: str
    reason: str
    values: Mapping[str, str]


def _under(prefix: str, values: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}{name}": value for name, value in values.items()}


BYTE_SETTINGS: tuple[ByteSettings, ...] = (
    ByteSettings(
        "lost files",
        "a file that is missing or damaged is an error; otherwise its rows are skipped",
        {
            **_under(
                f"{_SQL}files.",
                {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false", "ignoreInvalidPartitionPaths": "false"},
            ),
            f"{HADOOP}parquet.read.bad.record.threshold": "0",
            f"{_DELTA}isDeltaTable.throwOnError": "true",
        },
    ),
    ByteSettings(
        "local paths",
        "a path without a scheme, in a log or in Spark, is one of this machine; a cluster's file system has its scheme "
        "in the address, and its own processes read HADOOP_CONF_DIR",
        {f"{HADOOP}fs.defaultFS": "file:///"},
    ),
    ByteSettings(
        "calendar",
        "Parquet and Delta store dates and times in the proleptic Gregorian calendar; Spark's default is an error in "
        "Spark 3.5, and the other value moves dates before 1582",
        _under(
            _PARQUET,
            {
                "datetimeRebaseModeInRead": "CORRECTED",
                "datetimeRebaseModeInWrite": "CORRECTED",
                "int96RebaseModeInRead": "CORRECTED",
                "int96RebaseModeInWrite": "CORRECTED",
            },
        ),
    ),
    ByteSettings(
        "times",
        "a timestamp has one meaning and one stored type, whatever machine reads it",
        {
            f"{_SQL}session.timeZone": "UTC",
            f"{_SQL}timestampType": "TIMESTAMP_LTZ",
            **_under(
                _PARQUET,
                {
                    "outputTimestampType": "TIMESTAMP_MICROS",
                    "int96AsTimestamp": "true",
                    "int96TimestampConversion": "false",
                    "inferTimestampNTZ.enabled": "true",
                },
            ),
            f"{_SQL}legacy.parquet.nanosAsLong": "false",
        },
    ),
    ByteSettings(
        "Parquet types",
        "stored values have the types that the Delta log names, and landed files the types that Fabric reads",
        {
            **_under(
                _PARQUET,
                {
                    "writeLegacyFormat": "false",
                    "binaryAsString": "false",
                    "ignoreVariantAnnotation": "false",
                    "reader.respectUnknownTypeAnnotation.enabled": "false",
                },
            ),
            **_under(f"{_SQL}variant.", {"allowReadingShredded": "true", "pushVariantIntoScan": "false"}),
            f"{HADOOP}parquet.writer.version": "PARQUET_1_0",
        },
    ),
    ByteSettings(
        "columns",
        "a column is found by the name or id in the log: files may spell a name in another case, and a file without "
        "ids is an error",
        {
            f"{_SQL}caseSensitive": "false",
            **_under(
                _PARQUET,
                {
                    "fieldId.read.enabled": "true",
                    "fieldId.read.ignoreMissing": "false",
                    "fieldId.write.enabled": "true",
                    "mergeSchema": "false",
                    "respectSummaryFiles": "false",
                },
            ),
            # Folders named `part=01` must not become a column of integers beside those of the log.
            f"{_SQL}sources.partitionColumnTypeInference.enabled": "false",
        },
    ),
    ByteSettings(
        "reader",
        "one reader is tested, which also refuses stored types that the other one converts without an error; structs "
        "are read whole, because a pruned one can appear as NULL where a file lacks the field",
        {
            **_under(_PARQUET, {"enableVectorizedReader": "true", "enableNestedColumnVectorizedReader": "true"}),
            f"{_SQL}optimizer.nestedSchemaPruning.enabled": "false",
            f"{_SQL}legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
            f"{_SQL}sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
        },
    ),
    ByteSettings(
        "accelerators",
        "Spark's own readers and operators are tested, not those that Comet, Gluten or RAPIDS put in their place",
        {"spark.comet.enabled": "false", "spark.gluten.enabled": "false", "spark.rapids.sql.enabled": "false"},
    ),
    ByteSettings(
        "statistics",
        "statistics in footers, checksum files and the log are hints of the writer: a wrong one must not hide rows",
        {
            **_under(
                _PARQUET,
                {"filterPushdown": "false", "aggregatePushdown": "false", "recordLevelFilter.enabled": "false"},
            ),
            f"{_SQL}optimizer.metadataOnly": "false",
            **_under(
                _DELTA,
                {
                    "optimizeMetadataQuery.enabled": "false",
                    "stats.limitPushdown.enabled": "false",
                    "generatedColumn.partitionFilterOptimization.enabled": "false",
                    "skipping.partitionLikeFilters.enabled": "false",
                    "allFilesInCrc.enabled": "false",
                    "readProtocolAndMetadataFromChecksum.enabled": "false",
                },
            ),
        },
    ),
    ByteSettings(
        "Delta's reader",
        "it reads the current log and its commit files by the proven path, and a check of the reader stays a check",
        _under(
            _DELTA,
            {
                "stalenessLimit": "0ms",
                # A compacted log file can only repeat the commits, or be wrong.
                "deltaLog.minorCompaction.useForReads": "false",
                # Set to false, Delta refuses tables with deletion vectors.
                "stats.skipping": "true",
                "deletionVectors.useMetadataRowIndex": "true",
                "normalizePartitionValuesOnRead": "true",
                "checkLatestSchemaOnRead": "true",
                "checksum.mismatch.fatal": "true",
                "changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled": "false",
                "changeDataFeed.defaultSchemaModeForColumnMappingTable": "endVersion",
                "streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled": "false",
                "streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled": "false",
                "streaming.unsafeReadOnNullabilityChange.enabled": "false",
                "streaming.unsafeReadOnPartitionColumnChanges.enabled": "false",
                "typeWidening.bypassStreamingTypeChangeCheck": "false",
                "typeWidening.bypassUnsupportedTypeChangeCheck": "false",
                "tableFeatures.dev.unsupportedTableFeatures.enabled": "false",
                "enableTableRedirectFeature": "false",
                "skipRedirectFeature": "false",
                "catalog.enableServerSidePlanning": "false",
                # Without its extension, Delta's reader shows rows that deletion vectors hide.
                "requiredSparkConfsCheck.enabled": "true",
                "v2.enableMode": "AUTO",
            },
        )
        | _under(_SQL, {"timeTravelVersionKey": "versionAsOf", "timeTravelTimestampKey": "timestampAsOf"}),
    ),
    ByteSettings(
        "CHAR columns",
        "a CHAR column has the same text with every writer: it is padded when it is read",
        _under(
            _SQL,
            {
                "readSideCharPadding": "true",
                "legacy.charVarcharAsString": "false",
                "legacy.noCharPaddingInPredicate": "false",
                "preserveCharVarcharTypeInfo": "false",
                "charAsVarchar": "false",
            },
        ),
    ),
    ByteSettings(
        "expressions",
        "`where` and `columns` mean the same on every Spark version: those of Spark 4",
        _under(
            _SQL,
            {
                "ansi.enabled": "true",
                "ansi.doubleQuotedIdentifiers": "false",
                "ansi.enforceReservedKeywords": "false",
                "storeAssignmentPolicy": "ANSI",
                "decimalOperations.allowPrecisionLoss": "true",
                "mapKeyDedupPolicy": "EXCEPTION",
                "parser.escapedStringLiterals": "false",
                "parser.quotedRegexColumnNames": "false",
                "function.concatBinaryAsString": "false",
                "function.eltOutputAsString": "false",
                "chunkBase64String.enabled": "true",
                "icu.caseMappings.enabled": "true",
                "columnNameOfCorruptRecord": "_corrupt_record",
                "json.enablePartialResults": "true",
                "json.enableExactStringParsing": "true",
                "jsonGenerator.ignoreNullFields": "true",
                "variant.allowDuplicateKeys": "false",
                "variant.validateUnicodeInJsonParsing": "true",
                "runSQLOnFiles": "true",
                "retainGroupColumns": "true",
                "selfJoinAutoResolveAmbiguity": "true",
                "analyzer.failAmbiguousSelfJoin": "true",
                # The landed files' footers are written from an alias's metadata.
                "optimizer.preserveAliasMetadataWhenCollapsingProjects": "true",
            },
        )
        | _under(
            f"{_SQL}legacy.",
            {
                "timeParserPolicy": "CORRECTED",
                "typeCoercion.datetimeToString.enabled": "false",
                "castComplexTypesToString.enabled": "false",
                "decimal.retainFractionDigitsOnTruncate": "false",
                "literal.pickMinimumPrecision": "true",
                "allowNegativeScaleOfDecimal": "false",
                "exponentLiteralAsDecimal.enabled": "false",
                "disableMapKeyNormalization": "false",
                "negativeIndexInArrayInsert": "false",
                "followThreeValuedLogicInArrayExists": "true",
                "allowNullComparisonResultInArraySort": "false",
                "nullInEmptyListBehavior": "false",
                "codingErrorAction": "false",
                "javaCharsets": "false",
                "truncateForEmptyRegexSplit": "false",
                "lpadRpadAlwaysReturnString": "false",
                "json.allowEmptyString.enabled": "false",
                "json.enableDateTimeParsingFallback": "false",
                "csv.enableDateTimeParsingFallback": "false",
                "interval.enabled": "false",
                "bangEqualsNot": "false",
                "consecutiveStringLiterals.enabled": "false",
                "createEmptyCollectionUsingStringType": "false",
                "collationAwareHashFunctions": "false",
                "allowHashOnMapType": "false",
            },
        ),
    ),
    ByteSettings(
        "counts",
        "the operators that count rows stay where a query turns out to have none; without them Spark 3.5 and 4.0 wait "
        "for counts that never come, and newer ones have none",
        {
            f"{_SQL}optimizer.excludedRules": f"{_CATALYST}.PruneFilters,{_CATALYST}.PropagateEmptyRelation",
            f"{_SQL}adaptive.optimizer.excludedRules": (
                "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
            ),
        },
    ),
    ByteSettings(
        "written files",
        "the staged folder has the parts that Spark committed, each once and unencrypted, and no other file",
        {
            f"{_SQL}sources.commitProtocolClass": (
                "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
            ),
            f"{_PARQUET}output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
            **_under(
                f"{HADOOP}parquet.",
                {
                    "summary.metadata.level": "NONE",
                    "encryption.footer.key": "",
                    "encryption.column.keys": "",
                    "encryption.uniform.key": "",
                },
            ),
        },
    ),
    ByteSettings(
        "repeated tasks",
        "a task that runs again sends each row where the first attempt sent it; otherwise rows are lost or doubled",
        _under(
            _SQL,
            {
                "execution.sortBeforeRepartition": "true",
                "shuffle.orderIndependentChecksum.enabled": "true",
                "shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
            },
        ),
    ),
)
PINNED: Mapping[str, str] = {name: value for group in BYTE_SETTINGS for name, value in group.values.items()}


def session_settings(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session of this package: these, those that decide bytes, and defaults for shuffles.

    Hadoop reads session settings by its own names, without Spark's prefix. A context that this package did not start
    has none of them.
    """
    both = {**_SHUFFLES, **wanted, **PINNED, _ARROW: "true"}
    return both | {name.removeprefix(HADOOP): value for name, value in both.items()}


@dataclass(frozen=True)
class ContextSetting:
    """A setting of the Spark context or of Hadoop that decides rows, and that no session can change.

    `value` is the only one that is accepted; None: Hadoop must not have it, not from its XML files either.
    """

    name: str
    value: str | None
    reason: str


CONTEXT_SETTINGS = (
    ContextSetting(
        f"{HADOOP}outputCommitCoordination.enabled",
        "true",
        "two attempts of one task could both commit their part, so rows would land twice",
    ),
    ContextSetting(
        f"{HADOOP}mapreduce.input.pathFilter.class", None, "it hides data files from Spark, so their rows would be lost"
    ),
)
_FIXED: Mapping[str, str | None] = {**PINNED, **{setting.name: setting.value for setting in CONTEXT_SETTINGS}}
_REASONS = {name: group.reason for group in BYTE_SETTINGS for name in group.values}
_REASONS |= {setting.name: setting.reason for setting in CONTEXT_SETTINGS}


def setting_problem(name: str, value: str) -> str | None:
    """Return why a user's setting can't have this value; None if it may."""
    if name not in _FIXED or value.strip().casefold() == (_FIXED[name] or "").casefold():
        return None
    fixed = _FIXED[name]
    allowed = f"can only be {fixed!r}" if fixed else "can't be set"
    return f"it decides which rows land, and {allowed}: {_REASONS[name]}"


def require_fixed(settings: Mapping[str, str]) -> None:
    """Raise SETTING_FIXED for a setting that has another value than this package's sessions have."""
    for name, value in settings.items():
        problem = setting_problem(name, value)
        if problem is not None:
            raise SETTING_FIXED(name=name, problem=problem)


SETTING_FIXED = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "A setting that decides rows and has another value.",
    "spark.settings: {name}: {problem}.",
    "remove it; the value that this package sets needs no line.",
    "mirror-assets validate --config path/to/mirror.yaml    # lists all mistakes with their lines",
)
CONTEXT_UNFIT = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "A Spark context has a setting that decides rows and that no session can change.",
    "the Spark context has {name}={found}: {reason}.",
    "{step} where the context is started (spark-defaults.conf, core-site.xml or the project's Spark resource), then "
    "start the process again.",
    "mirror-assets doctor --table TABLE",
)


def context_unfit(setting: ContextSetting, found: str) -> SettingError:
    """Return CONTEXT_UNFIT for a setting with the value `found`."""
    step = "remove it" if setting.value is None else f"set it to {setting.value}"
    return CONTEXT_UNFIT(name=setting.name, found=found, reason=setting.reason, step=step)
