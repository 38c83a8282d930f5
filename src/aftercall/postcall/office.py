"""Where the work after a call is done: one step at a time, its end on record."""

from dataclasses import dataclass, field
from datetime import timedelta

from aftercall.faults import reach
from aftercall.journal.archive import Archive
from aftercall.journal.presence import Presence
from aftercall.journal.store import CallStore
from aftercall.model.calls import Call
from aftercall.model.steps import Outcome
from aftercall.postcall.steps import Desk, make
from aftercall.postcall.store import StepStore

KEPT = 16


@dataclass(frozen=True)
class Office:
    desk: Desk
    calls: CallStore
    steps: StepStore
    archive: Archive
    presence: Presence
    _lately: dict[str, Call] = field(default_factory=dict, init=False, repr=False, compare=False)

    def do(self, call_id: str, name: str) -> None:
        """Take one step that was begun, and record how it ended; what it raises is for whoever asked, to try again or give up."""
        outcome = self.make(self.read(call_id), name)
        self.steps.finish(call_id, name, outcome, self.desk.clock.now())
        reach("postcall.after_finish")

    def make(self, call: Call, name: str) -> Outcome:
        """What the step makes in files and elsewhere is made; what it writes in the database is written when its end is recorded."""
        reach("postcall.before_step")
        outcome = make(self.desk, name, call)
        reach("postcall.after_step")
        return outcome

    def read(self, call_id: str) -> Call:
        """A sealed call never changes, and its steps come one after another: it is read once for them."""
        call = self._lately.get(call_id)
        if call is None:
            call, _ = self.archive.read(str(self.calls.get(call_id).archive_name))
            self._lately[call_id] = call
            for old in list(self._lately)[:-KEPT]:
                self._lately.pop(old, None)
        return call

    def put_off(self, call_id: str, name: str, reason: str, pause_s: float) -> None:
        """The step is to be tried again; until then it shows why it waits."""
        again = self.desk.clock.now() + timedelta(seconds=pause_s)
        self.steps.put_off(call_id, name, f"{reason} (tried again at {again:%H:%M:%S} UTC)", self.desk.clock.now())
        reach("step.after_put_off")

    def give_up(self, call_id: str, name: str, reason: str) -> None:
        self.steps.fail(call_id, name, reason, self.desk.clock.now())
