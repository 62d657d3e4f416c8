"""Recount: everything a release is judged by, computed a second time and by code that no release is made with.

Counts come from the source itself, through other readers; levels come from the text of the guarantee, in plain
fractions. Nothing of what makes a release is imported here (an import contract holds that), so that one mistake, or one
sabotaged line, is not made twice.
"""
