"""The console: a page over the public API, served as files."""
