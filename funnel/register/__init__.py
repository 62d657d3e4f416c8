"""Register: what was ever published about some people, so that the next version can take it into account."""
