"""kill -9 around the document of a call: one page in our store, one in the remote one."""

import pytest

from aftercall.app import App
from aftercall.lab.rest import serve_on_loopback
from aftercall.lab.services import EmulatedRemem, make_remem
from command_process import spawner
from crash import document_process


def work(app: App, fault: str, sid: str, remem_url: str) -> int | None:
    process = spawner.Process(
        target=document_process.run,
        args=(str(app.settings.home), app.settings.database_url, fault, sid, remem_url),
    )
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.parametrize(
    "point", ["documents.after_put", "remem.after_send", "step.after_put_off"]
)
def test_the_document_of_a_call_stands_once_here_and_there(
    app: App, point: str
) -> None:
    lab = EmulatedRemem("vlt_lab")
    if point == "step.after_put_off":
        lab.faults.append("unavailable")
    with serve_on_loopback(make_remem(lab)) as url:
        assert work(app, point, "thing", url) == -9
        assert work(app, "", "thing", url) == 0
    (row,) = app.store.list_page(limit=2)
    steps = {step.name: step for step in app.steps.of_call(row.live.id)}
    assert (steps["document"].state, steps["remem"].state) == ("done", "done")
    assert len(app.documents.search("thing", 10)) == 1
    assert len(lab.documents) == 1
