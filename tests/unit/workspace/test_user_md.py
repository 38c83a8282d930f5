from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.model.reading import Profile
from aftercall.workspace.markdown import (
    USER_PLACEHOLDERS,
    is_placeholder,
    plain_lines,
    strip_emphasis,
)
from aftercall.workspace.user_md import (
    FORM,
    LABELS,
    TEMPLATE,
    UserProfile,
    fill,
    parse,
    set_field,
)

FOUND = UserProfile(
    name="William Ash",
    call_name="Bill",
    pronouns="he/him",
    timezone="Europe/Berlin",
    notes="Has a dog.",
    context="Runs a bakery.",
)


def filled(text: str | None, **found: str) -> str:
    result = fill(text, UserProfile(**found))
    assert result is not None
    return result


def test_the_template_reads_as_empty() -> None:
    assert parse(TEMPLATE) == UserProfile()


def test_a_new_page_has_the_labels_of_every_workspace_and_what_was_found() -> None:
    text = filled(None, name="Bill", context="Likes soup.")
    assert (
        "- **Name:** Bill\n- **What to call them:**\n- **Pronouns:** _(optional)_\n- "
        "**Timezone:**\n- **Notes:**\n"
    ) in text
    assert text.endswith("## Context\n\nLikes soup.\n")


def test_everything_found_is_read_back() -> None:
    assert parse(fill(None, FOUND)) == FOUND


def test_a_placeholder_is_filled_on_its_own_line() -> None:
    assert "- **Pronouns:** she/her\n" in filled(TEMPLATE, pronouns="she/her")


def test_only_empty_fields_are_filled() -> None:
    text = "- **Name:** Bill\n- **Timezone:**\n"
    assert (
        filled(text, name="George", timezone="UTC")
        == "- **Name:** Bill\n- **Timezone:** UTC\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "- **Name:** Bill",
        "Name: Bill",
        "- Name: Bill",
        "**Name**: Bill",
        "* __Name:__ Bill",
        "-  **name :** Bill",
        "**Name: Bill**",
        "1. Name:Bill",
    ],
)
def test_a_field_line_is_read_in_any_dress(line: str) -> None:
    assert parse(f"# User\n\n{line}\n").name == "Bill"


def test_the_label_ends_at_the_first_colon() -> None:
    assert parse("- **Timezone:** UTC+05:30\n").timezone == "UTC+05:30"


def test_the_last_duplicate_wins() -> None:
    assert parse("- **Name:** Bill\n- **Name:** William\n").name == "William"


def test_an_empty_duplicate_does_not_hide_what_was_written() -> None:
    text = "- **Name:** Bill\n- **Name:**\n"
    assert parse(text).name == "Bill"
    assert filled(text, name="George") == text


def test_a_nested_bullet_never_overwrites_the_name() -> None:
    text = "- **Name:** Bill\n- **Notes:** pets\n  - Name: Tom is the cat\n\n  - Timezone: CET\n"
    profile = parse(text)
    assert profile.name == "Bill"
    assert profile.timezone is None
    assert profile.notes == "pets\n- Name: Tom is the cat\n- Timezone: CET"


def test_a_list_that_is_indented_as_a_whole_is_still_read() -> None:
    text = "# User\n\n  - **Name:** Bill\n  - **Notes:** pets\n    - Name: Tom\n"
    assert parse(text).name == "Bill"
    assert filled(text, timezone="UTC") == text + "  - **Timezone:** UTC\n"


def test_a_name_in_another_section_is_somebody_elses() -> None:
    text = "- **Name:** Bill\n\n## Pets\n\n- **Name:** Rex\n"
    assert parse(text).name == "Bill"
    assert filled("- **Name:**\n\n## Pets\n\n- **Name:** Rex\n", name="Bill") == text


def test_emphasis_is_not_part_of_a_value() -> None:
    assert parse("- **Name:** *Bill*\n").name == "Bill"


def test_a_value_on_the_next_indented_line_is_read_for_every_field() -> None:
    text = "".join(
        f"- **{label}:**\n  value of {name}\n" for name, label in LABELS.items()
    )
    profile = parse(text)
    assert all(getattr(profile, name) == f"value of {name}" for name in LABELS)
    assert fill(text, UserProfile(name="Bill", notes="x")) == text


def test_a_value_is_never_looked_for_across_another_field_line() -> None:
    assert parse("- Name:\n- What to call them: Bill\n").name is None
    assert parse("- Name:\n  - Nickname: Bill\n    George\n").name is None
    assert parse("- **Name:**\n  Pronouns: he/him\n").name is None


def test_notes_of_several_lines_are_kept_whole() -> None:
    text = "- **Notes:** first\n  second\n\n  - third\n- **Timezone:**\n"
    assert parse(text).notes == "first\nsecond\n- third"
    assert filled(text, notes="new", timezone="UTC") == text.replace(
        "Timezone:**", "Timezone:** UTC"
    )


def test_front_matter_unknown_fields_and_other_sections_are_untouched() -> None:
    """So is the text after a rule."""
    text = (
        "---\nname: page\n---\n# Me\n\n- **Email:** a@b.c\n- **Name:**\n- **Phone:** 1\n\n## "
        "Links\n\n- x: y\n\n---\n\nfooter: here\n"
    )
    assert filled(text, name="Bill") == text.replace("**Name:**", "**Name:** Bill")


def test_a_missing_field_goes_after_the_last_field_line() -> None:
    text = "# Me\n\n- **Name:** Bill\n- **Email:** a@b.c\n  (private)\n\nProse.\n"
    assert filled(text, timezone="UTC") == text.replace(
        "(private)\n", "(private)\n- **Timezone:** UTC\n"
    )


def test_a_missing_field_takes_the_dress_of_its_neighbours() -> None:
    assert filled("Name: Bill\n", timezone="UTC") == "Name: Bill\nTimezone: UTC\n"
    assert (
        filled("* __Name:__ Bill\n", timezone="UTC")
        == "* __Name:__ Bill\n* __Timezone:__ UTC\n"
    )


def test_without_field_lines_a_missing_field_goes_after_the_title() -> None:
    assert (
        filled("# Me\nProse.\n", name="Bill") == "# Me\n\n- **Name:** Bill\n\nProse.\n"
    )
    assert (
        filled("Me\n==\n\nProse.\n", name="Bill")
        == "Me\n==\n\n- **Name:** Bill\n\nProse.\n"
    )
    assert filled("Prose.\n", name="Bill") == "- **Name:** Bill\n\nProse.\n"
    assert (
        filled("---\na: b\n---\n", name="Bill")
        == "---\na: b\n---\n\n- **Name:** Bill\n"
    )


def test_a_file_that_merely_begins_with_a_rule_keeps_everything() -> None:
    text = "---\n\n- **Name:** Bill\n- **Timezone:**\n\n---\nfooter\n"
    assert parse(text).name == "Bill"
    assert filled(text, timezone="UTC") == text.replace(
        "Timezone:**", "Timezone:** UTC"
    )


def test_fields_in_front_matter_are_not_fields() -> None:
    assert parse("---\nname: page\n---\n").name is None


def test_code_and_comments_are_left_alone() -> None:
    text = "```\n- **Name:** Example\n```\n<!--\n- **Name:** Hidden\n-->\n- **Name:**\n"
    assert parse(text).name is None
    assert filled(text, name="Bill") == text.removesuffix("\n") + " Bill\n"


def test_code_within_notes_and_context_is_read_whole() -> None:
    text = "- **Notes:** a\n  ```\n  Name: x\n  ```\n\n## Context\n\n```\n# code\n```\n"
    assert parse(text) == UserProfile(
        notes="a\n```\nName: x\n```", context="```\n# code\n```"
    )
    assert filled(text, context="New.") == text + "New.\n"


def test_code_that_never_closes_does_not_take_in_what_is_added() -> None:
    text = "- **Name:**\n\n## Context\n\nTea.\n```\n## Other\n"
    assert filled(text, name="Bill", context="New.") == text.replace(
        "**Name:**", "**Name:** Bill"
    ).replace("Tea.\n", "Tea.\nNew.\n")


def test_a_hard_break_is_not_part_of_a_value_and_stays() -> None:
    assert parse("**Name:** Bill\\\n").name == "Bill"
    assert (
        filled("**Name:**  \n**Timezone:**\\\n", name="Bill", timezone="UTC")
        == "**Name:** Bill  \n**Timezone:** UTC\\\n"
    )


def test_line_endings_a_byte_order_mark_and_a_missing_last_newline_stay() -> None:
    text = "\ufeff# Me\r\n\r\n- **Name:**\r\n- **Timezone:**"
    assert (
        filled(text, name="Bill", timezone="UTC")
        == "\ufeff# Me\r\n\r\n- **Name:** Bill\r\n- **Timezone:** UTC"
    )
    assert filled(text, pronouns="she/her").endswith(
        "- **Timezone:**\r\n- **Pronouns:** she/her\r\n"
    )


@pytest.mark.parametrize(
    "end", ["## Other\n\nmine\n", "# Top\n", "---\nfooter\n", "***\n"]
)
def test_context_ends_at_the_next_section_or_rule(end: str) -> None:
    text = f"## Context\n\nLikes tea.\n\n### Still here\n\nyes\n\n{end}"
    assert parse(text).context == "Likes tea.\n\n### Still here\n\nyes"
    assert filled(text, context="Has a boat.") == text.replace(
        "yes\n", "yes\nHas a boat.\n"
    )


def test_nothing_in_the_context_is_a_field() -> None:
    text = "- **Name:**\n\n## Context\n\n- Name: of his dog is Rex\n"
    assert parse(text).name is None
    assert filled(text, name="Bill") == text.replace("**Name:**", "**Name:** Bill")


def test_context_is_compared_line_by_line() -> None:
    text = "## Context\n\nLikes cats and dogs.\n"
    assert filled(text, context="cats") == text + "cats\n"
    assert filled(text, context="likes  CATS and dogs.\nNew.") == text + "New.\n"
    assert fill(text, UserProfile(context="Likes cats and dogs.")) == text


def test_context_that_is_a_list_goes_on_as_a_list() -> None:
    text = "## Context\n\n- tea\n  - green\n"
    assert filled(text, context="- coffee\nTea") == text + "- coffee\n"


def test_a_context_placeholder_is_replaced_even_when_wrapped() -> None:
    wrapped = TEMPLATE.replace("working on? ", "working on?\n")
    assert filled(wrapped, context="Runs a bakery.").endswith(
        "## Context\n\nRuns a bakery.\n"
    )


def test_a_page_without_context_gets_it_before_the_next_section() -> None:
    text = "# Me\n\n- **Name:** Bill\n\n### Pets\n\nRex\n\n## Links\n\nx\n"
    assert filled(text, context="Likes tea.") == text.replace(
        "Rex\n", "Rex\n\n## Context\n\nLikes tea.\n"
    )


def test_what_is_added_cannot_bend_the_page() -> None:
    text = filled(
        TEMPLATE,
        name="Bill\n- **Timezone:** Mars\n## Context",
        context="## Other\n---\n```\n<!-- x\nfine",
    )
    profile = parse(text)
    assert profile.name == "Bill - **Timezone:** Mars ## Context"
    assert profile.timezone is None
    assert profile.context == "Other\n<! -- x\nfine"


def test_nothing_found_changes_nothing() -> None:
    for text in ("", "whatever", TEMPLATE):
        assert (
            fill(text, UserProfile(name=" ", pronouns="optional", context="---"))
            is text
        )
    assert fill(None, UserProfile()) is None


def test_a_profile_is_complete_without_pronouns() -> None:
    assert UserProfile(
        name="a", call_name="b", timezone="c", notes="d", context="e"
    ).is_complete


@pytest.mark.parametrize("name", ["name", "call_name", "timezone", "notes", "context"])
def test_a_profile_that_lacks_anything_else_is_not_complete(name: str) -> None:
    values = {
        "name": "a",
        "call_name": "b",
        "pronouns": "p",
        "timezone": "c",
        "notes": "d",
        "context": "e",
    }
    assert not UserProfile(**{**values, name: None}).is_complete


def test_a_readers_profile_is_taken_field_by_field() -> None:
    found = Profile(name="Bill", call_name="B", notes="a, b", context="x")
    profile = UserProfile.from_answer(found.model_dump())
    assert profile == UserProfile(name="Bill", call_name="B", notes="a, b", context="x")


words = st.text(
    st.characters(codec="utf-8") | st.sampled_from("*_`:- #<!>\n\r"), max_size=30
)
profiles = st.builds(
    UserProfile, **{name: st.none() | words for name in (*LABELS, "context")}
)
pieces = st.sampled_from(
    [
        *(
            "- **Name:**",
            "- **Name:** Bill",
            "Name: x",
            "  - Name: Tom",
            "\t- Notes: y",
            "- **Notes:** a",
            "  more",
            "- **Pronouns:** _(optional)_",
        ),
        *(
            "  _(optional)_",
            "**Timezone: _(optional)_**",
            "**Timezone:",
            "# Me",
            "## Context",
            "## Other",
            "### Deep",
            "---",
            "***",
            "```",
            "~~~",
        ),
        *(
            "<!--",
            "-->",
            "<!-- x -->",
            "",
            " ",
            "prose",
            "key: value",
            "    code",
            "===",
            "- item",
            "- a: b",
            "\udc80 raw",
            "## context ##",
        ),
        (
            "_(What do they care about? What projects are they working on? What annoys them? What "
            "makes them laugh? Build this over time.)_"
        ),
    ]
)
pages = st.builds(
    lambda bom, lines, end, last: bom + end.join(lines) + last,
    st.sampled_from(["", "\ufeff"]),
    st.lists(pieces | st.text(max_size=12), max_size=14),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n"]),
)
quick = settings(max_examples=120, deadline=timedelta(seconds=2))


def _is_kept(line: str, result: list[str]) -> bool:
    """Whether the rest of `result` still holds the line; the lines before it are used up."""
    while result:
        if result.pop(0) == line:
            return True
    return False


def _bare(line: str) -> str:
    return line.strip("\ufeff\r")


@quick
@given(pages, profiles)
def test_filling_never_loses_or_moves_another_line(
    text: str, found: UserProfile
) -> None:
    result = fill(text, found)
    after = [_bare(line) for line in (result or "").split("\n")]
    labels = tuple(label.lower() for label in LABELS.values())
    for line in map(_bare, text.split("\n")):
        is_field = line.lower().strip("-*_ ").startswith(labels)
        is_placeholder = line.strip("*_ ").startswith(("(optional", "(What do"))
        if line.strip() and not is_field and not is_placeholder:
            assert _is_kept(line, after), line


@quick
@given(pages, profiles)
def test_filling_twice_is_filling_once(text: str, found: UserProfile) -> None:
    once = fill(text, found)
    assert fill(once, found) == once


@quick
@given(pages, profiles)
def test_what_was_set_before_is_read_the_same_after(
    text: str, found: UserProfile
) -> None:
    before, after = parse(text), parse(fill(text, found))
    for name in LABELS:
        assert getattr(before, name) in (None, getattr(after, name))


@quick
@given(pages, profiles)
def test_what_was_filled_is_read_back(text: str, found: UserProfile) -> None:
    before, after = parse(text), parse(fill(text, found))
    for name, value in FORM.filter_usable(
        {name: getattr(found, name) for name in LABELS}
    ).items():
        assert getattr(before, name) or strip_emphasis(value) in (
            getattr(after, name) or ""
        )
    known = {
        " ".join(line.split()).casefold() for line in (after.context or "").splitlines()
    }
    for line in plain_lines(found.context or ""):
        assert (
            line.casefold() in known
            or f"- {line}".casefold() in known
            or is_placeholder(line, USER_PLACEHOLDERS)
        )


@pytest.mark.parametrize("text", [None, TEMPLATE, "# Me\n", "- Name: Will\n- Notes: x"])
def test_a_field_is_set_whatever_it_held_and_emptied_again(text: str | None) -> None:
    named = set_field(text, "name", "Bill Harker")
    assert parse(named).name == "Bill Harker"
    assert parse(named).notes == parse(text).notes
    assert parse(set_field(named, "name", None)).name is None


def test_a_value_below_its_label_is_replaced_not_doubled() -> None:
    text = "- **Name:**\n  Will Harker\n- **Pronouns:** he/him\n"
    named = set_field(text, "name", "Bill")
    assert named == "- **Name:** Bill\n- **Pronouns:** he/him\n"


@pytest.mark.parametrize("value", ["", "_(optional)_", " \n"])
def test_what_a_page_takes_for_nothing_cannot_be_set(value: str) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        set_field(None, "name", value)
