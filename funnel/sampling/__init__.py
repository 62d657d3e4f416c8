"""Sampling: secure random words, exact integer draws, record-keyed reuse and row order, in bounded memory."""
