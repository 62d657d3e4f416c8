"""What of the counts becomes public, and how precisely: every public figure of a release is made here, rounded first.

Whatever is made of rounded figures afterwards, a table, a chart or a document, tells no more than they do. The exact
figures stay in the internal evidence. Public writers take the frozen types of this room and nothing exact.
"""
