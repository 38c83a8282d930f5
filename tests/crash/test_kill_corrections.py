"""kill -9 while a person puts things right: the correction and the row are there, or neither is;
pages that were not written are written by the next process.
"""

import pytest

from aftercall import faults
from aftercall.app import App
from aftercall.memory.fact_store import FactFilter
from aftercall.workspace import files, user_md
from aftercall.workspace.paths import Workspace
from command_process import spawner
from crash import corrections_process
from fact_drafts import draft, reader_of
from fakes import make_call
from followup_work import follow

CALLER = "+15550100"
SAID = [
    ("agent", "Hello!"),
    ("caller", "Please open a bug about the broken thumbnails. I like tea."),
    ("agent", "Noted."),
]
POINTS = [point for point in faults.POINTS if point.startswith("corrections.")]
RIGHT = "Something else"


def start(app: App, fault: str, of: dict[str, str], new: str) -> int | None:
    arguments = (str(app.settings.home), app.settings.database_url, fault, of, new)
    process = spawner.Process(target=corrections_process.run, args=arguments)
    process.start()
    process.join()
    return process.exitcode


def prepare(app: App) -> dict[str, str]:
    call = make_call(SAID, caller=CALLER)
    app.journal.ingest(call)
    (row,) = [
        row for row in follow(app.work, call.conversation) if row.kind == "request"
    ]
    context = app.step_runner.context
    told = reader_of(draft("I like tea"))
    entry, _ = context.extractor.extract(call, told)
    assert entry.facts_extracted == 1
    (fact,) = app.facts.page(FactFilter())
    return {"request": row.id, "fact": fact.id, "name": CALLER}


def values_of(app: App, of: dict[str, str]) -> dict[str, str | None]:
    person = Workspace.from_settings(app.settings).find_person(CALLER)
    assert person is not None
    return {
        "request": app.work.followups.get(of["request"]).title,
        "fact": app.facts.get(of["fact"]).content,
        "name": user_md.parse(files.read(person.user)).name,
    }


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_correction_that_is_cut_off_is_whole_or_was_never_made(
    app: App, point: str, count: int
) -> None:
    of = prepare(app)
    before = values_of(app, of)
    ended = start(app, f"{point}:{count}", of, RIGHT)
    app.corrections.write_pending()
    made = {one.what for one in app.corrections.store.page(limit=10)}
    after = values_of(app, of)
    assert {what for what in of if after[what] == RIGHT} == made
    assert all(after[what] == before[what] for what in of if what not in made)
    assert ended == (-9 if point != "corrections.after_page" or count < 3 else 0)
    undone = start(app, "corrections.after_commit:1", dict.fromkeys(made, ""), "")
    app.corrections.write_pending()
    if undone == -9:
        assert start(app, "", dict.fromkeys(made, ""), "") == 0
    assert values_of(app, of) == before
    assert app.corrections.store.page(limit=10) == []
    assert app.corrections.store.list_pending() == []
