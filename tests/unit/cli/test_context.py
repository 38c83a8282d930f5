"""Tables of the command line: what people copy from them is whole."""

from io import StringIO

from rich.console import Console

from aftercall.cli.context import make_table


def test_a_narrow_terminal_wraps_the_text_and_leaves_the_id_whole() -> None:
    table = make_table("id", "state", "title", "why", texts=2)
    row = ("01M7JCCMV76ZJXQPTX5YVJD6KW", "held", "Open a bug " * 9, "it waits " * 9)
    table.add_row(*row)
    out = StringIO()
    Console(file=out, width=70, soft_wrap=True).print(table)
    assert row[0] in out.getvalue()
    assert max(len(line.rstrip()) for line in out.getvalue().splitlines()) <= 70
