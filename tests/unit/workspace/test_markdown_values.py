import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.workspace.markdown import (
    one_line,
    plain_lines,
    replace_undecodable,
    strip_emphasis,
)


@pytest.mark.parametrize(
    ("value", "bare"),
    [
        ("*Bill*", "Bill"),
        ("**Bill**", "Bill"),
        ("_Bill_", "Bill"),
        ("`UTC`", "UTC"),
        ("**_Bill_**", "Bill"),
        ("snake_", "snake_"),
    ],
)
def test_emphasis_around_a_value_is_not_part_of_it(value: str, bare: str) -> None:
    assert strip_emphasis(value) == bare


@pytest.mark.parametrize("value", ["**a** and **b**", "*", "**", "*a* or *b*", "2*3"])
def test_marks_that_are_no_pair_stay(value: str) -> None:
    assert strip_emphasis(value) == value


def test_plain_lines_hold_no_structure() -> None:
    text = "# Title\n---\n```\n- # sneaky\n> > quoted\n  \n* item\n#tag\n====\nlast"
    assert plain_lines(text) == ["Title", "sneaky", "quoted", "item", "tag", "last"]


def test_bytes_that_were_no_text_are_marked_when_read() -> None:
    assert (
        replace_undecodable(b"caf\xe9".decode("utf-8", "surrogateescape"))
        == "caf\ufffd"
    )


@given(st.text(st.characters(codec=None)))
def test_a_value_stays_on_its_line_and_opens_no_comment(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert line == line.strip()
    assert "<!--" not in line
    line.encode("utf-8")
    assert one_line(line) == line


@given(st.text(st.characters(codec=None) | st.sampled_from("#-`~> \n*")))
def test_no_plain_line_begins_with_a_heading_mark(text: str) -> None:
    for line in plain_lines(text):
        assert not line.startswith(("#", "```", "~~~", "- ", ">", " "))
        assert line.strip("-=*_ ")
