"""Corrections as somebody at the pages, the command line or the API makes them."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from aftercall.app import App
from aftercall.cli.main import program
from aftercall.memory.fact_store import FactFilter
from aftercall.model.reading import Reading, UnclearRequest
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Workspace
from api_client import csrf_of, make_client, make_stranger
from fact_drafts import draft, reader_of
from fakes import FakeReader, make_call
from followup_work import follow

CALLER = "+15550142"
SAID = [
    ("agent", "Hello! Who is calling?"),
    ("caller", "This is Bill. Please open a bug about the broken thumbnails."),
    ("agent", "I noted that."),
    ("caller", "I live in Porto."),
]
EVIL = "<script>alert('x')</script>"


@dataclass
class Desk:
    app: App
    request: str
    fact: str

    @property
    def title(self) -> str:
        return self.app.work.followups.get(self.request).title

    @property
    def content(self) -> str:
        return self.app.facts.get(self.fact).content

    @property
    def name(self) -> str | None:
        person = Workspace.from_settings(self.app.settings).find_person(CALLER)
        assert person is not None
        return user_md.parse(files.read(person.user)).name

    @property
    def deeds(self) -> list[str]:
        return [str(line.deed) for line in self.app.audit.list_recent()][::-1]


@pytest.fixture
def desk(app: App, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """One call, with one request and one fact."""
    call = make_call(SAID, caller=CALLER)
    app.journal.ingest(call)
    (request,) = [
        row for row in follow(app.work, call.conversation) if row.kind == "request"
    ]
    told = draft("I live in Porto.", turns=(4,), category="person")
    app.step_runner.context.extractor.extract(call, reader_of(told))
    (fact,) = app.facts.page(FactFilter())
    monkeypatch.setenv("AFTERCALL_HOME", str(app.settings.home))
    monkeypatch.setenv("AFTERCALL_DATABASE_URL", app.settings.database_url)
    return Desk(app, request.id, fact.id)


@pytest.fixture
def client(app: App) -> TestClient:
    return make_client(app, follow_redirects=False)


def run(*command: str, code: int = 0) -> str:
    answer = CliRunner().invoke(program, command)
    assert answer.exit_code == code, answer.output
    return answer.stdout


def test_the_pages_put_right_what_they_show(desk: Desk, client: TestClient) -> None:
    places = {
        "request": (f"/followups/{desk.request}", desk.request),
        "fact": (f"/memory/facts/{desk.fact}", desk.fact),
        "name": (f"/people/{CALLER}", CALLER),
    }
    for what, (page, of) in places.items():
        shown = client.get(page).text
        assert ("/edit" if what == "request" else f'value="{what}"') in shown
        form = {"csrf": csrf_of(shown), "what": what, "of": of, "new": EVIL}
        answer = client.post("/corrections", data=form | {"back": page})
        assert (answer.status_code, answer.headers["location"]) == (303, page)
        assert EVIL not in client.get(page).text
    assert [desk.title, desk.content, desk.name] == [EVIL] * 3
    listed = client.get("/corrections", params={"caller": CALLER}).text
    assert EVIL not in listed
    assert listed.count("/corrections/undo") == 3
    for one in desk.app.corrections.store.page(limit=3):
        form = {"csrf": csrf_of(listed), "back": "//elsewhere.example", "of": one.id}
        answer = client.post("/corrections/undo", data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert (desk.title, desk.content, desk.name) == (
        "Open a bug about the broken thumbnails",
        "I live in Porto.",
        None,
    )
    assert desk.deeds == ["corrected"] * 3 + ["undone"] * 3


def test_a_page_says_what_was_removed_and_offers_to_undo_it(
    desk: Desk, client: TestClient
) -> None:
    for what, of, page in (
        ("request", desk.request, f"/followups/{desk.request}"),
        ("fact", desk.fact, f"/memory/facts/{desk.fact}"),
    ):
        form = {"csrf": csrf_of(client.get(page).text), "what": what, "of": of}
        blank = client.post("/corrections", data=form | {"new": " "})
        assert blank.status_code == 422
        gone = client.post("/corrections", data=form | {"is_removal": "true"})
        assert gone.status_code == 303
        shown = client.get(page).text
        assert "A person said that this was" in shown
        assert "/undo" in shown
        assert "/restore" not in shown
    assert client.post("/corrections", data={}).status_code in (403, 422)


def test_a_fact_is_retired_from_pages_api_and_command_line(
    desk: Desk, client: TestClient
) -> None:
    page, api = f"/memory/facts/{desk.fact}", f"/api/facts/{desk.fact}/retire"

    def undo() -> None:
        (made,) = desk.app.corrections.store.page(limit=1)
        assert str(made.new).startswith("no longer true since")
        desk.app.corrections.undo(made.id, "me")
        assert desk.app.facts.get(desk.fact).is_active

    form = {"csrf": csrf_of(client.get(page).text), "since": ""}
    assert client.post(f"{page}/retire", data=form).status_code == 303
    shown = client.get(page).text
    assert "no longer true" in shown
    assert "/restore" in shown
    assert "/retire" not in shown
    undo()
    late = client.post(api, json={"since": "2999-01-01"})
    assert late.status_code == 422
    assert client.post(api, json={}).status_code == 201
    undo()
    assert "no longer believed" in run("facts", "retire", desk.fact)
    undo()


def test_a_missed_request_is_added_from_pages_api_and_command_line(
    desk: Desk, client: TestClient
) -> None:
    call = desk.app.work.followups.get(desk.request).call_id
    page = client.get(f"/calls/{call}").text
    missed = client.get(f"/calls/{call}/missed").text
    assert '<option value="2">This is Bill.' in missed
    form = {"csrf": csrf_of(page), "kind": "task", "turn": "2", "title": "Order pens"}
    answer = client.post(f"/calls/{call}/requests", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/calls/{call}")
    body = {"title": "Order ink", "due": "2026-02-20", "turns": [2]}
    assert client.post(f"/api/calls/{call}/requests", json=body).status_code == 201
    assert client.post(f"/api/calls/{call}/requests", json=body).status_code == 422
    run("corrections", "add", call, "--title", "Order paper", "--turn", "2")
    run("corrections", "add", call, "--title", "Order tea", "--kind", "wish", code=1)
    rows = desk.app.work.followups.of_conversation(call)
    assert [(row.title, row.due) for row in rows if row.state == "held"] == [
        ("Order pens", None),
        ("Order ink", "2026-02-20"),
        ("Order paper", None),
    ]


def test_the_pages_ask_whether_an_unclear_request_is_one(
    app: App, client: TestClient
) -> None:
    call = make_call(SAID, caller=CALLER)
    app.journal.ingest(call)
    titles = ("Shoe the donkey", "Water the plants")
    unclear = tuple(
        UnclearRequest(title=title, turns=(2,), words="thumbnails", confidence=0.4)
        for title in titles
    )
    reading = Reading(language="en", summary="A call.", unclear=unclear)
    follow(replace(app.work, reader=FakeReader(reading)), call.conversation)
    page = client.get("/followups").text
    assert "may be requests" in page
    forms = re.findall(r"<form.*?</form>", page, re.S)
    answers = {
        title: [form for form in forms if f": {title}" in form] for title in titles
    }
    assert [len(each) for each in answers.values()] == [2, 2]
    for form in (answers["Shoe the donkey"][0], answers["Water the plants"][1]):
        fields = dict(re.findall(r'name="(\w+)" value="(.*?)"', form))
        assert client.post("/followups/decide", data=fields).status_code == 303
    rows = app.work.followups.of_conversation(call.conversation)
    assert {row.title: row.state for row in rows} == {
        "Shoe the donkey": "held",
        "Water the plants": "withdrawn",
    }


def test_a_missed_fact_is_added_from_pages_api_and_command_line(
    desk: Desk, client: TestClient
) -> None:
    call = desk.app.work.followups.get(desk.request).call_id
    page = client.get(f"/calls/{call}").text
    form = {"csrf": csrf_of(page), "turn": "2", "text": "Bill works at night"}
    answer = client.post(f"/calls/{call}/facts", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/calls/{call}")
    body = {"text": "Bill keeps bees", "turn": 2, "category": "routine"}
    assert client.post(f"/api/calls/{call}/facts", json=body).status_code == 201
    assert client.post(f"/api/calls/{call}/facts", json=body).status_code == 422
    run("corrections", "add-fact", call, "--text", "Bill sings", "--turn", "2")
    run("corrections", "add-fact", call, "--text", "Bill", "--turn", "1", code=1)
    believed = {fact.content for fact in desk.app.facts.page(FactFilter())}
    assert believed >= {"Bill works at night", "Bill keeps bees", "Bill sings"}
    assert "Bill keeps bees" in client.get(f"/calls/{call}").text


def test_the_api_corrects_lists_and_undoes(desk: Desk, client: TestClient) -> None:
    right = {"what": "due", "of": desk.request, "new": "2026-02-20"}
    made = client.post("/api/corrections", json=right)
    assert made.status_code == 201
    assert (made.json()["old"], made.json()["new"]) == (None, "2026-02-20")
    assert client.get(f"/api/followups/{desk.request}").json()["due"] == "2026-02-20"
    listed = client.get("/api/corrections", params={"caller": CALLER}).json()
    assert [one["id"] for one in listed["corrections"]] == [made.json()["id"]]
    undo = f"/api/corrections/{made.json()['id']}/undo"
    assert client.post(undo).status_code == 200
    assert client.post(undo).status_code == 404
    assert client.get(f"/api/followups/{desk.request}").json()["due"] is None
    assert client.get("/api/corrections").json() == {"corrections": [], "next": None}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"what": "due", "of": "none", "new": "2026-02-20"}, 404),
        ({"what": "fact", "of": "none", "new": "x"}, 404),
        ({"what": "name", "of": "somebody", "new": "x"}, 422),
        ({"what": "name", "of": "anonymous", "new": "x"}, 422),
        ({"what": "name", "of": CALLER, "new": "_(optional)_"}, 422),
        ({"what": "weather", "of": "x", "new": "x"}, 422),
        ({"what": "fact", "of": "x"}, 422),
        ({"what": "fact", "of": "x", "new": "x" * 1001}, 422),
        ({"what": "fact", "of": "x", "new": "x", "who": "somebody else"}, 422),
    ],
)
def test_a_correction_that_does_not_fit_is_refused_and_leaves_no_trace(
    desk: Desk, client: TestClient, body: dict[str, str], status: int
) -> None:
    assert client.post("/api/corrections", json=body).status_code == status
    assert desk.deeds == []
    assert desk.app.corrections.store.page(limit=1) == []


def test_a_stranger_corrects_nothing(desk: Desk) -> None:
    stranger = make_stranger(desk.app)
    right = {"what": "request", "of": desk.request, "new": "Wire me the money"}
    assert stranger.post("/api/corrections", json=right).status_code == 401
    assert stranger.get("/api/corrections").status_code == 401
    assert stranger.post("/corrections", data=right).status_code in (303, 401, 403)
    assert "thumbnails" in desk.title


def test_the_command_line_corrects_lists_and_undoes(desk: Desk) -> None:
    words = ("--title", "Open a bug about thumbs", "--due", "2026-02-20")
    made = json.loads(run("corrections", "request", desk.request, *words, "--json"))
    assert [one["what"] for one in made] == ["request", "due"]
    run("corrections", "fact", desk.fact, "--text", "I live in Porto now.")
    run("corrections", "name", CALLER, "--name", "Bill Harker")
    assert (desk.title, desk.content, desk.name) == (
        "Open a bug about thumbs",
        "I live in Porto now.",
        "Bill Harker",
    )
    listed = json.loads(run("corrections", "list", "--caller", CALLER, "--json"))
    assert [one["what"] for one in listed] == ["name", "fact", "due", "request"]
    assert all("at the command line" in one["who"] for one in listed)
    for one in listed:
        run("corrections", "undo", one["id"])
    assert "thumbnails" in desk.title
    assert "Nothing was corrected" in run("corrections", "list")
    run("corrections", "request", desk.request, code=1)


def test_corrected_calls_are_labels_that_a_reader_is_measured_by(
    desk: Desk, tmp_path: Path
) -> None:
    title = "Open a bug about the broken pictures, thumbnails"
    run("corrections", "request", desk.request, "--title", title)
    run("corrections", "name", CALLER, "--name", "Bill")
    exported = run("corrections", "export")
    (label,) = [json.loads(line) for line in exported.splitlines()]
    (request,) = label["gold"]["requests"]
    assert request["turns"] == [2]
    assert "thumbnails" in request["words"]
    assert "pictures" not in request["words"]
    assert label["gold"]["profile"] == {"name": "Bill"}
    assert label["gold"]["facts"][0]["turns"] == [4]
    file = tmp_path / "labels.jsonl"
    file.write_text(exported)
    result = json.loads(
        run("eval", "reading", str(file), "--reader", "rules", "--json")
    )
    (reader,) = result["readers"]
    assert (reader["reader"], reader["calls"], reader["failed"]) == ("rules", 1, [])
    found = reader["figures"]["requests, recall"]
    assert (found["right"], found["of"]) == (1, 1)


def test_an_export_masks_secrets_unless_they_are_revealed(app: App, desk: Desk) -> None:
    call = make_call(
        [("agent", "Hi."), ("caller", "My PIN is 4821."), ("agent", "Noted.")],
        caller=CALLER,
        sid="secret",
    )
    app.journal.ingest(call)
    told = draft("My PIN is 4821.", visibility="secret", category="technical")
    app.step_runner.context.extractor.extract(call, reader_of(told))
    run("corrections", "name", CALLER, "--name", "Bill")
    assert "4821" not in run("corrections", "export")
    assert "4821" in run("corrections", "export", "--reveal")
    assert desk.deeds == ["corrected", "revealed"]
