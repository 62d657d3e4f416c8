"""Preview: what the next version of a spec would be made from and would keep; nothing is drawn or published."""
