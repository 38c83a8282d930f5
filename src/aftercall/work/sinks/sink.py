"""What every sink owes."""

from typing import Protocol

from aftercall.model.followups import Receipt, Work


class Sink(Protocol):
    """Takes one piece of work and makes one thing of it.

    The same key twice is the same thing: a sink that `can_repeat` finds what it made before and gives the receipt again,
    whether it was cut off before or after. One that cannot is never given the same key again once it may have acted.

    What was said on the phone is data: it is quoted and escaped, never executed, and decides no address and no path.

    Raises SinkUnavailable where trying again may help and SinkRefused where it will not; a sink that cannot repeat raises
    OutcomeUnknown where it may have acted. Errors name what to do and never hold what was said.
    """

    name: str
    leaves_machine: bool
    can_repeat: bool

    def rehearse(self, work: Work) -> str:
        """What `deliver` would do, in one line; does nothing."""
        ...

    def deliver(self, work: Work) -> Receipt: ...
