"""What a file needs to survive a power cut besides its own sync: the sync of the folder that holds its name."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
