"""Drafting: looking at a source that nobody described, and writing a spec for people to edit."""

from funnel.drafting.draft import draft_spec
from funnel.drafting.look import Column, Look, look_at

__all__ = ["Column", "Look", "draft_spec", "look_at"]
