"""The source of a release: its categories, and reading it as codes, all streaming; `funnel.readers` open it."""
