"""What a run tells about itself: metrics, traces, and what a thread works on; OpenTelemetry's SDK stays in here."""
