"""Where the work after a call is done: one step at a time, its end on record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from aftercall.errors import AftercallError
from aftercall.faults import fault_point
from aftercall.journal.archive import Archive
from aftercall.journal.presence import Presence
from aftercall.journal.store import CallStore
from aftercall.log import get_logger
from aftercall.memory.embedding import embed_missing
from aftercall.model.calls import Call
from aftercall.model.steps import StepOutcome
from aftercall.postcall.hush import redact_secrets
from aftercall.postcall.steps import FIRST, LAST, NO_SUMMARY, PAGES, Desk, make
from aftercall.postcall.store import StepStore

KEPT = 128  # more than are worked on at once

log = get_logger("postcall")


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
        """These steps are going on now; those that came to their end before a crash stay as
        they are, unless they begin again.
        """
        self.steps.begin(call_id, names, self.desk.clock.now(), again=again)
        self.hold(call_id, names)

    def begin_by_hand(self, call_id: str, names: Sequence[str], reason: str) -> None:
        """As `begin`, where nobody but a person takes up what is cut off; until they end,
        `reason` tells what to do then.
        """
        self.steps.begin_by_hand(call_id, names, self.desk.clock.now(), reason)
        self.hold(call_id, names)

    def do(self, call_id: str, name: str) -> None:
        """Take one step that was begun, and record how it ended; what it raises is for whoever
        asked, to try again or give up.
        """
        try:
            call = self.read(call_id)
            outcome = self.make(call, name)
            self.steps.finish(call_id, name, outcome, self.desk.clock.now())
            fault_point("postcall.after_finish")
            self.round_off(call, name)  # the durable engine takes the step for done only after this
        finally:
            self.let_go(call_id, name)

    def round_off(self, call: Call, name: str = "") -> None:
        """What is due once the end of a step is on record: secrets hidden, and what the summary
        says found by its meaning.
        """
        redact_secrets(self.desk, self.steps, call)
        if name == FIRST and self.desk.embedder is not None:
            try:
                embed_missing(self.desk.database, self.desk.embedder)
            except (
                AftercallError
            ) as error:  # its passage is found by its words, and gets a vector with the next ones
                log.warning("the summary has no vector yet", call=call.id, error=error.code)

    def left_behind(self, call_id: str) -> list[str]:
        """The steps to take now that the summary has come late: its pages, as far as they
        waited for it, and the pins, which it names.
        """
        known = {step.name: step.state for step in self.steps.of_call(call_id)}
        return [
            name
            for name in self.resting_on_summary(call_id)
            if name in LAST or known[name] not in ("done", "skipped")
        ]

    def resting_on_summary(self, call_id: str) -> list[str]:
        """The steps to take again when the summary was made anew."""
        known = {step.name: step.state for step in self.steps.of_call(call_id)}
        is_summarised = known.get(FIRST) in ("done", "skipped")
        return [name for name in (*PAGES, *LAST) if name in known] if is_summarised else []

    def hold(self, call_id: str, names: Sequence[str]) -> None:
        """The call is in this process's memory until these steps have ended."""
        self._open.setdefault(call_id, set()).update(names)

    def make(self, call: Call, name: str) -> StepOutcome:
        """What the step makes in files and elsewhere is made; what it writes in the database is
        written when its end is recorded.
        """
        fault_point("postcall.before_step")
        outcome = make(self.desk, name, call)
        fault_point("postcall.after_step")
        return outcome

    def read(self, call_id: str) -> Call:
        """As its party has it.

        A sealed call never changes, and its steps come one after another: it is read once for
        them.

        Whose it is is decided for calls that get no step, too.
        """
        call = self._lately.get(call_id)
        if call is None:
            call = self.desk.as_party(
                self.archive.read(str(self.calls.get(call_id).archive_name))[0]
            )
            self.keep(call)
        return call

    def keep(self, call: Call) -> None:
        """In this process's memory, as its party has it, for whoever reads it next."""
        self._lately[call.id] = call
        for old in list(self._lately)[:-KEPT]:
            self._lately.pop(old, None)

    def let_go(self, call_id: str, name: str) -> None:
        """With its last step a call leaves this process: what is erased then is in no process's
        memory either.
        """
        left = self._open.get(call_id, set())
        left.discard(name)
        if not left:
            self._open.pop(call_id, None)
            self._lately.pop(call_id, None)
            self.desk.reader.forget(call_id)

    def put_off(self, call_id: str, name: str, reason: str, pause_s: float) -> None:
        """The step is to be tried again; until then it shows why it waits."""
        again = self.desk.clock.now() + timedelta(seconds=pause_s)
        reason = f"{reason} (tried again at {again:%H:%M:%S} UTC)"
        self.steps.put_off(
            call_id, name, reason, self.desk.clock.now(), PAGES if name == FIRST else ()
        )
        fault_point("step.after_put_off")

    def give_up(self, call_id: str, name: str, reason: str) -> None:
        self.steps.fail(
            call_id, name, reason, self.desk.clock.now(), PAGES if name == FIRST else (), NO_SUMMARY
        )
