"""HTTP conventions: problems, sign-in, audit, entity tags, event streams."""
