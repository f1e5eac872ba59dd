"""Processes that drive turns: claim, drive, release."""
