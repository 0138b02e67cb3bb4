"""Pairs of SQL values: what a hash of rows must take as equal, and what it must tell apart."""

EQUAL = [
    ("double('NaN')", "double('NaN')"),
    ("double('NaN')", "-double('NaN')"),
    ("CAST(NULL AS STRING)", "CAST(NULL AS STRING)"),
    ("DATE'0001-01-01'", "DATE'0001-01-01'"),
]
DIFFERENT = [
    ("-0.0D", "0.0D"),
    ("CAST(-0.0D AS FLOAT)", "CAST(0.0D AS FLOAT)"),
    ("CAST(NULL AS DOUBLE)", "0.0D"),
    ("CAST(NULL AS STRING)", "''"),
    ("CAST(NULL AS BINARY)", "X''"),
    ("CAST(NULL AS INT)", "0"),
    ("CAST(NULL AS BOOLEAN)", "false"),
    ("X'00'", "X'0000'"),
    ("1.10BD", "1.11BD"),
    ("double('NaN')", "double('Infinity')"),
    ("-1e-320D", "0.0D"),
    ("'a'", "'a '"),
    ("'a'", "'A'"),
    ("TIMESTAMP'2020-01-01 00:00:00'", "TIMESTAMP'2020-01-01 00:00:00.000001'"),
]
