"""What a call that costs money needs: an allow-list, a daily spending limit, Twilio's REST API."""

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from aftercall.carrier.control import TwilioRest
from aftercall.clock import Clock
from aftercall.errors import BudgetSpent, CarrierError, DialRefused, LineFailed
from aftercall.faults import fault_point
from aftercall.model.people import normalise_caller
from aftercall.settings.providers import TwilioSettings

MAX_RECORDING_BYTES = 200_000_000


class TwilioDialer:
    """Dials real numbers through Twilio."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        rest: TwilioRest,
        settings: TwilioSettings,
    ) -> None:
        """`http` fetches recordings; `rest` dials."""
        self._http = http
        self._rest = rest
        self._settings = settings

    async def dial(
        self, to: str, address: str, call_id: str, *, ring_s: float, limit_s: float
    ) -> str:
        """Starts a call and returns Twilio's id for it."""
        form = {
            "To": to,
            "From": self._settings.phone_number or "",
            "Url": f"{address}/voice?call={call_id}",
            "Method": "POST",
            "StatusCallback": f"{address}/status?call={call_id}",
            "StatusCallbackEvent": "completed",
            "Timeout": str(round(ring_s)),
            "TimeLimit": str(round(limit_s)),
            "Record": "true",
            "RecordingChannels": "dual",
            "Trim": "do-not-trim",
            "RecordingStatusCallback": f"{address}/recording?call={call_id}",
        }
        try:
            return await self._rest.dial(form)
        except CarrierError as error:
            raise LineFailed(str(error)) from None

    async def download(self, url: str) -> bytes:
        """Both channels as WAV.

        The account's name and token go to Twilio's own address only, whatever the webhook says.
        """
        settings = self._settings
        if urlsplit(url).netloc != urlsplit(settings.api_url).netloc:
            raise LineFailed("the recording lies at an address that is not Twilio's")
        token = settings.auth_token
        try:
            answer = await self._http.get(
                f"{url}.wav",
                params={"RequestedChannels": "2"},
                auth=(
                    settings.account_sid or "",
                    token.get_secret_value() if token else "",
                ),
                follow_redirects=False,
            )
        except httpx2.HTTPError as error:
            reason = type(error).__name__
            raise LineFailed(f"the recording could not be fetched ({reason})") from None
        if answer.status_code != 200 or len(answer.content) > MAX_RECORDING_BYTES:
            raise LineFailed(
                f"the recording could not be fetched (HTTP {answer.status_code})"
            )
        return answer.content


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
