"""Messages that are hidden: by a revert, for as long as it lasts or for good.

Which they are stands in their conversation's row, as ranges of places: hiding thousands of messages
writes one row, and the message that makes it final writes that row anyway.
"""

HIDDEN_IN = "({0}.hidden + int4multirange({0}.reverted))"
"""The places that are hidden, of a table `conversations` by that name."""
HIDDEN = f"m.position <@ {HIDDEN_IN.format('c')}"
"""Whether a message `m` of the conversation `c` is hidden."""
