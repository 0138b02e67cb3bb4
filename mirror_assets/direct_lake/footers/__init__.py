"""What the footers of Parquet files say, read once per file: files of a Delta table never change."""
