"""History: one bound for everything published about a person, however many versions (METHOD section 9)."""
