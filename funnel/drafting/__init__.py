"""Drafting: looking at a source that nobody described, and writing a spec that is released as it stands, or a draft."""

from funnel.drafting.choice import Answers, Choice, choose
from funnel.drafting.draft import draft_spec, written_spec
from funnel.drafting.look import Column, Look, look_at
from funnel.drafting.roles import Roles, roles_of

__all__ = [
    "Answers",
    "Choice",
    "Column",
    "Look",
    "Roles",
    "choose",
    "draft_spec",
    "look_at",
    "roles_of",
    "written_spec",
]
