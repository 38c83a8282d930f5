"""The look-up of licences finds what it is there to find."""

from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import dependencies
import pytest


@pytest.mark.parametrize(
    ("licence", "is_allowed"),
    [
        *(("MIT", True), ("Apache-2.0 OR GPL-3.0", True), ("BSD License", True)),
        *(("MIT AND GPL-3.0", False), ("", False), ("Proprietary", False)),
    ],
)
def test_licences_are_allowed_by_name(licence: str, is_allowed: bool) -> None:
    assert dependencies.is_allowed(licence) is is_allowed


class Package(Distribution):
    """An installed package that says this much about itself."""

    def __init__(self, about: str) -> None:
        self._about = about

    def read_text(self, filename: str) -> str | None:
        return self._about if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


def test_a_package_without_a_known_licence_is_named() -> None:
    packages = [
        Package("Name: good\nClassifier: License :: OSI Approved :: MIT License\n"),
        Package("Name: dark\nLicense: ask our lawyers\n"),
        Package("Name: other\n"),
    ]
    (problem,) = dependencies.find_unlicensed(packages, {"good", "dark"})
    assert problem.startswith("dark: its licence is ask our lawyers")


def test_every_pinned_package_may_be_used() -> None:
    assert dependencies.main() == 0
