"""Donors: wide tables, in which a record is published as it is or as somebody else's, by classes of records."""
