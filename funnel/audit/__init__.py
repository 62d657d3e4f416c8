"""The audit of a finished release: every check of its files, from these alone."""
