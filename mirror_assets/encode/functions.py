"""The functions of Spark that an expression may call, why others are refused, and which read dates and timestamps.

Sources: `SHOW FUNCTIONS` of Spark 4.2, and the class and the input types of each function there. A function that only
some versions have is refused by the others when they analyze the expression.
"""

from __future__ import annotations

from typing import TypeVar

_Value = TypeVar("_Value")

ONE_ROW = "it must be computed from one row: aggregates, window functions and generators can't be"
BY_TIME = "its value depends on the time, so it would differ at each reading"
BY_SESSION = "its value depends on the session"
OWN_FUNCTION = "it calls a function that is not Spark's own"
_DIFFERS = "its value would differ at each reading"


def _each(names: str, value: _Value) -> dict[str, _Value]:
    return dict.fromkeys(names.split(), value)


# Each gives a row the same value at each reading. Operators and keywords that may stand before a parenthesis are here
# as well; most of them are functions of Spark.
_ALLOWED = _each(
    """
    abs acos acosh add_months aes_decrypt aggregate and array array_append array_compact array_contains
    array_distinct array_except array_insert array_intersect array_join array_max array_min array_position
    array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin
    asinh atan atan2 atanh base64 between bigint bin binary bit_count bit_get bit_length bitmap_bit_position
    bitmap_bucket_number bitmap_count boolean bround btrim cardinality case cast cbrt ceil ceiling char char_length
    character_length chr coalesce collate collation concat concat_ws contains conv convert_timezone cos cosh cot
    crc32 csc date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff
    datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees div double e element_at elt encode
    endswith equal_null exists exp expm1 extract factorial filter find_in_set flatten float floor forall
    format_number format_string from_csv from_json from_unixtime from_utc_timestamp from_xml get get_json_object
    getbit greatest hash hex hour hypot if ifnull ilike in initcap instr int is_valid_utf8 is_valid_variant
    is_variant_null isnan isnotnull isnull json_array_length json_object_keys last_day lcase least left len length
    levenshtein like ln locate log log10 log1p log2 lower lpad ltrim luhn_check make_date make_dt_interval
    make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval
    map map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values
    map_zip_with mask md5 minute mod month monthname months_between named_struct nanvl negative next_day not nullif
    nullifzero nvl nvl2 octet_length or overlay parse_json parse_url pi pmod position positive pow power printf
    quarter quote radians reduce regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
    regexp_replace regexp_substr repeat replace reverse right rint rlike round rpad rtrim schema_of_csv
    schema_of_json schema_of_variant schema_of_xml sec second sentences sequence sha sha1 sha2 shiftleft shiftright
    shiftrightunsigned sign signum sin sinh size slice smallint sort_array soundex space split split_part sqrt
    st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid startswith str_to_map string struct substr
    substring substring_index tan tanh time time_bucket time_diff time_from_micros time_from_millis
    time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp timestamp_micros
    timestamp_millis timestamp_seconds timestampadd timestampdiff tinyint to_binary to_char to_csv to_date to_json
    to_number to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar
    to_variant_object to_xml transform transform_keys transform_values translate trim trunc try_add try_aes_decrypt
    try_cast try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url try_subtract try_to_binary try_to_date
    try_to_number try_to_time try_to_timestamp try_url_decode try_validate_utf8 try_variant_get typeof ucase
    unbase64 unhex unix_date unix_micros unix_millis unix_seconds unix_timestamp upper url_decode url_encode
    validate_utf8 variant_get vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm
    vector_normalize weekday weekofyear when width_bucket xpath xpath_boolean xpath_double xpath_float xpath_int
    xpath_long xpath_number xpath_short xpath_string xxhash64 year zeroifnull zip_with
    then else for from placing interval escape dec numeric varchar character
    """,
    "",
)
_OF_ROWS = """
    any any_value array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and
    bool_or collations collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp cume_dist
    dense_rank every explode explode_outer first first_value grouping grouping_id histogram_numeric inline
    inline_outer json_tuple kurtosis lag last last_value lead listagg max max_by mean measure median min min_by mode
    nth_value ntile over percent_rank percentile percentile_approx percentile_cont percentile_disc posexplode
    posexplode_outer python_worker_logs range rank regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy row_number schema_of_variant_agg session_window skewness some sql_keywords stack std
    stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance variant_explode
    variant_explode_outer vector_avg vector_sum window window_time
"""
_REFUSED = {
    **_each(_OF_ROWS, ONE_ROW),
    **_each("curdate current_date current_time current_timestamp localtimestamp now", BY_TIME),
    **_each("current_catalog current_database current_path current_schema current_timezone", BY_SESSION),
    **_each("current_user session_user user version", BY_SESSION),
    **_each("rand randn random randstr uniform uuid shuffle monotonically_increasing_id", _DIFFERS),
    **_each("input_file_name input_file_block_length input_file_block_start", _DIFFERS),
    "spark_partition_id": _DIFFERS,
    # They call Java, or other libraries.
    **_each("java_method reflect try_reflect", OWN_FUNCTION),
    **_each("from_avro to_avro schema_of_avro from_protobuf to_protobuf", OWN_FUNCTION),
    **_each("raise_error assert_true", "it raises errors, which would stop the table"),
    "aes_encrypt": "its value has a random part, so it would differ at each reading",
    "identifier": "it reads a column that isn't found in its text; write it in another way",
}
# By the number of arguments.
FORMS_REFUSED = {"unix_timestamp/0": BY_TIME, "convert_timezone/2": BY_SESSION}
_SKETCHES = ("approx_", "hll_", "kll_", "theta_", "tuple_")
_SKETCH = "it computes with sketches, which estimate and may differ between versions of Spark"

# The arguments that a function reads as a timestamp, also if they are texts; `/1` is the form with one argument.
TIMESTAMP_AT = {
    **_each("hour minute second unix_micros unix_millis unix_seconds timestamp", (0,)),
    **_each("date_format from_utc_timestamp to_utc_timestamp", (0,)),
    **_each("to_timestamp/1 to_timestamp_ltz/1 try_to_timestamp/1", (0,)),
    **_each("date_trunc date_part datepart", (1,)),
    **_each("timestampadd dateadd/3 date_add/3", (2,)),
    **_each("time_bucket timestampdiff datediff/3 date_diff/3", (1, 2)),
    "months_between": (0, 1),
}
DATE_AT = {
    **_each("date to_date/1 try_to_date/1 unix_date add_months date_add/2 dateadd/2 date_sub", (0,)),
    "to_timestamp_ntz/1": (0,),
    "convert_timezone": (2,),
    **_each("year quarter month monthname weekofyear weekday", (0,)),
    **_each("day dayname dayofmonth dayofweek dayofyear last_day next_day trunc", (0,)),
    **_each("make_timestamp make_timestamp_ltz make_timestamp_ntz", (0,)),
    **_each("try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz", (0,)),
    **_each("date_diff/2 datediff/2", (0, 1)),
}
# They read a text as the type that another argument names, which may be a timestamp.
PARSERS = ("from_json", "from_csv", "from_xml", "variant_get", "try_variant_get")
# They look up their second argument in the first one.
LOOKUPS = ("element_at", "try_element_at", "map_contains_key")
# They take texts beside dates and timestamps, without a cast of one to the other.
MIXING = _each(
    """
    arrays_zip array_sort concat concat_ws elt exists filter forall format_string hash map_filter map_from_arrays
    map_zip_with named_struct printf struct to_char to_unix_timestamp to_varchar transform transform_keys
    transform_values unix_timestamp xxhash64 zip_with
    """,
    "",
)
# What stands for the variables of a lambda function where the types of its parts are asked: values of its arguments.
_ELEMENT, _KEY, _VALUE = "{0}[0]", "map_keys({0})[0]", "map_values({0})[0]"
VARIABLES = {
    **_each("transform filter exists forall", (_ELEMENT, "0")),
    **_each("map_filter transform_keys transform_values", (_KEY, _VALUE)),
    **_each("aggregate reduce", ("{1}", _ELEMENT)),
    "array_sort": (_ELEMENT, _ELEMENT),
    "zip_with": (_ELEMENT, "{1}[0]"),
    "map_zip_with": (_KEY, _VALUE, "map_values({1})[0]"),
}


def function_problem(name: str) -> str:
    """Return why an expression can't call a function with this lower name, or an empty text."""
    if name.startswith(_SKETCHES):
        return _SKETCH
    return (_ALLOWED | _REFUSED).get(name, f"{OWN_FUNCTION}, or not in the list of those that it may call: {name}")
