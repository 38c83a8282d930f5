"""The licences of the packages we ship with and build with, held to what we allow.

`python tools/dependencies.py` reads the names in `requirements*.txt` and what the installed
packages say of themselves. Known vulnerabilities: `make advisories`, which needs the network.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
ALLOWED = re.compile(
    r"Apache|BSD|MIT|ISC|MPL|Mozilla Public|PSF|Python Software|CNRI|Unlicense|0BSD|Zlib"
)
# Looked at by hand: what each is, and why it may stay.
BY_HAND = {
    "axe-playwright-python": "MIT; its package names none",
    "espeakng-loader": "loads espeak-ng, which is GPL-3.0-or-later: extra `speech` and tests only",
    "psycopg": "LGPL-3.0-only: used as a library, extra `postgres`",
    "psycopg-binary": "LGPL-3.0-only: used as a library, extra `postgres`",
}
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==", re.MULTILINE)


def read_names(folder: Path = ROOT) -> set[str]:
    """Without those of .venv-frameworks: what agents run on is their owners' choice."""
    files = set(folder.glob("requirements*.txt"))
    files.discard(folder / "requirements-frameworks.txt")
    names = (name for file in files for name in _PIN.findall(file.read_text()))
    return {canonicalize_name(name) for name in names}


def find_unlicensed(
    installed: Iterable[Distribution], names: set[str]
) -> Iterator[str]:
    for package in installed:
        name = canonicalize_name(package.metadata["Name"])
        if name not in names or name in BY_HAND:
            continue
        licence = read_licence(package)
        if not is_allowed(licence):
            yield f"{name}: its licence is {licence or 'not named'}; see BY_HAND in this tool"


def read_licence(package: Distribution) -> str:
    """The SPDX expression, else the classifiers, else the first line of the licence field."""
    about = package.metadata
    for expression in about.get_all("License-Expression") or ():
        return str(expression)
    classifiers = about.get_all("Classifier") or []
    named = [line.rpartition(" :: ")[2] for line in classifiers if "License ::" in line]
    free_text = " ".join(about.get_all("License") or ())
    return " OR ".join(named) or free_text.strip().partition("\n")[0]


def is_allowed(licence: str) -> bool:
    """One of the alternatives must be allowed whole."""
    return any(
        all(ALLOWED.search(part) for part in choice.split(" AND "))
        for choice in licence.split(" OR ")
    )


def main() -> int:
    names = read_names()
    problems = list(find_unlicensed(distributions(), names))
    print(*problems, f"{len(names)} packages, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
