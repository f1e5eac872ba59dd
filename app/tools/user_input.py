"""`request_user_input`: the built-in tool with which a model asks the user (T43, T76)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, NoReturn

from pydantic import Field

from app.ports import FrozenForm, NotLocalError, Tool, ToolContext
from app.tools.parameters import parameters_of
from app.turn.agent import Effect, ToolSpec
from app.turn.waits import InputNeeded, Unusable

_NAME = "request_user_input"
_DESCRIPTION = (
    "Ask the user for what you need to know to go on. They answer in words, or by a form if you "
    "name one."
)
_LONGEST_MESSAGE = 8_000


def _signature(
    message: Annotated[str, Field(description="What to ask.", min_length=1, max_length=8_000)],
    form: Annotated[str | None, Field(description="The form to show, by its key.")] = None,
) -> None:
    del message, form


_PARAMETERS = parameters_of(_signature, _NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInputTool:
    """Asks the user in words or by one of the agent's forms; implements `app.ports.Tool`."""

    forms: Mapping[str, FrozenForm] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=_NAME,
            description=_DESCRIPTION,
            parameters=_schema(self.forms),
            effect=Effect.READS,
            kind="input",
        )

    def with_forms(self, forms: Sequence[FrozenForm]) -> Tool:
        """The tool as a model sees it that may show these forms."""
        return UserInputTool(forms=MappingProxyType({form.key: form for form in forms}))

    def look_at(self, arguments: str) -> InputNeeded | Unusable:
        """What the user is asked; nothing where the arguments do not fit or the form is unknown."""
        misfit = _PARAMETERS.misfit(arguments)
        if misfit is not None:
            return misfit
        asked = json.loads(arguments)
        message, key = asked["message"], asked.get("form")
        if not message.strip():
            return Unusable(content="Invalid arguments, nobody was asked: the message is blank")
        if key is None:
            return InputNeeded(form_key=None, schema=None, message=message)
        if key not in self.forms:
            known = ", ".join(self.forms) or "none"
            return Unusable(
                content=f"Invalid arguments, nobody was asked: there is no form {key!r:.200}; "
                f"forms: {known}"
            )
        return self.forms[key].needed(message)

    async def run(self, arguments: str, context: ToolContext) -> NoReturn:
        """It is not run: the user's answer is its result.

        Raises:
            NotLocalError: always.
        """
        del arguments, context
        wrong = f"tool {_NAME!r} is answered by the user"
        raise NotLocalError(wrong)


def _schema(forms: Mapping[str, FrozenForm]) -> str:
    """The arguments' schema, with the forms there are; without any, the model sees none."""
    schema = json.loads(_PARAMETERS.schema)
    shown = ", ".join(f"{form.key} ({form.title or form.key})" for form in forms.values())
    schema["properties"].pop("form")
    if forms:
        schema["properties"]["form"] = {
            "type": "string",
            "enum": list(forms),
            "description": f"The form to show, by its key: {shown}.",
        }
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


request_user_input: Tool = UserInputTool()
"""For `Agent(tools=[..., request_user_input], forms=[...])`."""
