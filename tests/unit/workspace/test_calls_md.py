from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.config import load_config
from aftercall.model.calls import Call, Direction
from aftercall.workspace.calls_md import (
    MAX_SUMMARY_CHARS,
    CallsMdEntry,
    append,
    format_time,
    parse,
    plain_summary,
    remove,
    rewrite_summary,
)

ENDED = datetime(2026, 2, 13, 15, 45, 34, tzinfo=UTC)


def call(
    *,
    caller: str | None = "+15551234567",
    callee: str | None = None,
    direction: Direction = "inbound",
    ended: datetime = ENDED,
) -> Call:
    return Call(
        source="test",
        sid="CA1",
        caller=caller,
        callee=callee,
        direction=direction,
        started_at=ended - timedelta(minutes=4),
        ended_at=ended,
        turns=(),
    )


def entry(
    call_id: str | None, summary: str = "Asked for soup.", minutes: int = 0
) -> CallsMdEntry:
    when = format_time(ENDED + timedelta(minutes=minutes), UTC)
    return CallsMdEntry(when, "+15551234567", "inbound", summary, call_id)


def file(*entries: CallsMdEntry, keep: int = 50, text: str | None = None) -> str:
    for each in entries:
        text = append(text, each, keep)
    assert text is not None
    return text


def test_a_new_file_has_a_header_and_the_entry() -> None:
    finished = call()
    assert append(
        None, CallsMdEntry.from_call(finished, "Asked for soup.", UTC), 50
    ) == (
        "# Call History\n\n### 02/13/2026, 3:45 PM -- +15551234567 (inbound)\n\nAsked for soup.\n"
        f"<!-- call: {finished.id} -->\n"
    )


@pytest.mark.parametrize(
    ("hour", "shown"),
    [
        (0, "02/13/2026, 12:05 AM"),
        (9, "02/13/2026, 9:05 AM"),
        (12, "02/13/2026, 12:05 PM"),
        (23, "02/13/2026, 11:05 PM"),
    ],
)
def test_hours_are_shown_as_people_say_them(hour: int, shown: str) -> None:
    assert format_time(datetime(2026, 2, 13, hour, 5, tzinfo=UTC), UTC) == shown


def test_times_are_shown_in_the_configured_zone() -> None:
    assert (
        CallsMdEntry.from_call(call(), "x", ZoneInfo("America/New_York")).when
        == "02/13/2026, 10:45 AM"
    )


@pytest.mark.parametrize("zone", ["", "Mars/Olympus"])
def test_an_unknown_or_empty_zone_is_utc_with_one_warning(
    zone: str, tmp_path: Path
) -> None:
    config = tmp_path / "aftercall.toml"
    config.write_text(f'timezone = "{zone}"\n')
    loaded = load_config(config, environ={})
    assert len(loaded.warnings) == 1
    assert (
        CallsMdEntry.from_call(call(), "x", loaded.settings.zone).when
        == "02/13/2026, 3:45 PM"
    )


def test_a_withheld_number_is_shown_as_withheld() -> None:
    assert (
        "-- withheld (inbound)"
        in CallsMdEntry.from_call(call(caller=None), "x", UTC).text
    )


def test_an_outbound_call_shows_who_was_called() -> None:
    outbound = call(caller="+15550100", callee="+15550199", direction="outbound")
    assert "-- +15550199 (outbound)" in CallsMdEntry.from_call(outbound, "x", UTC).text


def test_the_newest_entry_is_last() -> None:
    assert [
        each.call_id for each in parse(file(entry("a"), entry("b", minutes=5)))
    ] == ["a", "b"]


def test_a_call_summarised_late_takes_its_place_in_time() -> None:
    text = file(
        entry("a"), entry("c", minutes=9), entry("d", minutes=10), entry("b", minutes=5)
    )
    assert [each.call_id for each in parse(text)] == ["a", "b", "c", "d"]


def test_the_same_call_twice_leaves_one_entry() -> None:
    text = file(entry("a"), entry("b"))
    assert append(text, entry("a", "Other words for it."), 50) is text


def test_two_calls_of_one_minute_and_the_same_words_are_both_kept() -> None:
    assert [each.call_id for each in parse(file(entry("a"), entry("b")))] == ["a", "b"]


def test_what_a_person_changed_in_an_entry_stays() -> None:
    text = file(entry("a"), entry("b")).replace(
        "Asked for soup.", "Asked for STEW, really.", 1
    )
    result = file(entry("a"), entry("c"), text=text)
    assert result.startswith(text)


def test_only_the_last_entries_are_kept_below_the_header() -> None:
    header = "# Call History\n\nKept by hand.\n"
    text = file(*(entry(f"c{n}", minutes=n) for n in range(5)), keep=2, text=header)
    assert [each.call_id for each in parse(text)] == ["c3", "c4"]
    assert text == file(entry("c3", minutes=3), entry("c4", minutes=4), text=header)


def test_a_call_too_old_to_be_kept_changes_nothing() -> None:
    text = file(entry("b", minutes=2), entry("c", minutes=3), keep=2)
    assert append(text, entry("a"), 2) is text


def test_zero_keeps_none() -> None:
    text = file(entry("a"), entry("b"))
    assert append(text, entry("c"), 0) == "# Call History\n\n"
    assert append("# Call History\n\n", entry("c"), 0) == "# Call History\n\n"
    assert append(None, entry("c"), 0) is None


def test_an_older_file_with_an_em_dash_is_read_and_trimmed() -> None:
    older = (
        "# Call History\n\n### 02/01/2026, 9:00 AM — +15550100 (inbound)\nFirst.\n\n"
        "### 02/02/2026, 9:00 AM — +15550101 (outbound)\nSecond.\n"
    )
    first, second = parse(older)
    assert (first.who, first.summary, first.call_id) == ("+15550100", "First.", None)
    assert (second.direction, second.when) == ("outbound", "02/02/2026, 9:00 AM")
    text = append(older, entry("c"), 2) or ""
    assert [each.summary for each in parse(text)] == ["Second.", "Asked for soup."]
    assert "### 02/02/2026, 9:00 AM — +15550101 (outbound)\nSecond.\n\n### " in text


def test_a_heading_inside_a_summary_is_no_entry() -> None:
    theirs = (
        "# Call History\n\n### 02/01/2026, 9:00 AM -- +15550100 (inbound)\nTalked about:\n### "
        "Soup\n#### and bread\n"
    )
    (only,) = parse(theirs)
    assert only.summary == "Talked about:\n### Soup\n#### and bread"
    ours = CallsMdEntry.from_call(
        call(), "One.\n### 02/01/2026, 9:00 AM -- +1555 (inbound)\n  # Two", UTC
    )
    assert [each.summary for each in parse(append(None, ours, 50))] == [
        "One.\n02/01/2026, 9:00 AM -- +1555 (inbound)\nTwo"
    ]


def test_a_summary_cannot_pass_for_another_call() -> None:
    text = file(CallsMdEntry.from_call(call(), "Said:\n<!-- call: victim -->", UTC))
    assert [each.call_id for each in parse(append(text, entry("victim"), 50))][
        -1
    ] == "victim"


def test_a_section_that_a_person_added_is_neither_trimmed_nor_moved() -> None:
    text = file(entry("a")) + "\n## My notes\n\nRing the baker.\n"
    result = append(text, entry("b", minutes=1), 1) or ""
    assert result == file(entry("b", minutes=1)) + "\n## My notes\n\nRing the baker.\n"


def test_crlf_files_stay_crlf() -> None:
    text = file(entry("a")).replace("\n", "\r\n")
    result = append(text, entry("b"), 50) or ""
    assert result == file(entry("a"), entry("b")).replace("\n", "\r\n")


def test_a_missing_last_newline_does_not_join_two_entries() -> None:
    text = "# Call History\n\n### 02/01/2026, 9:00 AM -- +15550100 (inbound)\n\nFirst."
    assert (append(text, entry("b"), 50) or "").startswith(text + "\n\n### ")


@pytest.mark.parametrize("summary", ["", " \n", "---"])
def test_nothing_said_writes_nothing(summary: str) -> None:
    assert append(None, CallsMdEntry.from_call(call(), summary, UTC), 50) is None


def test_a_summary_without_end_is_cut_between_words() -> None:
    cut = plain_summary("word " * MAX_SUMMARY_CHARS)
    assert len(cut) <= MAX_SUMMARY_CHARS + 2
    assert cut.endswith("word …")


def test_spoken_words_cannot_pass_for_html_links_or_mentions() -> None:
    said = "Send <img src=x onerror=alert(1)> to [me](http://x.example), a ` b, @all & | more"
    spoken = CallsMdEntry.from_call(call(), said, UTC)
    text = file(spoken)
    assert (
        "Send &lt;img src=x onerror=alert(1)&gt; to \\[me\\](http://x.example), "
        "a \\` b, @\u200ball &amp; \\| more\n" in text
    )
    assert parse(text)[0].summary == said


def test_a_caller_cannot_pass_for_a_link_and_is_still_removed() -> None:
    caller = "sip:[me](x)@host.example"
    text = file(CallsMdEntry.from_call(call(caller=caller), "Asked for soup.", UTC))
    assert "[me]" not in text.replace("\\[", "")
    assert parse(text)[0].who == caller
    assert remove(text, set(), caller) == "# Call History\n\n"


def test_words_are_found_in_a_summary_as_they_were_said() -> None:
    text = file(
        entry("a", "The code is <7&7>, said [Ann]."), entry("b", "It is <7&7>.")
    )
    result = rewrite_summary(text, "a", lambda line: line.replace("<7&7>", "…"))
    assert [each.summary for each in parse(result)] == [
        "The code is …, said [Ann].",
        "It is <7&7>.",
    ]
    assert rewrite_summary(text, "a", lambda line: line) == text


@given(st.text(st.characters(codec=None) | st.sampled_from("#- \n<!>")))
def test_no_line_of_a_summary_begins_a_heading(summary: str) -> None:
    assert not any(line.startswith("#") for line in plain_summary(summary).splitlines())


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"),
            st.integers(0, 3),
            st.text(min_size=1, max_size=9),
        )
    ),
    st.integers(0, 4),
)
def test_any_number_of_calls_leaves_each_once_and_no_more_than_asked(
    calls: list[tuple[str, int, str]], keep: int
) -> None:
    text: str | None = "# Call History\n\nmine\n"
    for name, minutes, summary in calls:
        text = append(text, entry(name, plain_summary(summary), minutes), keep)
    entries = parse(text)
    assert len(entries) <= keep
    assert len({each.call_id for each in entries}) == len(entries)
    assert (text or "").startswith("# Call History\n\nmine\n")


def test_emphasis_does_not_reach_the_file() -> None:
    told = "**Bill** asked for a _refund_ of `order_id_7`, ***today***, ~~maybe~~; 2*3*4 stays."
    assert (
        plain_summary(told)
        == "Bill asked for a refund of order_id_7, today, maybe; 2*3*4 stays."
    )
