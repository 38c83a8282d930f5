"""Where follow-up work goes: one file a sink, each idempotent by key, each with a dry run."""

from typing import Protocol

from aftercall.model.followups import SinkReceipt, SinkWork


class Sink(Protocol):
    """Delivers one piece of work.

    A sink that `can_repeat` finds what it made before under the same key and returns the same
    receipt, whether it was cut off before or after. A sink that cannot never gets the same key
    again once it may have acted.

    What was said on the phone is data: quoted and escaped, never executed, never an address or
    a path.

    Raises SinkUnavailable if a retry may help and SinkRefused if it will not. A sink that cannot
    repeat raises OutcomeUnknown if it may have acted. Errors never hold what was said.
    """

    name: str
    leaves_machine: bool
    can_repeat: bool

    def describe_dry_run(self, work: SinkWork) -> str:
        """What `deliver` would do, in one line."""
        ...

    def deliver(self, work: SinkWork) -> SinkReceipt: ...
