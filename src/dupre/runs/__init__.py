"""A run on disk: its configuration, its directory, its job."""
