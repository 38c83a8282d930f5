"""Where the work after a call is done: one step at a time, begun and ended on record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from aftercall.faults import reach
from aftercall.journal.archive import Archive
from aftercall.journal.presence import Presence
from aftercall.journal.store import CallStore
from aftercall.model.calls import Call
from aftercall.postcall.hush import hush
from aftercall.postcall.steps import Desk, take
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
    _open: dict[str, set[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def begin(self, call_id: str, names: Sequence[str], *, again: bool = False) -> None:
        """These steps are going on now; those that came to their end before a crash stay as they are, unless they begin again."""
        self.steps.begin(call_id, names, self.desk.clock.now(), again=again)
        self._open.setdefault(call_id, set()).update(names)

    def do(self, call_id: str, name: str) -> None:
        """Take one step that was begun, and record how it ended; what it raises is for whoever asked, to try again or give up."""
        try:
            self._do(call_id, name)
        finally:
            self._forget(call_id, name)

    def _do(self, call_id: str, name: str) -> None:
        call = self._read(call_id)
        reach("postcall.before_step")
        outcome = take(self.desk, name, call)
        reach("postcall.after_step")
        self.steps.finish(call_id, name, outcome, self.desk.clock.now())
        reach("postcall.after_finish")
        hush(self.desk, self.steps, call)  # the durable engine takes the step for done only after this

    def _read(self, call_id: str) -> Call:
        """The steps of a call come at the same time, and a sealed call never changes: it is read once for all of them."""
        call = self._lately.get(call_id)
        if call is None:
            call, _ = self.archive.read(str(self.calls.get(call_id).archive_name))
            self._lately[call_id] = call
            for old in list(self._lately)[:-KEPT]:
                self._lately.pop(old, None)
        return call

    def _forget(self, call_id: str, name: str) -> None:
        """With its last step a call leaves this process: what is erased then is in no process's memory either."""
        left = self._open.get(call_id, set())
        left.discard(name)
        if not left:
            self._open.pop(call_id, None)
            self._lately.pop(call_id, None)
            self.desk.reader.forget(call_id)

    def put_off(self, call_id: str, name: str, reason: str, pause_s: float) -> None:
        """The step is to be tried again; until then it shows why it waits."""
        again = self.desk.clock.now() + timedelta(seconds=pause_s)
        self.steps.put_off(call_id, name, f"{reason} (tried again at {again:%H:%M:%S} UTC)", self.desk.clock.now())
        reach("step.after_put_off")

    def give_up(self, call_id: str, name: str, reason: str) -> None:
        self.steps.fail(call_id, name, reason, self.desk.clock.now())
