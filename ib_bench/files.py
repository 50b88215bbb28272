"""Files that are written whole or not at all, in folders and on object stores alike."""

import os
import uuid

from etils import epath


def write_whole(path: epath.Path, text: str) -> None:
    """Writes a file at once: renamed into place locally, one PUT on object stores.

    Raises:
      OSError: it cannot be written; a file that was there before is as it was.
    """
    if "://" in str(path):  # an object store has no folders
        path.write_text(text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}"
    try:
        with open(temporary, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):  # a full disk names no file
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
