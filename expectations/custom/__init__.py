"""Custom expectations, one file each: what a release must be before it is published."""
