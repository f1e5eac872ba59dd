"""`POST /console/login`: a one-time code becomes a session's cookie."""

from fastapi import APIRouter, Request, Response

from app.http.auth import COOKIE, COOKIE_SECONDS, SIGN_IN_PATH
from app.http.error_handlers import ProblemError
from app.http.openapi import may_answer
from app.routers.deps import StateDep
from app.routers.message_schemas import Id
from app.routers.wire import Input

router = APIRouter(tags=["sign-in"])


class LoginBody(Input):
    code: Id


@router.post(
    SIGN_IN_PATH,
    status_code=204,
    response_class=Response,
    openapi_extra=may_answer("login_code_invalid"),
)
async def sign_in(body: LoginBody, request: Request, state: StateDep) -> Response:
    """Sets an HttpOnly, SameSite=Strict cookie that is good for 30 days."""
    if not state.login_codes.take(body.code):
        if state.authenticator.by_cookie(request.cookies.get(COOKIE)) is not None:
            return Response(status_code=204)  # the printed address was opened once more
        raise ProblemError("login_code_invalid", "start the server again for a fresh one")
    answer = Response(status_code=204)
    answer.set_cookie(
        COOKIE,
        state.authenticator.new_session(),
        max_age=COOKIE_SECONDS,
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="strict",
        path="/",
    )
    return answer
