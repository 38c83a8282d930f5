"""Limits for calls that cost money: an allow-list of numbers and a daily spending limit."""

import json
import os
from pathlib import Path

from aftercall.clock import Clock
from aftercall.errors import BudgetSpent, DialRefused
from aftercall.faults import fault_point
from aftercall.model.people import normalise_caller


def check_allowed(number: str, allowed: tuple[str, ...]) -> str:
    """The number in E.164 form; raises DialRefused if it is not on the list."""
    try:
        wanted = normalise_caller(number)
        known = {normalise_caller(item) for item in allowed}
    except ValueError as error:
        raise DialRefused(f"{number}: {error}") from None
    if wanted is None or wanted not in known:
        hint = "add it to tester.allow_numbers if it is yours to call"
        raise DialRefused(f"{number}: is not on the allow-list; {hint}")
    return wanted


class SpendingLimit:
    """What was spent today, in a file that all commands share.

    The longest a call can be is paid in advance.
    """

    def __init__(
        self, path: Path, limit: float, per_minute: float, clock: Clock
    ) -> None:
        self._path = path
        self._limit = limit
        self._per_minute = per_minute
        self._clock = clock

    @property
    def spent(self) -> float:
        return self._read().get(self._today(), 0.0)

    def reserve(self, seconds: float) -> float:
        """Pays for this many seconds; raises BudgetSpent if the day's limit does not allow it."""
        price = self._per_minute * seconds / 60
        if self.spent + price > self._limit:
            left = f"{self.spent:.2f} of today's {self._limit:.2f} are spent"
            hint = "raise tester.spend_limit to go on"
            raise BudgetSpent(f"the call could cost {price:.2f}, {left}; {hint}")
        self._add(price)
        fault_point("tester.after_reserve")
        return price

    def refund_unused(self, reserved: float, seconds: float) -> None:
        """Returns the price of unused minutes; a started minute is paid."""
        self._add(-max(0.0, reserved - self._per_minute * -(-seconds // 60)))

    def _add(self, amount: float) -> None:
        spent = self._read()
        spent[self._today()] = round(spent.get(self._today(), 0.0) + amount, 6)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(json.dumps(spent))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def _read(self) -> dict[str, float]:
        try:
            days = json.loads(self._path.read_text("utf-8")).items()
            return {str(day): float(amount) for day, amount in days}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError):
            reason = "cannot be read, so nothing is spent; move it away to begin anew"
            raise BudgetSpent(f"{self._path}: {reason}") from None

    def _today(self) -> str:
        return self._clock.now().date().isoformat()
