class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot run here; the message says why and what to do about it."""
