"""Twilio's REST API, as far as a caller needs it: dial, and download the recording."""

from urllib.parse import urlsplit

import httpx2

from aftercall.carrier.control import TwilioRest
from aftercall.errors import CarrierError, LineFailed
from aftercall.settings.providers import TwilioSettings

MAX_RECORDING_BYTES = 200_000_000


class TwilioDialer:
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
