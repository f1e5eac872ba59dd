"""A process that is to end ends, whatever foreign code still does in it."""

import subprocess
import sys

_DEAF = """
import asyncio
from app.entrypoints.processes import run

async def deaf():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def process():
    global task
    task = asyncio.create_task(deaf(), name="a deaf tool")
    await asyncio.sleep(0)
    print("given back")

run(process())
"""


def test_a_tool_that_does_not_heed_its_cancellation_does_not_keep_its_process() -> None:
    ended = subprocess.run(  # noqa: S603 - a script of this test
        [sys.executable, "-c", _DEAF], capture_output=True, text=True, timeout=30, check=False
    )

    assert ended.returncode == 0
    assert ended.stdout.startswith("given back\n")
    assert "a deaf tool" in ended.stdout
