"""FastAPI runs plain functions in a thread each, which costs more than what ours do."""

import inspect
from collections.abc import Callable, Iterator

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.entrypoints import api


def test_no_route_and_nothing_it_depends_on_is_handed_to_a_thread() -> None:
    called = [
        call
        for module in api.ROUTED
        for route in module.router.routes
        if isinstance(route, APIRoute)
        for call in _calls(route.dependant)
    ]

    assert len(called) > 100
    assert [each for each in called if not inspect.iscoroutinefunction(each)] == []


def _calls(dependant: Dependant) -> Iterator[Callable[..., object]]:
    if dependant.call is not None:
        yield dependant.call
    for behind in dependant.dependencies:
        yield from _calls(behind)
