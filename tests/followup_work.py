"""Follow-up work without the durable engine: the same steps, one after the other, on virtual
time.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from aftercall.app import App
from aftercall.errors import AftercallError, SinkUnavailable
from aftercall.model.calls import Call
from aftercall.model.followups import FollowUp, SinkReceipt, SinkWork
from aftercall.work import deliver
from aftercall.work.context import WorkContext
from aftercall.work.sinks import Sink
from fakes import START, make_call

THREE_ASKS = (
    ("agent", "Hello! What can I do for you?"),
    ("caller", "Could you open a bug about the broken thumbnails?"),
    ("agent", "Noted."),
    (
        "caller",
        (
            "And remind me to follow up with Markus on Tuesday. And please file a note about the "
            "Carl conversation."
        ),
    ),
    ("agent", "Noted."),
)


class RecordingSink:
    """A sink that writes down every effect; `faults` come first, before or after the work."""

    leaves_machine = True

    def __init__(
        self,
        name: str = "github",
        *faults: Exception,
        works_first: bool = False,
        can_repeat: bool = True,
    ) -> None:
        self.name = name
        self.can_repeat = can_repeat
        self.effects: list[SinkWork] = []
        self._faults = list(faults)
        self._works_first = works_first

    def describe_dry_run(self, work: SinkWork) -> str:
        return "would write it down"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        if self._works_first:
            self._act(work)
        if self._faults:
            raise self._faults.pop(0)
        self._act(work)
        return SinkReceipt(
            link=f"https://github.com/acme/site/issues/{41 + len(self.effects) - 1}",
            response="number 41",
        )

    def _act(self, work: SinkWork) -> None:
        if not self.can_repeat or all(work.key != other.key for other in self.effects):
            self.effects.append(work)


def with_sink(app: App, sink: Sink, **work_settings: Any) -> WorkContext:
    """The app's desk with one sink more, and settings for it."""
    work = app.settings.work.model_copy(update=work_settings)
    settings = app.settings.model_copy(update={"work": work})
    return replace(
        app.work, settings=settings, sinks={**app.work.sinks, sink.name: sink}
    )


def hold_call(
    app: App,
    said: Sequence[tuple[str, str]] = THREE_ASKS,
    *,
    is_handed_in: bool = False,
    **fields: Any,
) -> Call:
    call = make_call(said, **fields)
    app.journal.ingest(call, is_handed_in=is_handed_in)
    return call


def follow(desk: WorkContext, conversation: str) -> list[FollowUp]:
    """One run of a conversation, as the workflow does it."""
    number = desk.runs.get(conversation).run + 1
    todo = desk.record_followups(conversation, number)
    deliver.run_agent(desk, todo)
    for followup_id in todo:
        attempt(desk, followup_id)
    desk.finish_run(conversation, number)
    deliver.notify(desk, conversation, number)
    return desk.followups.of_conversation(conversation)


def hold_requests(app: App, *things: str, caller: str = "+15550142") -> list[FollowUp]:
    """Requests that wait for approval, one call each."""
    careful = app.settings.work.model_copy(update={"policy": {"unknown": "hold"}})
    desk = replace(app.work, settings=app.settings.model_copy(update={"work": careful}))
    for thing in things:
        said = [("caller", f"Please call the {thing} by Friday.")]
        call = hold_call(app, said, caller=caller, sid=thing.replace(" ", "-"))
        follow(desk, call.conversation)
    held = app.work.followups.page(limit=50, state="held")
    assert len(held) == len(things)
    return held[::-1]


def attempt(desk: WorkContext, followup_id: str, tries: int = 3) -> None:
    for number in range(1, tries + 1):
        try:
            deliver.deliver_request(desk, followup_id)
            return
        except SinkUnavailable as error:
            if number == tries:
                deliver.fail_request(desk, followup_id, str(error))
        except AftercallError as error:
            deliver.fail_request(desk, followup_id, str(error))
            return


def states(rows: Sequence[FollowUp], kind: str = "request") -> dict[str, str]:
    return {row.title: row.state for row in rows if row.kind == kind}


def later(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)
