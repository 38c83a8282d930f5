from hypothesis import given
from hypothesis import strategies as st

from aftercall.workspace.lines import Kind, Page


def kinds(text: str) -> list[Kind]:
    return [line.kind for line in Page.read(text).lines]


@given(st.text(st.sampled_from("\r\n\ufeff \t-#`~*x:\u2028\x0b\udc80")))
def test_a_page_that_is_only_read_is_the_same_text(text: str) -> None:
    assert Page.read(text).text == text


def test_front_matter_counts_only_if_it_closes_and_holds_yaml() -> None:
    assert kinds("---\ntitle: x\ntags:\n- a\n# note\n---\ntext")[:6] == [Kind.FRONT_MATTER] * 6
    assert kinds("---\ntitle: x\ntext")[0] is Kind.RULE
    assert kinds("---\nSome prose.\n---\n") == [Kind.RULE, Kind.TEXT, Kind.RULE]
    assert kinds("---\n- **Name:** Bill\n---\n")[1] is Kind.TEXT
    assert kinds("---\n# Title\n- Name: Bill\n---\n")[1] is Kind.HEADING
    assert kinds("---\n---\n") == [Kind.RULE, Kind.RULE]


def test_a_fence_is_closed_by_one_as_long() -> None:
    assert kinds("````\n```\nx\n````\ny") == [Kind.CODE] * 4 + [Kind.TEXT]
    assert kinds("~~~ py\n```\n~~~\n") == [Kind.CODE] * 3
    assert kinds("```inline```\nx") == [Kind.TEXT, Kind.TEXT]


def test_an_open_fence_reaches_to_the_end() -> None:
    assert kinds("a\n```\nb\n") == [Kind.TEXT, Kind.UNCLOSED_CODE, Kind.UNCLOSED_CODE]


def test_a_comment_is_no_text_unless_it_never_closes() -> None:
    assert kinds("<!-- a\nb -->\nc") == [Kind.COMMENT, Kind.COMMENT, Kind.TEXT]
    assert kinds("<!-- a\nb") == [Kind.TEXT, Kind.TEXT]


def test_replaced_lines_pass_their_endings_on() -> None:
    page = Page.read("a\r\nb\nc")
    assert page.splice(0, 1, ["A"]).text == "A\r\nb\nc"
    assert page.splice(2, 3, ["C"]).text == "a\r\nb\nC"
    assert page.splice(3, 3, ["d"]).text == "a\r\nb\nc\r\nd\r\n"
