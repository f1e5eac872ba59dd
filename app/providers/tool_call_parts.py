"""Which fragment belongs to which tool call, and what its arguments are in the end.

Providers agree on little here. What holds for all of them:

- The index comes first. At an index already in use, a new id *together with a name* opens another
  call (Ollama and LiteLLM number every call 0); a new id alone does not (Poolside).
- Without an index an unseen id opens a call, and no id continues the last one.
- Without an id or an index, a fragment with a name opens another call when the last one already
  has complete arguments.
- The name is set once: repeated names are not glued together, split names are, as long as no
  argument has come.
"""

import json
from dataclasses import dataclass, field

import orjson

from app.providers.opaque import opaque_in
from app.providers.wire_json import (
    JsonObject,
    as_array,
    as_object,
    as_text,
    is_object,
    json_text,
    mended,
    parsed,
    parsed_object,
)
from app.turn.ids import CallId
from app.turn.transcript import ToolCall

MAX_CALLS = 1_000
_PLAIN_KEYS = frozenset({"index", "id", "type", "function"})
_EXCERPT_CHARACTERS = 120
_MAX_PIECES_LOOKED_AT = 1_000


class TooManyCallsError(Exception):
    """An answer asks for more than 1,000 tool calls."""


@dataclass(slots=True)
class _Call:
    index: int | None
    call_id: str = ""
    name: str = ""
    written: list[str] = field(default_factory=list[str])
    extras: dict[str, object] = field(default_factory=dict[str, object])
    """What came beside the call and must go back with it."""

    @property
    def text(self) -> str:
        return "".join(self.written)

    def take(self, fragment: "_Fragment") -> None:
        self.call_id = self.call_id or fragment.call_id
        self.extras.update(fragment.extras)
        self._take_name(fragment.name)
        if fragment.arguments and not self._has_all_of(fragment.arguments):
            self.written.append(fragment.arguments)

    def _has_all_of(self, arguments: str) -> bool:
        """Whether these are the complete arguments once more: a gateway sent a chunk twice."""
        return self.written == [arguments] and self.is_complete()

    def _take_name(self, name: str) -> None:
        if name.startswith(self.name):
            self.name = name
        elif not self.written:
            self.name += name

    def is_another(self, fragment: "_Fragment") -> bool:
        """Whether a fragment addressed to this call opens a new one instead."""
        if not fragment.name:
            return False
        if fragment.call_id and self.call_id and fragment.call_id != self.call_id:
            return True
        is_addressed = fragment.index is not None and fragment.call_id
        return not is_addressed and bool(fragment.arguments) and self.is_complete()

    def is_complete(self) -> bool:
        """Whether the arguments are an object by now; not asked of endless ones again and again."""
        return len(self.written) < _MAX_PIECES_LOOKED_AT and parsed_object(self.text) is not None


@dataclass(frozen=True, slots=True)
class _Fragment:
    index: int | None
    call_id: str
    name: str
    arguments: str
    extras: JsonObject


def _fragment(entry: JsonObject) -> _Fragment:
    function = as_object(entry.get("function"))
    index = entry.get("index")
    return _Fragment(
        index=index if isinstance(index, int) else None,
        call_id=as_text(entry.get("id")),
        name=as_text(function.get("name")),
        arguments=_argument_text(function.get("arguments")),
        extras={
            name: value
            for name, value in entry.items()
            if name not in _PLAIN_KEYS and any(opaque_in({name: value}))
        },
    )


def _argument_text(arguments: object) -> str:
    if is_object(arguments):  # llama.cpp and Ollama send the object itself
        return json_text(arguments)
    return as_text(arguments)


@dataclass(slots=True)
class ToolCallParts:
    """Collects the fragments of an answer's tool calls."""

    _calls: list[_Call] = field(default_factory=list[_Call])

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, entries: object) -> int:
        """Take the fragments of one chunk; returns how many characters of arguments came.

        A list of them is expected; TGI sends one without a list round it.

        Raises:
            TooManyCallsError: These are more than 1,000 calls.
        """
        listed = [entries] if is_object(entries) else as_array(entries)
        fragments = [_fragment(entry) for entry in listed if is_object(entry)]
        for fragment in fragments:
            self._call_for(fragment).take(fragment)
        return sum(len(fragment.arguments) for fragment in fragments)

    def signatures(self) -> tuple[str, ...]:
        """The opaque parts that came with the calls, in order."""
        return tuple(sign for call in self._ordered() for sign in opaque_in(call.extras))

    def to_return(self) -> list[JsonObject]:
        """What must go back with each call, in the order of the calls; mostly nothing."""
        return [call.extras for call in self._ordered()]

    def argument_texts(self) -> tuple[str, ...]:
        """The arguments as they were written, in the order of the calls."""
        return tuple(mended(call.text) for call in self._ordered())

    def finished(self, *, was_cut: bool) -> tuple[ToolCall, ...]:
        """The calls by index, else by arrival; one cut short has no usable arguments."""
        return tuple(
            tool_call(call.call_id, call.name, call.text, was_cut=was_cut)
            for call in self._ordered()
        )

    def _call_for(self, fragment: _Fragment) -> _Call:
        current = self._addressed_by(fragment)
        if current is None or current.is_another(fragment):
            current = _Call(fragment.index)
            self._calls.append(current)
        if len(self._calls) > MAX_CALLS:
            raise TooManyCallsError
        return current

    def _addressed_by(self, fragment: _Fragment) -> _Call | None:
        for call in reversed(self._calls):
            if fragment.index is not None:
                fits = call.index == fragment.index
            else:
                fits = not fragment.call_id or call.call_id == fragment.call_id
            if fits:
                return call
        return None

    def _ordered(self) -> list[_Call]:
        if any(call.index is None for call in self._calls):
            return self._calls
        return sorted(self._calls, key=lambda call: call.index or 0)


def tool_call(call_id: str, name: str, arguments: str, *, was_cut: bool) -> ToolCall:
    """A finished call; one whose arguments are no JSON object says so in `problem`."""
    text = mended(arguments)
    usable = "{}" if not text.strip() and not was_cut else object_text(text)
    return ToolCall(
        call_id=CallId(mended(call_id)),
        tool_name=mended(name),
        arguments=usable or "{}",
        problem=None if usable else _problem(text, was_cut=was_cut),
    )


def object_text(text: str) -> str | None:
    """The text itself where it is a JSON object, else the object it encodes, else nothing.

    What comes out is strict JSON, fit to be put into a request as it is.
    """
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _repaired(text)
    if is_object(value):
        return text
    if isinstance(value, str) and parsed_object(value) is not None:
        return object_text(value)  # encoded twice, as some gateways do
    return "{}" if value is None else None


def _repaired(text: str) -> str | None:
    """Valid JSON for an object that only has escapes or numbers which strict parsers refuse."""
    value = parsed(text)
    if not is_object(value):
        return None
    try:
        return mended(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (ValueError, RecursionError):
        return None


def _problem(text: str, *, was_cut: bool) -> str:
    if was_cut:
        return "the answer was cut before these arguments were complete"
    return f"the arguments are not a JSON object: {text[:_EXCERPT_CHARACTERS]}"
