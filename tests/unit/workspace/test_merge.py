"""Two people change one page on two machines: no line of either is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.workspace.markdown import merge_texts

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "d", "x", "y"]), max_size=9)
TEXTS = LINES.map("\n".join)
BASES = st.none() | TEXTS


def count_kept(text: str, rest: tuple[str, ...] = ()) -> set[str]:
    return {*text.split("\n"), *rest}


@given(BASES, TEXTS, TEXTS)
def test_no_line_that_either_side_wrote_is_lost(
    base: str | None, own: str, other: str
) -> None:
    merged = merge_texts(base, own, other)
    old = set((base or "").split("\n")) if base is not None else set()
    assert count_kept(own) - old <= count_kept(merged.text)
    assert count_kept(other) - old <= count_kept(merged.text, merged.left_over)


@given(TEXTS, TEXTS)
def test_a_side_that_changed_nothing_gives_way_to_the_other(
    base: str, changed: str
) -> None:
    for own, other in ((base, changed), (changed, base)):
        merged = merge_texts(base, own, other)
        assert (merged.text, merged.left_over) == (changed, ())


@given(BASES, TEXTS)
def test_the_same_change_on_both_sides_is_made_once(
    base: str | None, changed: str
) -> None:
    merged = merge_texts(base, changed, changed)
    assert (merged.text, merged.left_over) == (changed, ())


@given(TEXTS, TEXTS, TEXTS)
def test_merging_again_what_is_merged_already_loses_nothing(
    base: str, own: str, other: str
) -> None:
    """As after a crash between the commit and the file."""
    once = merge_texts(base, own, other)
    again = merge_texts(base, own, once.text)
    added = count_kept(once.text) - count_kept(base)
    assert added <= count_kept(again.text, again.left_over)


@pytest.mark.parametrize(
    ("base", "own", "other", "text", "left_over"),
    [
        ("a\n", "a\nmine\n", "a\ntheirs\n", "a\nmine\ntheirs\n", ()),
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n", ()),
        ("a\nb\n", "a\nmine\n", "a\ntheirs\n", "a\nmine\n", ("theirs",)),
        ("a\nb\n", "a\n", "a\ntheirs\n", "a\n", ("theirs",)),
        ("a\nb\n", "a\nmine\n", "a\n", "a\nmine\n", ()),
        ("a", "a\nmine", "a\ntheirs\n", "a\nmine\ntheirs\n", ()),
        ("a\nb\n", "a\nnew\nb\n", "a\nB\n", "a\nnew\nB\n", ()),
        ("a\n", "a\nmine\n", "a\nmine\ntheirs\n", "a\nmine\ntheirs\n", ()),
        (None, "a\nmine\n", "a\ntheirs\n", "a\nmine\ntheirs\n", ()),
    ],
)
def test_changes_meet_as_people_expect(
    base: str | None, own: str, other: str, text: str, left_over: tuple[str, ...]
) -> None:
    merged = merge_texts(base, own, other)
    assert (merged.text, merged.left_over) == (text, left_over)
