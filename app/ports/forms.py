"""Forms that users fill in, as an agent's version declares them."""

from dataclasses import dataclass

from app.turn.waits import InputNeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenForm:
    """A form with its schema as text, which is what a wait keeps of it (case 105)."""

    key: str
    title: str | None
    schema: str
    """A JSON Schema of an object; see `app.ports.schema_check`."""

    def needed(self, message: str | None) -> InputNeeded:
        """What a call needs that asks for this form."""
        return InputNeeded(form_key=self.key, schema=self.schema, title=self.title, message=message)
