"""What an emulated Twilio posts: forms with real signatures, and the TwiML that comes back."""

from base64 import b64encode
from contextlib import suppress
from hashlib import sha1
from hmac import digest

import httpx2

from aftercall.lab.twiml import NOTHING_TO_FETCH, TwimlFault

HTTP_FAILED = 11200
TIMEOUT_S = 15.0  # how long Twilio waits for an answer
_TWIML_TYPES = ("text/xml", "application/xml")


class TwilioPosts:
    def __init__(self, auth_token: str, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._token = auth_token.encode()
        self._http = httpx2.AsyncClient(timeout=TIMEOUT_S, trust_env=False, transport=transport)

    async def close(self) -> None:
        await self._http.aclose()

    def sign(self, url: str, form: dict[str, str]) -> str:
        signed = url + "".join(name + form[name] for name in sorted(form))
        return b64encode(digest(self._token, signed.encode(), sha1)).decode()

    async def post(self, url: str, form: dict[str, str]) -> httpx2.Response:
        return await self._http.post(url, data=form, headers={"X-Twilio-Signature": self.sign(url, form)})

    async def tell(self, url: str, form: dict[str, str]) -> None:
        """A callback; Twilio does not try one again."""
        with suppress(httpx2.HTTPError):
            await self.post(url, form)

    async def fetch_twiml(self, url: str, form: dict[str, str]) -> str:
        try:
            answer = await self.post(url, form)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise TwimlFault(HTTP_FAILED, f"no answer from the webhook ({type(error).__name__})") from None
        if answer.status_code != 200:
            raise TwimlFault(HTTP_FAILED, f"the webhook answered {answer.status_code}")
        if answer.headers.get("content-type", "").partition(";")[0] not in _TWIML_TYPES:
            raise TwimlFault(NOTHING_TO_FETCH, "the webhook's answer is not text/xml")
        return answer.text
