"""Prefect tasks: one thin file for each step of a release; each calls the library and touches files."""
