"""The agent that is there before a user has declared one."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.agents.declaration import Agent
from app.agents.forms import Form
from app.ports import Tool

_INSTRUCTIONS = """\
You are the assistant of a small mail-order shop.
Look things up with your tools before you answer, and several at once where you can.
Answer in a few sentences, with the numbers you found.
Save a note only when you are asked to, and pay only what you are asked to pay.
If you need to know something from the user, ask with request_user_input.
If a tool fails or its outcome is unknown, say so plainly."""


class Address(BaseModel):
    """Where a parcel goes."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(title="Name", min_length=1, max_length=100)]
    street: Annotated[str, Field(title="Street and number", min_length=1, max_length=100)]
    zip: Annotated[str, Field(title="ZIP code", pattern="^[0-9]{5}$")]
    city: Annotated[str, Field(title="City", min_length=1, max_length=100)]
    country: Annotated[Literal["DE", "FR", "NL", "PL"], Field(title="Country")] = "DE"
    deliver_on: Annotated[date | None, Field(title="Deliver on")] = None
    leave_at_door: Annotated[bool, Field(title="May be left at the door")] = False


ADDRESS = Form(key="address", title="Delivery address", schema=Address)


def builtin_agent(tools: Sequence[Tool]) -> Agent:
    """The agent `assistant`, on whatever model the settings name at the time of each call.

    It names no model and no version: its version follows from these words and from the tools, so
    that a start with another key or model brings back the turns that wait.
    """
    return Agent(id="assistant", instructions=_INSTRUCTIONS, tools=tools, forms=[ADDRESS])
