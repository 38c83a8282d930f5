import re
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aftercall.errors import ConfigError, RefusedInput
from aftercall.model.people import normalise_caller
from aftercall.settings import Settings
from aftercall.settings.sections import MemorySettings
from aftercall.workspace.paths import (
    MAX_FOLDER_NAME_CHARS,
    Workspace,
    WorkspacePerson,
    make_folder_name,
)

ROOT = Path("/srv/workspace")
SAFE = re.compile(r"[a-z0-9+_.@%~-]{1,200}")


def settings(
    *,
    owner: str | None = None,
    scope: Literal["per_caller", "shared", "none"] = "per_caller",
    agent_id: str = "main",
) -> Settings:
    return Settings(
        workspace=ROOT,
        owner=owner,
        memory=MemorySettings(scope=scope),
        agent_id=agent_id,
    )


def test_the_main_agent_lives_at_the_root_and_others_in_a_folder() -> None:
    assert Workspace.from_settings(settings()).calls == ROOT / "CALLS.md"
    assert (
        Workspace.from_settings(settings(agent_id="front-desk")).identity
        == ROOT / "front-desk" / "IDENTITY.md"
    )
    assert (
        Workspace.from_settings(settings(), agent_id="night").calls
        == ROOT / "night" / "CALLS.md"
    )


def test_without_a_setting_the_workspace_is_in_the_home() -> None:
    assert Workspace.from_settings(
        Settings(home=Path("/srv/home"), agent_id="main")
    ).root == Path("/srv/home/workspace")


@pytest.mark.parametrize(
    "agent_id", ["..", "a/b", ".hidden", "People", "tasks", "journal", "x" * 65]
)
def test_an_agent_never_gets_a_folder_that_is_not_its_own(agent_id: str) -> None:
    with pytest.raises(ConfigError):
        Workspace.from_settings(settings(), agent_id)


def test_a_caller_has_files_of_their_own() -> None:
    person = Workspace.from_settings(settings()).find_person("+15551234567")
    assert person == WorkspacePerson(ROOT / "people" / "+15551234567")
    assert person.user == ROOT / "people" / "+15551234567" / "USER.md"
    assert person.greeting == ROOT / "people" / "+15551234567" / "NEXT_GREETING.txt"


def test_the_root_files_are_the_owners() -> None:
    workspace = Workspace.from_settings(settings(owner="+1 (555) 123-4567"))
    assert workspace.find_person("+15551234567") == WorkspacePerson(ROOT)
    assert workspace.find_person("+15551234568") != WorkspacePerson(ROOT)


def test_a_shared_workspace_has_one_file_for_everybody() -> None:
    workspace = Workspace.from_settings(settings(scope="shared"))
    assert (
        workspace.find_person("+15551234567")
        == workspace.find_person("sip:bob@example.com")
        == workspace.find_person(None)
        == WorkspacePerson(ROOT)
    )


def test_a_caller_who_withholds_the_number_has_no_files() -> None:
    workspace = Workspace.from_settings(settings())
    assert workspace.find_person(None) is None
    assert workspace.find_person("anonymous") is None


def test_without_an_owner_a_withheld_caller_is_not_taken_for_one() -> None:
    assert Workspace(ROOT, owner=None).find_person(None) is None


def test_scope_none_remembers_nobody() -> None:
    assert (
        Workspace.from_settings(
            settings(scope="none", owner="+15551234567")
        ).find_person("+15551234567")
        is None
    )


def test_an_owner_who_cannot_be_compared_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="owner"):
        Workspace.from_settings(settings(owner="Bill"))


@pytest.mark.parametrize("caller", ["../../etc", "Bob", "sip:a b", ""])
def test_what_is_no_caller_has_no_folder(caller: str) -> None:
    with pytest.raises(RefusedInput):
        make_folder_name(caller)


def test_capitals_are_told_apart_where_the_file_system_does_not() -> None:
    assert make_folder_name("client:Bob") == "client%3a%42ob"
    assert make_folder_name("client:bob") == "client%3abob"


def test_a_dot_at_the_end_is_kept_from_file_systems_that_drop_it() -> None:
    assert make_folder_name("client:bob.") == "client%3abob%2e"


addresses = st.builds(
    lambda kind, user, host: f"{kind}:{user}" + (f"@{host}" if host else ""),
    st.sampled_from(["sip", "sips", "client", "web", "SIP"]),
    st.text(
        st.characters() | st.sampled_from("./\\:%~+AaBb"), min_size=1, max_size=128
    ),
    st.text("abcXYZ019.-_[]:", max_size=128),
)
callers = addresses | st.from_regex(r"\A\+[1-9][0-9]{1,14}\Z")


def _is_caller(text: str) -> bool:
    try:
        return normalise_caller(text) is not None
    except ValueError:
        return False


@given(callers)
def test_folder_names_are_safe_everywhere(caller: str) -> None:
    assume(_is_caller(caller))
    name = make_folder_name(caller)
    assert SAFE.fullmatch(name)
    assert len(name) <= MAX_FOLDER_NAME_CHARS
    assert name not in (".", "..")
    assert not name.startswith((".", "-"))
    assert not name.endswith((".", " "))


@given(callers, callers)
def test_no_two_callers_share_a_folder(one: str, other: str) -> None:
    assume(_is_caller(one) and _is_caller(other))
    same = normalise_caller(one) == normalise_caller(other)
    assert (
        make_folder_name(one).casefold() == make_folder_name(other).casefold()
    ) is same


def test_long_callers_that_differ_at_the_end_do_not_share_a_folder() -> None:
    long = "sip:" + "É" * 127
    assert make_folder_name(long + "a") != make_folder_name(long + "b")
