"""`mirror-assets direct-lake`: tables as Direct Lake reads them, from log and footers."""
