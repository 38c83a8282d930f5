"""Each step by itself: whom it is for, and what it leaves."""

from pathlib import Path

import pytest

from aftercall.db.connect import Database
from aftercall.db.tables import metadata
from aftercall.llm.whole import compose_greeting
from aftercall.memory.documents.store import DocumentStore
from aftercall.model.calls import Call
from aftercall.model.reading import Identity, Profile, Reading, Request
from aftercall.postcall.steps import STEPS, Desk, take
from aftercall.settings import MemorySettings, Settings
from aftercall.testing import FakeReader, VirtualClock, make_call

ASKED = Reading(
    language="en",
    summary="Bill asked for a bug to be opened.",
    profile=Profile(name="Bill"),
    identity=Identity(name="Wren"),
    requests=(Request(kind="issue", title="Open a bug", turns=(2,), words="open a bug"),),
)


def desk(home: Path, reading: Reading = ASKED, **settings: object) -> Desk:
    database = Database(f"sqlite:///{home / 'aftercall.db'}")
    metadata.create_all(database.engine)
    settings_ = Settings.model_validate({"home": home, **settings})
    return Desk(settings_, FakeReader(reading), VirtualClock(), database, DocumentStore(database))


def outcomes(at: Desk, call: Call) -> dict[str, tuple[str, str]]:
    return {name: (found.state, found.reason) for name in STEPS for found in [take(at, name, call)]}


def files(home: Path) -> set[str]:
    root = home / "workspace"
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.suffix in (".md", ".txt")}


def test_an_outbound_call_is_summarised_only(tmp_path: Path) -> None:
    found = outcomes(desk(tmp_path), make_call(direction="outbound", callee="+15550177"))
    assert found.pop("summary") == ("done", "")
    assert set(found.values()) == {("skipped", "an outbound call: the callee is not the user")}
    assert files(tmp_path) == {"CALLS.md"}


def test_a_call_without_words_leaves_nothing(tmp_path: Path) -> None:
    assert set(outcomes(desk(tmp_path), make_call([])).values()) == {("skipped", "nothing was said")}
    assert files(tmp_path) == set()


def test_the_master_switch_switches_all_off(tmp_path: Path) -> None:
    found = outcomes(desk(tmp_path, post_call_extraction=False), make_call())
    assert set(found.values()) == {("skipped", "post_call_extraction is off")}


@pytest.mark.parametrize(("caller", "scope"), [(None, "per_caller"), ("+15550100", "none")])
def test_who_is_not_to_be_remembered_is_summarised_and_no_more(tmp_path: Path, caller: str | None, scope: str) -> None:
    found = outcomes(desk(tmp_path, memory=MemorySettings.model_validate({"scope": scope})), make_call(caller=caller))
    assert found.pop("summary")[0] == found.pop("identity")[0] == "done"
    assert {state for state, _ in found.values()} == {"skipped"}
    assert files(tmp_path) == {"CALLS.md", "IDENTITY.md"}


def test_a_step_done_twice_leaves_its_thing_once(tmp_path: Path) -> None:
    at, call = desk(tmp_path), make_call()
    outcomes(at, call)
    before = {name: (tmp_path / "workspace" / name).read_bytes() for name in files(tmp_path)}
    again = outcomes(at, call)
    assert {name: (tmp_path / "workspace" / name).read_bytes() for name in files(tmp_path)} == before
    assert (again["profile"], again["identity"]) == (("skipped", "nothing new was found"), ("skipped", "the agent has an identity"))


def test_being_an_assistant_is_no_identity(tmp_path: Path) -> None:
    found = outcomes(desk(tmp_path, ASKED.model_copy(update={"identity": Identity(creature="assistant")})), make_call())
    assert found["identity"] == ("skipped", "nothing sure was found")


def test_a_greeting_tells_of_the_first_request_and_makes_nothing_up() -> None:
    assert compose_greeting("Bill", []) == "Hey Bill, good to hear from you again!"
    assert compose_greeting(None, []) is None
    assert compose_greeting(None, ["Book a table."]) == "Welcome back, last time you asked me to book a table; what can I do for you today?"
