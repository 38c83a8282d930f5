from hypothesis import given
from hypothesis import strategies as st

from aftercall.workspace.markdown import LineKind, MarkdownPage


def kinds(text: str) -> list[LineKind]:
    return [line.kind for line in MarkdownPage.parse(text).lines]


@given(st.text(st.sampled_from("\r\n\ufeff \t-#`~*x:\u2028\x0b\udc80")))
def test_a_page_that_is_only_read_is_the_same_text(text: str) -> None:
    assert MarkdownPage.parse(text).text == text


def test_front_matter_counts_only_if_it_closes_and_holds_yaml() -> None:
    assert (
        kinds("---\ntitle: x\ntags:\n- a\n# note\n---\ntext")[:6]
        == [LineKind.FRONT_MATTER] * 6
    )
    assert kinds("---\ntitle: x\ntext")[0] is LineKind.RULE
    assert kinds("---\nSome prose.\n---\n") == [
        LineKind.RULE,
        LineKind.TEXT,
        LineKind.RULE,
    ]
    assert kinds("---\n- **Name:** Bill\n---\n")[1] is LineKind.TEXT
    assert kinds("---\n# Title\n- Name: Bill\n---\n")[1] is LineKind.HEADING
    assert kinds("---\n---\n") == [LineKind.RULE, LineKind.RULE]


def test_a_fence_is_closed_by_one_as_long() -> None:
    assert kinds("````\n```\nx\n````\ny") == [LineKind.CODE] * 4 + [LineKind.TEXT]
    assert kinds("~~~ py\n```\n~~~\n") == [LineKind.CODE] * 3
    assert kinds("```inline```\nx") == [LineKind.TEXT, LineKind.TEXT]


def test_an_open_fence_reaches_to_the_end() -> None:
    assert kinds("a\n```\nb\n") == [
        LineKind.TEXT,
        LineKind.UNCLOSED_CODE,
        LineKind.UNCLOSED_CODE,
    ]


def test_a_comment_is_no_text_unless_it_never_closes() -> None:
    assert kinds("<!-- a\nb -->\nc") == [
        LineKind.COMMENT,
        LineKind.COMMENT,
        LineKind.TEXT,
    ]
    assert kinds("<!-- a\nb") == [LineKind.TEXT, LineKind.TEXT]


def test_replaced_lines_pass_their_endings_on() -> None:
    page = MarkdownPage.parse("a\r\nb\nc")
    assert page.splice(0, 1, ["A"]).text == "A\r\nb\nc"
    assert page.splice(2, 3, ["C"]).text == "a\r\nb\nC"
    assert page.splice(3, 3, ["d"]).text == "a\r\nb\nc\r\nd\r\n"
