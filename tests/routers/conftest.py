from tests.http.rig import rig as rig  # noqa: PLC0414 - a fixture for this folder
from tests.http.rig import still as still  # noqa: PLC0414 - likewise
from tests.routers.stage import stage as stage  # noqa: PLC0414 - likewise
