"""A release on disk: its folders, its version, and the metadata that describe it to machines."""
