import os
from pathlib import Path


def nearest_existing(folder: Path) -> Path:
    """The folder itself, or the innermost folder above it that can be seen to exist."""
    # os.path's `exists`, because pathlib's raises where a folder above is closed to us.
    return next(path for path in (folder, *folder.parents) if os.path.exists(path))  # noqa: PTH110


def make_open_folders(folder: Path) -> None:
    """Makes a folder and its missing parents, open to all; one that exists stays as it is."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(exist_ok=True)
        missing.chmod(0o755)  # whatever the umask is
