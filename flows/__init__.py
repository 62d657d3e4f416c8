"""Prefect flows: the releases, plans and watches that a steward deploys, made of the tasks."""
