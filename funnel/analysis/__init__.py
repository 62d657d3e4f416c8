"""A published release as analysts read it: checked, counted, and estimated from."""
