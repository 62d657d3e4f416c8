"""Optimised unary encoding: its design, exact levels, utility, draws and the sets it releases."""

from __future__ import annotations

from funnel.mechanisms.unary.drawing import draw_sets, to_table
from funnel.mechanisms.unary.encoding import UnaryEncoding
from funnel.mechanisms.unary.labels import parse_set, parse_sets, set_label, set_labels
from funnel.mechanisms.unary.level import UnaryLevel, UnaryWitness, unary_level
from funnel.mechanisms.unary.listing import LARGEST_LISTED, listed_sets, listed_weights
from funnel.mechanisms.unary.strongest import unary_encoding
from funnel.mechanisms.unary.utility import unary_utility

__all__ = [
    "LARGEST_LISTED",
    "UnaryEncoding",
    "UnaryLevel",
    "UnaryWitness",
    "draw_sets",
    "listed_sets",
    "listed_weights",
    "parse_set",
    "parse_sets",
    "set_label",
    "set_labels",
    "to_table",
    "unary_encoding",
    "unary_level",
    "unary_utility",
]
