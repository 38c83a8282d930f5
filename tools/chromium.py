"""A browser for the tests: nothing to do where one is; otherwise from the system's packages,
where we may install any.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def install_chromium() -> bool:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return False
    install = [apt, "install", "-y", "-q", "--no-install-recommends", "chromium"]
    return _works(install) or (_works([apt, "update", "-q"]) and _works(install))


def _works(command: list[str]) -> bool:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return (
        subprocess.run(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
        == 0
    )


if __name__ == "__main__":
    if find_chromium() is None and not install_chromium():
        print(
            "no browser here, and none can be installed; the tests of the pages in a browser "
            "will be skipped",
            file=sys.stderr,
        )
