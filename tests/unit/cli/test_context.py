"""Tables of the command line: what people copy from them is whole."""

from io import StringIO

from rich.console import Console
from rich.text import Text

from aftercall.cli.context import (
    SpeechConsole,
    make_console,
    make_table,
    print_rows,
)


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


def test_a_list_fits_80_columns_and_leaves_its_ids_whole() -> None:
    heads = ("id", "when", "who", "long", "what")
    row = (
        "01M7JCCMV76ZJXQPTX5YVJD6KW",
        "2026-11-16 20:30",
        "+15550177",
        "2:00",
        "x " * 90,
    )
    out = StringIO()
    print_rows(SpeechConsole(file=out, width=80, soft_wrap=True), heads, [row])
    lines = out.getvalue().splitlines()
    assert lines[1].split("  ")[0] == row[0]
    assert max(map(len, lines)) <= 80
    assert out.getvalue().count("x") == 90


def test_a_list_in_a_pipe_has_one_line_for_each_row() -> None:
    out = StringIO()
    console = SpeechConsole(file=out, width=10_000, soft_wrap=True)
    print_rows(console, ("id", "what"), [("A", "x " * 900), ("B", "two\nlines")])
    assert len(out.getvalue().splitlines()) == 3
