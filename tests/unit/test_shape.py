"""The shape of the package: a gauge with a brake.

Aims stand beside the figures; far past an aim, it fails.
"""

import ast
import statistics
from pathlib import Path

import pytest

import aftercall

PACKAGE = Path(aftercall.__file__).parent
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts)
BANNED = ("manager", "handler", "helper", "utils", "common", "core", "base", "misc")


def functions(tree: ast.AST) -> list[int]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def test_the_figures_stay_near_their_aims(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [len(path.read_text().splitlines()) for path in SOURCES if path.stat().st_size]
    trees = [ast.parse(path.read_text()) for path in SOURCES]
    lengths = sorted(length for tree in trees for length in functions(tree))
    broad = sum(
        isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"))
        for tree in trees
        for node in ast.walk(tree)
    )
    figures = {
        "file median (≤ 150)": (statistics.median(lines), 200),
        "file max (≤ 400)": (max(lines), 450),
        "function median (≤ 9)": (statistics.median(lengths), 12),
        "function p90 (≤ 35)": (lengths[int(len(lengths) * 0.9)], 45),
        "function max (≤ 60)": (lengths[-1], 80),
        "broad excepts per 1,000 lines (≤ 1)": (1000 * broad / sum(lines), 2),
    }
    with capsys.disabled():
        print()
        for name, (figure, _) in figures.items():
            print(f"  {name:38} {figure:.1f}")
    assert {name: figure for name, (figure, brake) in figures.items() if figure > brake} == {}


def test_no_room_is_named_after_nothing() -> None:
    assert [path.name for path in SOURCES if path.stem in BANNED] == []


def test_every_module_says_what_it_owns() -> None:
    assert [
        path.name
        for path in SOURCES
        if path.stat().st_size and not ast.get_docstring(ast.parse(path.read_text()))
    ] == []
