"""The ledger: every release of a steward, refused ones too, in one chain of entries that only ever grows."""
