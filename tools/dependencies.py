"""The packages we ship with and build with: known vulnerabilities and licences, without a network.

`python tools/dependencies.py` compares `requirements*.txt` with `tools/advisories.json` and the
licences of the installed packages with what we allow. `--update FOLDER` makes that file anew from
a checkout of github.com/pypa/advisory-database (`make advisories` does both).
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
ADVISORIES = Path(__file__).with_name("advisories.json")
SOURCE = "github.com/pypa/advisory-database"
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
# Advisories that do not concern us, each with its reason.
ACCEPTED: dict[str, str] = {}
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)


@dataclass(frozen=True)
class Advisory:
    """`ranges` are pairs of the first affected version and the first one that is not."""

    id: str
    ranges: tuple[tuple[str, str | None], ...]

    def affects(self, version: str) -> bool:
        here = Version(version)
        return any(
            (start == "0" or Version(start) <= here)
            and (end is None or here < Version(end))
            for start, end in self.ranges
        )


def read_pins(folder: Path = ROOT) -> set[tuple[str, str]]:
    """Name and version of each; one may have two versions, for two Pythons."""
    files = folder.glob("requirements*.txt")
    pins = (pin for file in files for pin in _PIN.findall(file.read_text()))
    return {(canonicalize_name(name), version) for name, version in pins}


def find_vulnerable(pins: set[tuple[str, str]], known: dict[str, Any]) -> Iterator[str]:
    for name, version in sorted(pins):
        for entry in known["packages"].get(name, ()):
            ranges = tuple((start, end) for start, end in entry["ranges"])
            advisory = Advisory(entry["id"], ranges)
            if advisory.id not in ACCEPTED and advisory.affects(version):
                yield f"{name} {version} has {advisory.id}: take a newer version"


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


def collect_advisories(folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """The file for these packages from a checkout of the database."""
    packages = {}
    for name in sorted(names):
        found = [
            {"id": entry["id"], "ranges": list(read_ranges(entry, name))}
            for file in sorted((folder / "vulns" / name).glob("*.yaml"))
            if "withdrawn" not in (entry := yaml.safe_load(file.read_text()))
        ]
        packages[name] = [entry for entry in found if entry["ranges"]]
    return {"source": SOURCE, "as_of": read_age(folder), "packages": packages}


def read_ranges(entry: dict[str, Any], name: str) -> Iterator[tuple[str, str | None]]:
    for affected in entry["affected"]:
        if canonicalize_name(affected["package"]["name"]) != name:
            continue
        kinds = [
            item for item in affected.get("ranges", ()) if item["type"] == "ECOSYSTEM"
        ]
        for item in kinds:
            yield from pair_events(item)
        if not kinds:
            for version in affected.get("versions", ()):
                yield version, f"{version}.post0.dev0"


def pair_events(item: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    start = None
    for event in item["events"]:
        if "introduced" in event:
            start = str(event["introduced"])
        elif start is not None and ("fixed" in event or "last_affected" in event):
            last = event.get("last_affected")
            end = event.get("fixed") or f"{last}.post0.dev0"
            yield start, str(end)
            start = None
    if start is not None:
        yield start, None


def read_age(folder: Path) -> str:
    """The day of the newest commit."""
    shown = subprocess.run(
        ["git", "-C", str(folder), "log", "-1", "--format=%cs"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.strip()


def check(today: date) -> int:
    known = json.loads(ADVISORIES.read_text())
    pins = read_pins()
    age = (today - date.fromisoformat(known["as_of"])).days
    print(
        f"advisories of {known['source']} as of {known['as_of']}, {age} days old; "
        "`make advisories` brings newer ones"
    )
    names = {name for name, _ in pins}
    missing = sorted(names - known["packages"].keys())
    problems = [
        *find_vulnerable(pins, known),
        *find_unlicensed(distributions(), names),
        *(f"{name}: not looked up yet; run `make advisories`" for name in missing),
    ]
    print(*problems, f"{len(names)} packages, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", type=Path, metavar="FOLDER")
    folder = parser.parse_args().update
    if folder is not None:
        found = collect_advisories(folder, {name for name, _ in read_pins()})
        ADVISORIES.write_text(json.dumps(found, indent=1) + "\n")
    return check(datetime.now(UTC).date())


if __name__ == "__main__":
    sys.exit(main())
