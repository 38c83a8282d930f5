"""Wrong passcodes: how many a caller has left today.

What live calls have heard counts at once, before their follow-up work notes it.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from aftercall.clock import Clock
from aftercall.model.calls import LiveCall
from aftercall.settings import Settings
from aftercall.work.run_store import RunStore
from aftercall.work.trust import is_correct_passcode

DAY = timedelta(days=1)
ALL_CALLERS_FACTOR = 10  # times one caller's tries, in a day, from all callers together


@dataclass(frozen=True)
class PasscodeTryLedger:
    settings: Settings
    runs: RunStore
    clock: Clock
    _live: dict[str, tuple[str | None, float]] = field(default_factory=dict, init=False, repr=False)
    _wrong: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def check(self, call: LiveCall, offered: str) -> bool | None:
        """Whether the words are the passcode; None if there is none, or this caller's no longer
        count today.
        """
        passcode = self.settings.work.passcode
        if passcode is None or self.count_remaining(call) <= 0:
            return None
        if is_correct_passcode(offered, passcode.get_secret_value()):
            return True
        self._live[call.conversation] = (call.caller, self.clock.monotonic())
        self._wrong[call.conversation] += 1
        return False

    def count_remaining(self, call: LiveCall) -> int:
        """The same limit that follow-up work keeps to: so many of one caller, ten times as many
        of all.
        """
        self._drop_expired()
        most = self.settings.work.passcode_tries
        own, everybody = self.runs.wrong_passcodes_of(
            call.caller, self.clock.now() - DAY, apart_from=tuple(self._live)
        )
        own += sum(
            self._wrong[conversation]
            for conversation, (caller, _) in self._live.items()
            if caller == call.caller
        )
        everybody += sum(self._wrong[conversation] for conversation in self._live)
        return 0 if everybody >= most * ALL_CALLERS_FACTOR else most - own

    def _drop_expired(self) -> None:
        long_ago_s = self.clock.monotonic() - DAY.total_seconds()
        for conversation in [
            conversation for conversation, (_, at_s) in self._live.items() if at_s < long_ago_s
        ]:
            del self._live[conversation], self._wrong[conversation]
