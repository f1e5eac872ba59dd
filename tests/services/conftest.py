from tests.http.rig import rig as rig  # noqa: PLC0414 - a fixture is found by its name here
