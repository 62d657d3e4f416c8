"""Binning: cut points that are found for a column of numbers, where the spec says ``bins = "auto"``.

Where noise protects the frequencies they are a function of the declared range
(`funnel.settings.numbers.NumberSettings`), and this room has no part in it: nothing of the source may.
"""
