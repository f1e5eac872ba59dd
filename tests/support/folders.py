import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reachable_folder() -> Generator[Path]:
    """A temporary folder that the database's account can enter, which pytest's own it cannot."""
    folder = Path(tempfile.mkdtemp(prefix="tk-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
