"""Tables of the command line: what people copy from them is whole."""

import sys
from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from aftercall.cli.console import SpeechConsole, make_console, make_table
from aftercall.cli.context import count_nouns, print_line, print_rows


def test_a_narrow_terminal_wraps_the_text_and_leaves_the_id_whole() -> None:
    table = make_table("id", "state", "title", "why", texts=2)
    row = ("01M7JCCMV76ZJXQPTX5YVJD6KW", "held", "Open a bug " * 9, "it waits " * 9)
    table.add_row(*row)
    out = StringIO()
    Console(file=out, width=70, soft_wrap=True).print(table)
    assert row[0] in out.getvalue()
    assert max(len(line.rstrip()) for line in out.getvalue().splitlines()) <= 70


def test_what_was_said_does_not_steer_the_terminal() -> None:
    said = "\x1b]0;owned\x07 \x9b31m\x1b[2J bye\r"
    table = make_table("said", "why")
    table.add_row(said, Text(said))
    out = StringIO()
    console = SpeechConsole(file=out, markup=False, width=400)
    for shown in (said, Text(said), table):
        console.print(shown)
    assert not set("\x1b\x07\x9b\r") & set(out.getvalue())
    assert out.getvalue().count("bye") == 4
    assert isinstance(make_console(), SpeechConsole)


def test_a_list_fits_80_columns_and_leaves_its_ids_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = ("id", "when", "who", "long", "what")
    row = (
        "01M7JCCMV76ZJXQPTX5YVJD6KW",
        "2026-11-16 20:30",
        "+15550177",
        "2:00",
        "x " * 90,
    )
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_rows(heads, [row])
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[1].split("  ")[0] == row[0]
    assert max(map(len, lines[1:])) <= 80
    assert out.count("x") == 90


def test_a_list_in_a_pipe_has_one_line_for_each_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_rows(("id", "what"), [("A", "x " * 900), ("B", "two\nlines")])
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_what_was_said_does_not_steer_the_terminal_from_a_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_rows(("id", "what"), [("\x1b[2JA", "\x1b]0;owned\x07 \x9b31m bye\r")])
    assert not set("\x1b\x07\x9b\r") & set(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"sealed_call": 1, "file": 2}, "1 sealed call, 2 files"),
        ({"follow_up": 0}, "0 follow-ups"),
        ({"entry": 1200, "day": 3, "match": 2}, "1,200 entries, 3 days, 2 matches"),
    ],
)
def test_counts_are_written_as_people_write_them(
    counts: dict[str, int], text: str
) -> None:
    assert count_nouns(**counts) == text


def test_a_printed_line_has_no_control_characters_and_no_styles_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_line(("failed", "red"), " \x1b[2J[bold]said[/bold]")
    assert capsys.readouterr().out == "failed \ufffd[2J[bold]said[/bold]\n"
