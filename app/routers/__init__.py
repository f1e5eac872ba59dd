"""HTTP in, HTTP out: a route says what it takes and gives, and calls one use case."""
