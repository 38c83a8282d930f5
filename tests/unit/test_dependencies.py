"""The look-up of vulnerabilities and licences finds what it is there to find, offline."""

from datetime import date
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import dependencies
import pytest
import yaml
from dependencies import Advisory

KNOWN: dict[str, Any] = {
    "packages": {"jinja2": [{"id": "PYSEC-1", "ranges": [["0", "2.11.3"]]}], "idna": []}
}
ENTRY = {
    "id": "PYSEC-2",
    "affected": [
        {
            "package": {"name": "Some.Thing", "ecosystem": "PyPI"},
            "ranges": [
                {"type": "GIT", "events": [{"introduced": "0"}]},
                {
                    "type": "ECOSYSTEM",
                    "events": [
                        *({"introduced": "0"}, {"fixed": "1.2"}),
                        *({"introduced": "2.0"}, {"last_affected": "2.4"}),
                        {"introduced": "3.0"},
                    ],
                },
            ],
        }
    ],
}


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [
        *(("1.1", True), ("1.2", False), ("2.0rc1", False), ("2.4", True)),
        *(("2.4.1", False), ("3.0", True), ("99", True)),
    ],
)
def test_a_version_is_affected_within_the_ranges(
    version: str, is_affected: bool
) -> None:
    ranges = tuple(dependencies.read_ranges(ENTRY, "some-thing"))
    assert Advisory("PYSEC-2", ranges).affects(version) is is_affected


def test_a_vulnerable_pin_is_named_with_its_advisory() -> None:
    pins = {("jinja2", "2.11.2"), ("idna", "3.20")}
    (problem,) = dependencies.find_vulnerable(pins, KNOWN)
    assert problem.startswith("jinja2 2.11.2 has PYSEC-1")
    assert list(dependencies.find_vulnerable({("jinja2", "3.1.6")}, KNOWN)) == []


def test_withdrawn_advisories_are_left_out(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "vulns" / "some-thing"
    folder.mkdir(parents=True)
    (folder / "a.yaml").write_text(yaml.safe_dump(ENTRY))
    (folder / "b.yaml").write_text(yaml.safe_dump(ENTRY | {"withdrawn": "2026"}))
    monkeypatch.setattr(dependencies, "read_age", lambda _: "2026-01-01")
    found = dependencies.collect_advisories(tmp_path, ["some-thing", "other"])
    assert [entry["id"] for entry in found["packages"]["some-thing"]] == ["PYSEC-2"]
    assert found["packages"]["other"] == []


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


def test_every_pinned_package_was_looked_up_and_passes(capsys: Any) -> None:
    assert dependencies.check(date(2026, 11, 16)) == 0
    assert "days old" in capsys.readouterr().out
