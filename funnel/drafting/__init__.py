"""Drafting: looking at a source that nobody described, and writing a spec that is released as it stands, or a draft."""
