"""How a caller names a model."""

from typing import Annotated

from pydantic import Field

from app.routers.wire import Line

ModelName = Annotated[
    Line,
    Field(
        min_length=1,
        max_length=200,
        description="`provider/model`: called instead of the agent's own from here on.",
    ),
]
