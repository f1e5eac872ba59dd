"""How an answer's blocks stood, so that it can be sent back as it was.

A stored message holds the text as one and the calls as a list. The plan says in which order they
came, and holds whole what the message has no place for: thinking with its signature, tools that the
provider ran. Where the message is no longer the one the plan was made for (its calls were withheld,
a hook changed its text), the plan is not used at all: thinking goes back in its place, or not.
"""

from collections.abc import Iterator, Sequence

from app.providers.anthropic_blocks import TEXT, THINKING, TOOL_USE, Block
from app.providers.wire_json import JsonObject, as_array, as_count, as_object, is_object

PAUSED = "paused"
"""Marks the plan of an answer that its provider has paused, and goes on with as it is."""


def plan_of(blocks: Sequence[Block], *, is_paused: bool = False) -> JsonObject:
    """The plan of an answer; empty where text before calls says all there is to say."""
    steps = list(_steps(blocks))
    is_special = is_paused or any("block" in step for step in steps)
    if not (steps and is_special) or any(_is_cut(block) for block in blocks):
        return {}
    return {"steps": steps} | ({PAUSED: True} if is_paused else {})


def followed(plan: JsonObject, text: str, calls: Sequence[JsonObject]) -> list[JsonObject] | None:
    """The blocks to send for a message with this text and these calls.

    `None` where the plan is empty, or was made for another message.
    """
    steps = [as_object(step) for step in as_array(plan.get("steps"))]
    lengths = [as_count(step.get("text")) or 0 for step in steps]
    fits = sum(lengths) == len(text) and sum("call" in step for step in steps) == len(calls)
    return list(_blocks(steps, text, calls)) if steps and fits else None


def _steps(blocks: Sequence[Block]) -> Iterator[JsonObject]:
    has_text = any(block.pieces.whole().strip() for block in blocks if block.kind == TEXT)
    for block in blocks:
        if block.kind == TEXT:
            if has_text:
                yield {"text": len(block.pieces.whole())}
        elif block.kind == TOOL_USE:
            yield {"call": True}
        elif (sent := block.as_sent()) is not None:
            yield {"block": sent}


def _is_cut(block: Block) -> bool:
    """A relay may leave out the ends of blocks, but thinking without its end has no signature."""
    return block.kind == THINKING and not (block.is_closed or block.signature)


def _blocks(
    steps: Sequence[JsonObject], text: str, calls: Sequence[JsonObject]
) -> Iterator[JsonObject]:
    at, waiting = 0, iter(calls)
    for step in steps:
        kept = step.get("block")
        if is_object(kept):
            yield kept
        elif "call" in step:
            yield next(waiting)
        else:
            end = at + (as_count(step.get("text")) or 0)
            if text[at:end].strip():
                yield {"type": "text", "text": text[at:end]}
            at = end
