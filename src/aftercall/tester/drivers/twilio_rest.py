"""Twilio's REST address, as far as a caller needs it: dial, and fetch the recording."""

from urllib.parse import urlsplit

import httpx2
from pydantic import SecretStr

from aftercall.errors import LineFailed

MAX_RECORDING = 200_000_000
VOICE = "Polly.Matthew-Neural"


class TesterTwilio:
    def __init__(
        self,
        http: httpx2.AsyncClient,
        api_url: str,
        account_sid: str,
        auth_token: SecretStr,
        number: str,
        voice: str = VOICE,
    ) -> None:
        self._http = http
        self._api = api_url.rstrip("/")
        self._account = account_sid
        self._auth = (account_sid, auth_token.get_secret_value())
        self._number = number
        self.voice = voice

    async def dial(
        self, to: str, address: str, call_id: str, *, ring_s: float, limit_s: float
    ) -> str:
        """The carrier's id of the call that now rings."""
        form = {
            "To": to,
            "From": self._number,
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
            answer = await self._http.post(
                f"{self._api}/2010-04-01/Accounts/{self._account}/Calls.json",
                data=form,
                auth=self._auth,
            )
            data = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise LineFailed(f"Twilio gave no answer ({type(error).__name__})") from None
        if (
            answer.status_code != 201
            or not isinstance(data, dict)
            or not isinstance(data.get("sid"), str)
        ):
            code = data.get("code", "no code") if isinstance(data, dict) else "no code"
            raise LineFailed(f"Twilio refused to dial (HTTP {answer.status_code}, {code})")
        sid: str = data["sid"]
        return sid

    async def download(self, url: str) -> bytes:
        """Both channels as WAV.

        The account's name and token go to Twilio's own address only, whatever the webhook says.
        """
        if urlsplit(url).netloc != urlsplit(self._api).netloc:
            raise LineFailed("the recording lies at an address that is not Twilio's")
        try:
            answer = await self._http.get(
                f"{url}.wav",
                params={"RequestedChannels": "2"},
                auth=self._auth,
                follow_redirects=False,
            )
        except httpx2.HTTPError as error:
            raise LineFailed(
                f"the recording could not be fetched ({type(error).__name__})"
            ) from None
        if answer.status_code != 200 or len(answer.content) > MAX_RECORDING:
            raise LineFailed(f"the recording could not be fetched (HTTP {answer.status_code})")
        return answer.content
