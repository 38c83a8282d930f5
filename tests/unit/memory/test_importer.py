"""Notes become calls: the same notes the same call, dated by their name, in the first person."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import ConfigError, NotFound, RefusedInput
from aftercall.memory.importer import (
    find_note_files,
    read_notes,
    resolve_note_owner,
    to_calls,
)
from aftercall.model.facts import MemoryKey
from aftercall.settings import Settings
from aftercall.settings.sections import MemorySettings
from fakes import START

BILL = MemoryKey("main", "+15550100")


def notes(markdown: str) -> list[str]:
    return [note for note in read_notes(markdown) if note]


def test_bullets_and_paragraphs_become_sentences() -> None:
    markdown = """---
title: x
---
# Notes <!-- hidden -->
- User prefers **email** over phone.
- [x] Lives in [Porto](https://example.org)
  and likes it
  1. The caller's wife is Ana

A paragraph
over two lines.

```
code that is not read
```
| a | table |
---
- **Timezone:** Europe/Lisbon
- **Name:** _(optional)_
"""
    assert notes(markdown) == [
        "I prefer email over phone.",
        "I live in Porto and likes it",
        "My wife is Ana",
        "A paragraph over two lines.",
        "My timezone is Europe/Lisbon.",
    ]


@given(st.text(max_size=500))
def test_any_text_can_be_read_as_notes(text: str) -> None:
    assert all("\n" not in note for note in notes(text))


def test_a_file_is_dated_by_its_name_and_else_by_its_last_change(
    tmp_path: Path,
) -> None:
    named, other = tmp_path / "2026-01-05.md", tmp_path / "things.md"
    for file in (named, other):
        file.write_text("- I like tea\n")
    os.utime(other, (1_700_000_000, 1_700_000_000))
    dates = [
        next(iter(to_calls(file, BILL, Settings(), START))).started_at
        for file in (named, other)
    ]
    assert dates == [
        datetime(2026, 1, 5, 12, tzinfo=UTC),
        datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
    ]


def test_the_same_notes_of_the_same_caller_are_the_same_call(tmp_path: Path) -> None:
    file, copy = tmp_path / "a.md", tmp_path / "b.md"
    file.write_text("- I like tea\n")
    copy.write_text("- I like tea\n")
    sids = [
        next(iter(to_calls(path, who, Settings(), START))).sid
        for path, who in (
            (file, BILL),
            (copy, BILL),
            (file, MemoryKey("main", "+15550101")),
        )
    ]
    assert sids[0] == sids[1] != sids[2]


def test_long_notes_become_several_calls_and_empty_ones_none(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text(
        "".join(f"- note number {n}\n" for n in range(450))
    )
    (tmp_path / "empty.md").write_text("# Only a title\n")
    long = list(to_calls(tmp_path / "long.md", BILL, Settings(), START))
    assert [len(call.turns) for call in long] == [202, 202, 52]
    assert len({call.sid for call in long}) == 3
    assert list(to_calls(tmp_path / "empty.md", BILL, Settings(), START)) == []


def test_of_an_agents_workspace_only_what_tells_of_its_user_is_taken(
    tmp_path: Path,
) -> None:
    for name in (
        "AGENTS.md",
        "SOUL.md",
        "MEMORY.md",
        "USER.md",
        "memory/2026-01-01.md",
        "skills/x.md",
        ".git/y.md",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("- x y\n")
    assert [str(file.relative_to(tmp_path)) for file in find_note_files(tmp_path)] == [
        "MEMORY.md",
        "USER.md",
        "memory/2026-01-01.md",
    ]
    assert find_note_files(tmp_path / "memory") == [
        tmp_path / "memory" / "2026-01-01.md"
    ]
    with pytest.raises(NotFound):
        find_note_files(tmp_path / "nothing")


def test_notes_belong_to_somebody() -> None:
    assert resolve_note_owner(Settings(), "+15550100").caller == "+15550100"
    assert resolve_note_owner(Settings(owner="+15550101"), None).caller == "+15550101"
    assert (
        resolve_note_owner(Settings(memory=MemorySettings(scope="shared")), None).caller
        == "client:import"
    )
    for settings in (
        Settings(),
        Settings(memory=MemorySettings(scope="none"), owner="+15550100"),
    ):
        with pytest.raises(ConfigError):
            resolve_note_owner(settings, None)


def test_a_file_too_large_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "big.md").write_bytes(b"x" * 5_000_001)
    with pytest.raises(RefusedInput, match=r"big\.md"):
        list(to_calls(tmp_path / "big.md", BILL, Settings(), START))
