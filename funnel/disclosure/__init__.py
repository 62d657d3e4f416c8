"""Disclosure control: what officers ask of a table before it is published, and the grouping that gives it."""
