"""Metrics, traces, and the work that a thread's log lines name. Only this package imports OpenTelemetry."""
