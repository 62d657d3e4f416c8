"""What a bound costs: every mechanism at every budget, and what other columns and values would cost."""
