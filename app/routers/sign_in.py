"""`POST /console/login`: a one-time code becomes a session's cookie."""

from fastapi import APIRouter, Response

from app.http.auth import COOKIE, COOKIE_SECONDS
from app.http.error_handlers import ProblemError
from app.routers.deps import StateDep
from app.routers.message_schemas import Id
from app.routers.wire import Input

router = APIRouter(tags=["sign-in"])


class LoginBody(Input):
    code: Id


@router.post("/console/login", status_code=204, response_class=Response)
async def sign_in(body: LoginBody, state: StateDep) -> Response:
    """Sets an HttpOnly, SameSite=Strict cookie that is good for 30 days."""
    if not state.login_codes.take(body.code):
        raise ProblemError("login_code_invalid", "start the server again for a fresh one")
    answer = Response(status_code=204, headers={"Cache-Control": "no-store"})
    answer.set_cookie(
        COOKIE,
        state.authenticator.new_session(),
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        path="/",
    )
    return answer
