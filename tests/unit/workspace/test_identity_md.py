import pytest

from aftercall.model.people import is_generic_name
from aftercall.workspace.identity_md import (
    TEMPLATE,
    AgentIdentity,
    fill,
    fill_if_unset,
    parse,
)

OLDER = """\
# IDENTITY.md

- **Name:** *(pick something you like)*
- **Creature:** *(AI? robot? familiar? ghost in the machine? something weirder?)*
- **Vibe:** *(how do you come across? sharp? warm? chaotic? calm?)*
- **Emoji:** *(your signature — pick one that feels right)*
- **Avatar:** *(workspace-relative path, http(s) URL, or data URI)*
"""
FOUND = AgentIdentity(name="Wren", creature="a small bird", vibe="calm", emoji="🐦")


@pytest.mark.parametrize("text", [TEMPLATE, OLDER])
def test_both_forms_of_placeholder_read_as_empty(text: str) -> None:
    assert parse(text) == AgentIdentity()


@pytest.mark.parametrize("text", [TEMPLATE, OLDER])
def test_both_forms_of_placeholder_are_replaced(text: str) -> None:
    result = fill(text, FOUND)
    assert result is not None
    assert parse(result) == FOUND
    assert (
        "- **Name:** Wren\n- **Creature:** a small bird\n- **Vibe:** calm\n- **Emoji:** 🐦\n- "
        "**Avatar:**"
    ) in result


def test_a_new_page_is_the_template_filled() -> None:
    assert parse(fill(None, FOUND)) == FOUND
    assert fill(None, AgentIdentity(name="Wren")) == TEMPLATE.replace(
        "**Name:**\n  _(pick something you like)_", "**Name:** Wren"
    )


def test_the_avatar_is_read_but_never_written() -> None:
    assert parse("- **Avatar:** avatars/wren.png\n").avatar == "avatars/wren.png"
    assert fill(TEMPLATE, AgentIdentity(avatar="evil.png")) == TEMPLATE
    assert AgentIdentity.from_answer(
        {"name": "Wren", "avatar": "evil.png"}
    ) == AgentIdentity(name="Wren")


def test_a_list_that_is_not_bold_does_not_lend_its_next_item() -> None:
    text = "- Name:\n- Creature: ghost\n"
    assert parse(text) == AgentIdentity(creature="ghost")
    assert fill(text, AgentIdentity(name="Wren")) == "- Name: Wren\n- Creature: ghost\n"


def test_only_empty_fields_are_filled() -> None:
    assert fill("- **Name:** Moss\n- **Vibe:**\n", FOUND) == (
        "- **Name:** Moss\n- **Vibe:** calm\n- **Creature:** a small bird\n- **Emoji:** 🐦\n"
    )


@pytest.mark.parametrize("field", ["Name", "Creature", "Vibe", "Emoji", "Avatar"])
def test_any_field_begins_an_identity(field: str) -> None:
    text = f"- **{field}:** something\n"
    assert parse(text).is_set
    assert fill_if_unset(text, FOUND) == text


def test_a_page_of_placeholders_is_not_begun() -> None:
    assert not parse(TEMPLATE).is_set
    assert fill_if_unset(TEMPLATE, FOUND) == fill(TEMPLATE, FOUND)
    assert fill_if_unset(None, FOUND) == fill(None, FOUND)


@pytest.mark.parametrize(
    "name",
    [
        "Assistant",
        "The Assistant",
        "Agent.",
        "assistant ",
        "A.I.",
        "an AI assistant!",
        "voice-agent",
        "BOT",
        "your helper",
        "“AI”",
    ],
)
def test_a_generic_name_is_refused(name: str) -> None:
    assert is_generic_name(name)
    assert fill(TEMPLATE, AgentIdentity(name=name)) == TEMPLATE
    assert "**Vibe:** calm" in (
        fill(TEMPLATE, AgentIdentity(name=name, vibe="calm")) or ""
    )


@pytest.mark.parametrize("name", ["Wren", "The Botanist", "Agent Smith", "Aida", ""])
def test_a_name_of_ones_own_is_not_generic(name: str) -> None:
    assert not is_generic_name(name)


def test_nothing_found_changes_nothing() -> None:
    assert (
        fill(TEMPLATE, AgentIdentity(name="_(pick something you like)_", vibe=" "))
        is TEMPLATE
    )
    assert fill(None, AgentIdentity()) is None


def test_filling_twice_is_filling_once() -> None:
    once = fill(OLDER, FOUND)
    assert fill(once, AgentIdentity(name="Ember", vibe="wild")) == once
