"""mirror.yaml as a typed model; every error names the line to correct."""
