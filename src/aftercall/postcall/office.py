"""Where the work after a call is done: one step at a time, begun and ended on record."""

from dataclasses import dataclass
from datetime import timedelta

from aftercall.faults import reach
from aftercall.journal.archive import Archive
from aftercall.journal.presence import Presence
from aftercall.journal.store import CallStore
from aftercall.postcall.steps import Desk, take
from aftercall.postcall.store import StepStore


@dataclass(frozen=True)
class Office:
    desk: Desk
    calls: CallStore
    steps: StepStore
    archive: Archive
    presence: Presence

    def do(self, call_id: str, name: str) -> None:
        """Take one step and record how it ended; what it raises is for whoever asked, to try again or give up."""
        self.steps.begin(call_id, name, self.desk.clock.now())
        call, _ = self.archive.read(str(self.calls.get(call_id).archive_name))
        reach("postcall.before_step")
        outcome = take(self.desk, name, call)
        reach("postcall.after_step")
        self.steps.finish(call_id, name, outcome, self.desk.clock.now())
        reach("postcall.after_finish")

    def put_off(self, call_id: str, name: str, reason: str, pause_s: float) -> None:
        """The step is to be tried again; until then it shows why it waits."""
        again = self.desk.clock.now() + timedelta(seconds=pause_s)
        self.steps.put_off(call_id, name, f"{reason} (tried again at {again:%H:%M:%S} UTC)", self.desk.clock.now())
        reach("step.after_put_off")

    def give_up(self, call_id: str, name: str, reason: str) -> None:
        self.steps.fail(call_id, name, reason, self.desk.clock.now())
