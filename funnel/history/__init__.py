"""One bound for everything published about a person: the next protocol may read what was published before."""
