"""Frequencies: the one place where exact counts become public ones."""
