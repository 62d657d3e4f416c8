"""The reports of a release: a public one of rounded figures with its annex, and an internal one of all evidence."""
