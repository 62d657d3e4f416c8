"""Readers: opening a source of any format, which of its records are meant, and what one cell of a column means."""
