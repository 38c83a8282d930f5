"""Facts as somebody at the command line or a client of the API meets them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from aftercall.app import App
from aftercall.cli.main import program
from aftercall.memory.extraction import Extractor, list_briefed_facts
from aftercall.memory.fact_store import FactFilter
from aftercall.model.calls import BRIEFED_EVENT, Event
from aftercall.model.facts import MemoryKey
from api_client import csrf_of, make_client
from fact_drafts import draft, on, reader_of, say


@pytest.fixture
def learnt(app: App, monkeypatch: pytest.MonkeyPatch) -> App:
    """Bill lived in Porto, then in Lisbon; somebody else likes jazz."""
    extractor = Extractor(app.settings, app.facts, app.clock)
    said = (
        ("+15550100", "I live in Porto", 0),
        ("+15550100", "I live in Lisbon", 10),
        ("+15550199", "I like jazz", 1),
    )
    for caller, words, day in said:
        call = say(words, "Yes", day=day, caller=caller)
        app.journal.ingest(call)
        extractor.extract(call, reader_of(draft(words)))
    monkeypatch.setenv("AFTERCALL_HOME", str(app.settings.home))
    monkeypatch.setenv("AFTERCALL_DATABASE_URL", app.settings.database_url)
    return app


@pytest.fixture
def client(learnt: App) -> Iterator[TestClient]:
    client = make_client(learnt)
    yield client
    client.close()


def run(*command: str) -> str:
    answer = CliRunner().invoke(program, command, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def contents(answer: str) -> list[str]:
    return [fact["content"] for fact in json.loads(answer)]


def test_the_command_line_lists_dates_chains_and_restores(learnt: App) -> None:
    assert contents(run("facts", "list", "--json", "--caller", "+15550100")) == [
        "I live in Lisbon"
    ]
    assert contents(
        run("facts", "at", "2026-02-15", "--json", "--caller", "+15550100")
    ) == ["I live in Porto"]
    assert contents(run("facts", "list", "--json", "--category", "person")) == []
    (now,) = json.loads(run("facts", "list", "--json", "--caller", "+15550100"))
    assert contents(run("facts", "history", now["id"], "--json")) == [
        "I live in Porto",
        "I live in Lisbon",
    ]
    assert "believed again" in run("facts", "restore", now["supersedes"])
    assert len(contents(run("facts", "list", "--json", "--caller", "+15550100"))) == 2
    shown = run("facts", "show", now["id"])
    assert "said once" in shown
    assert "“I live in Lisbon”" in shown
    assert [
        json.loads(line)["content"] for line in run("facts", "export").splitlines()
    ] == [
        "I live in Porto",
        "I live in Lisbon",
        "I like jazz",
    ]
    assert "I live in Lisbon" in run("facts", "list")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["facts", "show", "nobody"], "there is no fact nobody"),
        (["facts", "at", "someday"], "DATE: is not a day"),
        (["facts", "list", "--category", "nonsense"], "--category: is not one of"),
        (["facts", "list", "--caller", "Bill"], "--caller: is not a phone number"),
    ],
)
def test_mistakes_are_named(learnt: App, command: list[str], said: str) -> None:
    answer = CliRunner().invoke(program, command)
    assert said in str(answer.exception)


def test_the_api_lists_filters_and_pages(client: TestClient) -> None:
    def listed(**query: str) -> list[str]:
        return [
            fact["content"]
            for fact in client.get("/api/facts", params=query).json()["facts"]
        ]

    assert listed(caller="+15550100") == ["I live in Lisbon"]
    assert listed(caller="+15550100", as_of="2026-02-15") == ["I live in Porto"]
    assert listed(caller="+15550100", retired="true") == [
        "I live in Porto",
        "I live in Lisbon",
    ]
    assert listed(category="person") == []
    first = client.get("/api/facts?limit=1").json()
    assert listed(after=first["next"]) == ["I like jazz"]
    whole = client.get(f"/api/facts/{first['facts'][0]['id']}").json()
    assert (len(whole["history"]), whole["occurrences"][0]["words"]) == (
        2,
        "I live in Lisbon",
    )
    call = client.get(f"/api/calls/{whole['occurrences'][0]['call_id']}").json()
    assert (call["extraction"]["facts_updated"], call["extraction"]["facts"]) == (
        1,
        [whole["id"]],
    )


def test_the_api_names_what_it_cannot_use(client: TestClient) -> None:
    statuses = [
        client.get(f"/api/facts{query}").status_code
        for query in ("?caller=Bill", "?as_of=noon", "?as_of=9999-12-31", "/nobody")
    ]
    assert statuses == [422, 422, 422, 404]


def test_notes_are_taken_in_once(learnt: App, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "2026-01-02.md").write_text(
        "- User lives in Faro.\n- Has two kids.\n- The wifi password is sunflowerseven.\n"
    )
    command = ("memory", "import", str(folder), "--caller", "+15550100", "--json")
    first, second = json.loads(run(*command)), json.loads(run(*command))
    assert (first["new"], first["facts"]) == (
        1,
        {"new": 2, "updated": 1, "said again": 0},
    )
    assert (second["new"], second["known"], sum(second["facts"].values())) == (0, 1, 0)
    assert contents(
        run("facts", "at", "2026-01-05", "--json", "--caller", "+15550100")
    ) == [
        "(secret)",
        "I live in Faro",
        "I have two kids",
    ]
    assert "I live in Lisbon" in contents(
        run("facts", "list", "--json", "--caller", "+15550100")
    )


def test_what_a_call_was_told_is_kept_with_it_and_said_again_it_is_a_confirmation(
    learnt: App,
) -> None:
    known = learnt.facts.page(FactFilter(key=MemoryKey("main", "+15550100")))[0]
    briefed = Event(seq=1, kind=BRIEFED_EVENT, at=on(20), data={"facts": [known.id]})
    call = say("I live in Lisbon", "Bye", day=20).model_copy(
        update={"events": (briefed,)}
    )
    learnt.journal.ingest(call)
    kept, _ = learnt.archive.read(str(learnt.store.get(call.id).archive_name))
    assert list_briefed_facts(kept) == {known.id}
    Extractor(learnt.settings, learnt.facts, learnt.clock).extract(
        kept, reader_of(draft("I live in Lisbon"))
    )
    assert [item.sentiment for item in learnt.facts.list_occurrences(known.id)] == [
        "update",
        "confirmation",
    ]


def test_search_is_measured_on_ones_own_questions(learnt: App, tmp_path: Path) -> None:
    known = learnt.facts.page(FactFilter(key=MemoryKey("main", "+15550199")))[0]
    questions = [
        {"question": "where do I live", "expects": [{"text": "I live in Lisbon"}]},
        {"question": "music", "expects": [{"fact": known.id}]},
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text(
        "".join(json.dumps(one | {"caller": "+15550100"}) + "\n" for one in questions)
    )
    report = json.loads(run("memory", "eval", str(path), "--json"))
    assert (report["questions"], report["recall"]) == (2, 0.5)
    assert report["missed_lines"] == [2]
    assert "mrr             0.5" in run("memory", "eval", str(path))


@pytest.fixture
def disputed(learnt: App) -> App:
    extractor = Extractor(learnt.settings, learnt.facts, learnt.clock)
    for day, words in enumerate(
        ("Noor wants the pink cake", "Noor changed her mind, the green cake it is"), 20
    ):
        call = say(words, "Yes", day=day)
        learnt.journal.ingest(call)
        extractor.extract(call, reader_of(draft(words)))
    return learnt


def list_disputed(app: App) -> list[str]:
    key = MemoryKey("main", "+15550100")
    every = app.facts.page(FactFilter(key=key))
    return [fact.id for fact in every if fact.state == "disputed"]


def test_a_dispute_is_shown_and_settled_at_the_command_line(disputed: App) -> None:
    pink, green = list_disputed(disputed)
    assert run("facts", "list").count("disputed]") == 2
    assert f"disputed with {pink}" in run("facts", "show", green)
    assert json.loads(run("facts", "show", green, "--json"))["disputed_with"] == [pink]
    assert "is believed" in run("facts", "settle", green)
    assert "retired by" in run("facts", "show", pink)
    assert list_disputed(disputed) == []
    assert [entry.deed for entry in disputed.audit.list_recent()] == ["settled"]


@pytest.mark.parametrize(("query", "believed"), [("", 1), ("?both=true", 2)])
def test_a_dispute_is_shown_and_settled_on_its_page(
    disputed: App, query: str, believed: int
) -> None:
    client = make_client(disputed, follow_redirects=False)
    pink, green = list_disputed(disputed)
    page = client.get(f"/memory/facts/{green}").text
    assert "Only one of these may hold" in page
    assert "the pink cake" in page
    assert client.get("/memory").text.count(">disputed<") == 2
    form = {"csrf": csrf_of(page)}
    path = f"/memory/facts/{green}/settle{query}"
    assert client.post(path, data=form).status_code == 303
    assert client.post(path, data=form).status_code == 422
    states = [disputed.facts.get(fact_id).is_active for fact_id in (pink, green)]
    assert sum(states) == believed
    client.close()
