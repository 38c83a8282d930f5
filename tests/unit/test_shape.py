"""The shape of the package, held to its limits: size, width, density, names, imports."""

import ast

import pytest
import shape

BANNED = ("manager", "handler", "helper", "utils", "common", "core", "base", "misc")


@pytest.fixture(scope="module")
def sources() -> list[shape.Source]:
    return shape.read_sources()


def test_every_figure_keeps_its_limit(
    sources: list[shape.Source], capsys: pytest.CaptureFixture[str]
) -> None:
    figures = shape.measure(sources)
    with capsys.disabled():
        shape.print_table(figures)
    assert [figure for figure in figures if figure.is_past] == []


def test_no_module_has_a_name_that_says_nothing(sources: list[shape.Source]) -> None:
    assert [source.name for source in sources if source.stem in BANNED] == []


def test_every_module_says_what_it_is(sources: list[shape.Source]) -> None:
    silent = [source.name for source in sources if not ast.get_docstring(source.tree)]
    assert silent == []
