"""The suites: each measures one thing that a user waits or pays for."""
