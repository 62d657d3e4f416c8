"""One file for each version of the database, from an empty one on; none is ever changed."""
