"""Which media socket belongs to which call: a pass given out with the answer must come back
with the stream's start.

One carrier signs the socket's upgrade, another does not; the pass makes them alike. It names
its call, holds for minutes, and opens one stream in each process. No list is kept of those
given out, so any process with the key can check them.
"""

import hmac
from hashlib import sha256
from secrets import token_urlsafe

from pydantic import SecretStr

from aftercall.clock import Clock

TOKEN_PARAMETER = "pass"  # noqa: S105 - the name of a parameter
TOKEN_LIFETIME_S = 120


class StreamTokens:
    def __init__(self, key: SecretStr, clock: Clock) -> None:
        self._key = key.get_secret_value().encode()
        self._clock = clock
        self._used: dict[str, int] = {}

    def issue(self, call_sid: str) -> str:
        word = f"{self._now() + TOKEN_LIFETIME_S}.{token_urlsafe(9)}"
        return f"{word}.{self._sign(call_sid, word)}"

    def redeem(self, call_sid: str, token: str | None) -> bool:
        """Whether this pass opens a stream of this call.

        Once: the second one with it is somebody else.
        """
        word, _, seal = (token or "").rpartition(".")
        if not self._key or not hmac.compare_digest(
            self._sign(call_sid, word).encode(), seal.encode("utf-8", "replace")
        ):
            return False
        until = int(word.partition(".")[0])
        now = self._now()
        if until < now or word in self._used:
            return False
        self._used = {used: end for used, end in self._used.items() if end >= now} | {word: until}
        return True

    def _sign(self, call_sid: str, word: str) -> str:
        return hmac.digest(
            self._key, f"stream pass|{call_sid}|{word}".encode("utf-8", "replace"), sha256
        ).hex()

    def _now(self) -> int:
        return int(self._clock.now().timestamp())
