"""The imperative shell of one turn: it carries news to the core and carries out its wishes."""
