"""What builds worlds for tests: local services and lakes, random histories, planted faults, and killed processes."""
