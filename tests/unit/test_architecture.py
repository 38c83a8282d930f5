"""The architecture page names only what is there, and the layers that are enforced."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PACKAGE = ROOT / "src" / "aftercall"


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`([\w/]+(?:\.py|/))`", PAGE)
    assert len(named) > 40
    data = {"spill/", "run/"}  # folders of a home
    assert [
        name for name in named if name not in data and not (PACKAGE / name).exists()
    ] == []


def test_the_layers_on_the_page_are_those_that_are_enforced() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    enforced = [re.sub(r"[()]", "", layer) for layer in contract["layers"]]
    layers = PAGE.split("## Layers")[1].split("```")[1].strip().splitlines()
    assert layers == enforced


def test_every_decision_that_is_linked_exists() -> None:
    folder = ROOT / "docs" / "decisions"
    linked = {
        link
        for page in [ROOT / "docs" / "architecture.md", *folder.glob("*.md")]
        for link in re.findall(
            r"\((?:decisions/)?(\d{4}-[\w-]+\.md)\)", page.read_text("utf-8")
        )
    }
    assert sorted(name for name in linked if not (folder / name).exists()) == []
    numbers = sorted(int(path.name[:4]) for path in folder.glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))
