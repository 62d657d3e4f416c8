"""Custom expectations, a file for each table of evidence: what a release must be before it is published."""
