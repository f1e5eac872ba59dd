"""Use cases: who may, which turn, one request. One function each."""
