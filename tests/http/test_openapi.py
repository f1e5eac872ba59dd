"""openapi/openapi.json: what the routes are, said honestly."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.entrypoints.api import routes
from app.http.auth import COOKIE, SIGN_IN_PATH
from app.http.openapi import may_answer, openapi_text
from app.http.problems import PROBLEMS
from app.routers.message_schemas import MessageBody
from app.routers.turn_schemas import TurnOutput
from tests.http.rig import PROBLEM, Rig
from tests.routers.test_turns import FIELDS

FILE = Path(__file__).parents[2] / "openapi/openapi.json"
DESCRIPTION: dict[str, Any] = json.loads(openapi_text(routes()))
SCHEMAS: dict[str, Any] = DESCRIPTION["components"]["schemas"]


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DESCRIPTION["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def operation(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = DESCRIPTION["paths"][path][method]
    return found


def test_the_file_is_what_the_routes_give() -> None:
    assert FILE.read_text() == openapi_text(routes()), "run scripts/openapi"


async def test_the_service_serves_the_same_description(rig: Rig) -> None:
    answer = await rig.client.get("/openapi.json")

    assert answer.json() == DESCRIPTION


def test_every_operation_has_an_id_of_its_own_and_a_tag() -> None:
    ids = [found["operationId"] for _, _, found in operations()]

    assert len(set(ids)) == len(ids)
    assert all(len(found["tags"]) == 1 for _, _, found in operations())


def test_everything_but_health_and_sign_in_needs_a_token_or_a_session() -> None:
    assert DESCRIPTION["security"] == [{"bearer": []}, {"cookie": []}]
    assert DESCRIPTION["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "bearer"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
    }
    is_open = {path for _, path, found in operations() if found.get("security") == []}
    assert is_open == {"/livez", "/readyz", SIGN_IN_PATH}


def test_every_error_of_every_operation_is_a_problem_of_the_table() -> None:
    for method, path, found in operations():
        codes: list[str] = found["x-problem-codes"]
        errors = {status: r for status, r in found["responses"].items() if int(status) >= 400}

        assert {str(PROBLEMS[code].status) for code in codes} == set(errors), (method, path)
        for status, response in errors.items():
            assert list(response["content"]) == [PROBLEM]
            named = [code for code in codes if str(PROBLEMS[code].status) == status]
            assert all(f"`{code}`" in response["description"] for code in named)


def test_every_problem_but_those_of_the_address_is_answered_by_some_operation() -> None:
    answered = {code for _, _, found in operations() for code in found["x-problem-codes"]}

    assert answered == set(PROBLEMS) - {"not_found", "method_not_allowed"}


def test_commands_name_what_the_audit_may_refuse() -> None:
    for method, path, found in operations():
        is_command = method != "get" and path != SIGN_IN_PATH
        of_commands = {"forbidden", "cross_site"}

        assert (of_commands <= set(found["x-problem-codes"])) == is_command, (method, path)


def test_every_post_but_the_sign_in_takes_an_idempotency_key() -> None:
    for method, path, found in operations():
        takes_a_key = any(p["name"] == "Idempotency-Key" for p in found.get("parameters", ()))

        assert takes_a_key == (method == "post" and path != SIGN_IN_PATH), (method, path)


def test_the_streams_are_event_streams() -> None:
    streams = {
        (method, path)
        for method, path, found in operations()
        if "text/event-stream" in found["responses"].get("200", {}).get("content", {})
    }

    assert streams == {
        ("get", "/turns/{turnId}/events"),
        ("get", "/conversations/{conversationId}/events"),
        ("post", "/turns/{turnId}/resume"),
        ("post", "/conversations/{conversationId}/messages"),
        ("post", "/conversations/{conversationId}/turns"),
        ("post", "/turns"),
        ("post", "/turns/{turnId}/run"),
        ("post", "/turns/{turnId}/fork"),
        ("post", "/conversations/{conversationId}/resume"),
    }
    assert "204" in operation("get", "/turns/{turnId}/events")["responses"]


def test_a_resume_is_one_of_the_commands_or_a_failure_id_alone() -> None:
    body = operation("post", "/turns/{turnId}/resume")["requestBody"]
    commands, alone = body["content"]["application/json"]["schema"]["oneOf"]

    assert commands["discriminator"]["propertyName"] == "command"
    assert set(commands["discriminator"]["mapping"]) == {
        "RETRY_MODEL",
        "RETRY",
        "CONTINUE",
        "RESUME",
        "USER_INPUT",
        "REPLAN_WITH_MESSAGE",
        "APPROVE_TOOL",
        "REJECT_TOOL",
        "TOOL_RESULT",
        "TOOL_ERROR",
    }
    failure_alone = SCHEMAS[alone["$ref"].rpartition("/")[2]]
    assert failure_alone["required"] == ["failureId"]
    assert set(failure_alone["properties"]) == {"failureId"}


def test_what_callers_send_is_closed_and_camel_case() -> None:
    bodies = [name for name in SCHEMAS if name.endswith(("Body", "Input"))]

    assert bodies
    assert all(SCHEMAS[name]["additionalProperties"] is False for name in bodies)
    for schema in SCHEMAS.values():
        assert not any("_" in name for name in schema.get("properties", {}))


def test_the_turn_resource_has_the_fields_of_the_semantics() -> None:
    assert set(SCHEMAS[TurnOutput.__name__]["properties"]) == FIELDS
    assert SCHEMAS[MessageBody.__name__]["required"] == ["content"]


TURNS = tuple(f"/{name}'}}" for name in ("TurnOutput", "PostedTurnOutput", "CancelledTurnOutput"))


def test_every_answer_that_is_a_turn_has_its_version_and_its_place() -> None:
    for method, path, found in operations():
        for status, response in found["responses"].items():
            shown = str(response.get("content", {}).get("application/json", {}).get("schema", {}))
            is_a_turn = shown.endswith(TURNS)

            is_placed = {"ETag", "Location"} <= response.get("headers", {}).keys()
            assert is_a_turn == is_placed, (method, path, status)


def test_nothing_of_the_frameworks_own_errors_is_left() -> None:
    assert "HTTPValidationError" not in FILE.read_text()


def test_a_route_cannot_name_a_problem_that_is_none() -> None:
    with pytest.raises(KeyError):
        may_answer("nonsense")


def test_every_answer_to_a_post_may_say_that_it_is_a_replay() -> None:
    for method, path, found in operations():
        for status, response in found["responses"].items():
            is_marked = "Idempotency-Replayed" in response.get("headers", {})
            is_taken = method == "post" and path != SIGN_IN_PATH and status.startswith("2")
            assert is_marked == is_taken, (method, path, status)
