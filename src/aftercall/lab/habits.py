"""How an emulated carrier delivers its webhooks: twice, late, so late that others overtake them. Real ones do all of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Habits:
    """Kinds of webhook are named as the carrier names them (`completed`, `call.hangup`); `*` is every kind."""

    twice: frozenset[str] = frozenset()
    late_s: Mapping[str, float] = field(default_factory=dict)
    """How long a kind waits before it is sent. It waits beside the others, which go on."""

    def times(self, kind: str) -> int:
        return 2 if {kind, "*"} & self.twice else 1

    def delay_s(self, kind: str) -> float:
        return self.late_s.get(kind, self.late_s.get("*", 0.0))


PROMPT = Habits()
