"""Delta tables as Power BI's Direct Lake reads them: by their log and their files' footers. No Spark, no Dagster."""
