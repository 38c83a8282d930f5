"""The lists of calls at carriers and platforms, read page by page through their REST APIs.

A service that says it is busy is asked again after the pause that it names.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

import httpx2

from aftercall.clock import Clock, format_instant
from aftercall.errors import RefusedInput, RestError
from aftercall.hosted.adapters import Bland, ElevenLabs, Retell, Vapi
from aftercall.hosted.platform import (
    Platform,
    PlatformReport,
    from_milliseconds,
    get_object,
    get_objects,
    offset,
    parse_time,
    sid_of,
    text_of,
)
from aftercall.model.calls import Call
from aftercall.model.json_fields import Json
from aftercall.rest import Headers, RestClient, RetryRule, basic_auth
from aftercall.settings import Settings
from aftercall.settings.providers import make_key_headers

RETRY_RULE = RetryRule(
    timeout_s=30.0,
    pauses_s=(1.0, 2.0, 4.0, 8.0, 16.0, 30.0),
    max_named_pause_s=120.0,
)
PAGE_SIZE = 100
TELNYX_PAGE_SIZE = 250
TELNYX_MAX_AGE = timedelta(hours=24)


@dataclass(frozen=True)
class ListedCall:
    """`ids` are its other ids, by which it may be known."""

    sid: str
    started_at: datetime
    is_over: bool
    summary: Json
    ended_at: datetime | None = None
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListingPage:
    """`cursor` is the next page; None after the last one."""

    calls: list[ListedCall]
    cursor: str | None


class ListingClient(RestClient):
    """Reads the calls of one service, which may be busy; its answers are JSON."""

    async def get(self, target: str, query: Mapping[str, str] | None = None) -> Any:
        return await self.read("GET", target, params=query)

    async def read(self, method: str, target: str, **parts: Any) -> Any:
        body = await self.request("a request for calls", method, target, **parts)
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise RestError(f"{self.name}: the answer is not JSON") from None


class ServiceListing(ABC):
    name: ClassVar[str]
    loses_words: ClassVar[bool] = False
    """A carrier knows who rang whom, but not what was said."""

    def __init__(self, client: ListingClient) -> None:
        self.client = client

    @abstractmethod
    async def read_page(self, since: datetime, cursor: str) -> ListingPage:
        """The first page if `cursor` is empty."""

    @abstractmethod
    async def fetch(self, listed: ListedCall, agent_id: str) -> Call | None:
        """The whole call; None if it is not one of ours. Raises RestError."""


class PlatformListing(ServiceListing):
    """The call in the form of the platform's report, which its adapter reads."""

    def __init__(self, client: ListingClient, platform: Platform) -> None:
        super().__init__(client)
        self._platform = platform

    @abstractmethod
    async def _fetch_report(self, sid: str) -> Json: ...

    async def fetch(self, listed: ListedCall, agent_id: str) -> Call | None:
        return self._platform.read_call(await self._fetch_report(listed.sid), agent_id)


class VapiListing(PlatformListing):
    """Newest first. A page ends at a time; the cursor has its calls of that time, too."""

    name = "vapi"

    async def read_page(self, since: datetime, cursor: str) -> ListingPage:
        until, _, seen = cursor.partition(" ")
        query = {"limit": str(PAGE_SIZE), "createdAtGe": format_instant(since)}
        if until:
            query["createdAtLe"] = until
        answer = await self.client.get("/call", query)
        found = get_objects({"items": answer}, "items")
        oldest = min((text_of(call.get("createdAt")) for call in found), default="")
        fresh = [call for call in found if text_of(call.get("id")) not in seen.split()]
        listed = [self._read(call) for call in fresh]
        if len(found) < PAGE_SIZE or not fresh:
            return ListingPage(listed, None)
        same = [text_of(c.get("id")) for c in found if c.get("createdAt") == oldest]
        return ListingPage(listed, " ".join((oldest, *same)))

    def _read(self, call: Json) -> ListedCall:
        ended = call.get("endedAt")
        return ListedCall(
            sid_of(call, "id"),
            parse_time(call.get("createdAt"), "createdAt"),
            call.get("status") == "ended",
            call,
            parse_time(ended, "endedAt") if ended else None,
        )

    async def _fetch_report(self, sid: str) -> Json:
        call = await self.client.get(f"/call/{sid}")
        message = {"type": "end-of-call-report", "call": call}
        for name in ("customer", "phoneNumber", "artifact", "analysis", "endedReason"):
            message[name] = call.get(name)
        # a call that was never connected has neither
        message["startedAt"] = call.get("startedAt") or call.get("createdAt")
        message["endedAt"] = call.get("endedAt") or message["startedAt"]
        return {"message": message}


class RetellListing(PlatformListing):
    """Retell's calls, page by page."""

    name = "retell"

    async def read_page(self, since: datetime, cursor: str) -> ListingPage:
        since_ms = int(since.timestamp() * 1000)
        recent = {"type": "number", "op": "ge", "value": since_ms}
        body: Json = {
            "filter_criteria": {"start_timestamp": recent},
            "sort_order": "ascending",
            "limit": PAGE_SIZE,
        }
        if cursor:
            body["pagination_key"] = cursor
        answer = await self.client.read("POST", "/v3/list-calls", json=body)
        following = answer.get("pagination_key") if answer.get("has_more") else None
        listed = [self._read(call, since) for call in get_objects(answer, "items")]
        return ListingPage(listed, following)

    def _read(self, call: Json, since: datetime) -> ListedCall:
        started = call.get("start_timestamp")
        ended = call.get("end_timestamp")
        return ListedCall(
            sid_of(call, "call_id"),
            from_milliseconds(started, "start_timestamp") if started else since,
            call.get("call_status") in ("ended", "error", "not_connected"),
            call,
            from_milliseconds(ended, "end_timestamp") if ended else None,
        )

    async def _fetch_report(self, sid: str) -> Json:
        call = await self.client.get(f"/v2/get-call/{sid}")
        call.setdefault("end_timestamp", call.get("start_timestamp"))
        return {"event": "call_analyzed", "call": call}


class ElevenLabsListing(PlatformListing):
    """ElevenLabs' conversations, page by page."""

    name = "elevenlabs"

    async def read_page(self, since: datetime, cursor: str) -> ListingPage:
        query = {
            "page_size": str(PAGE_SIZE),
            "call_start_after_unix": str(int(since.timestamp())),
        }
        if cursor:
            query["cursor"] = cursor
        answer = await self.client.get("/v1/convai/conversations", query)
        following = answer.get("next_cursor") if answer.get("has_more") else None
        found = get_objects(answer, "conversations")
        return ListingPage([self._read(item) for item in found], following)

    def _read(self, item: Json) -> ListedCall:
        start = parse_time(item.get("start_time_unix_secs"), "start_time_unix_secs")
        return ListedCall(
            sid_of(item, "conversation_id"),
            start,
            item.get("status") in ("done", "failed"),
            item,
            offset(start, item.get("call_duration_secs")),
        )

    async def _fetch_report(self, sid: str) -> Json:
        data = await self.client.get(f"/v1/convai/conversations/{sid}")
        return {"type": "post_call_transcription", "data": data}


class BlandListing(PlatformListing):
    """Newest first, by number; a call that comes meanwhile makes one come twice."""

    name = "bland"

    async def read_page(self, since: datetime, cursor: str) -> ListingPage:
        first = int(cursor or "0")
        query = {"from": str(first), "limit": str(PAGE_SIZE)}
        found = get_objects(await self.client.get("/v1/calls", query), "calls")
        listed = [self._read(call) for call in found]
        recent = [call for call in listed if call.started_at >= since]
        is_last = len(found) < PAGE_SIZE or len(recent) < len(listed)
        return ListingPage(recent, None if is_last else str(first + len(found)))

    def _read(self, call: Json) -> ListedCall:
        start = parse_time(call.get("created_at"), "created_at")
        minutes = call.get("call_length")
        length = minutes * 60 if isinstance(minutes, int | float) else None
        return ListedCall(
            sid_of(call, "call_id"),
            start,
            call.get("completed") is True,
            call,
            offset(start, length),
        )

    async def _fetch_report(self, sid: str) -> Json:
        found: Json = await self.client.get(f"/v1/calls/{sid}")
        return found


class CarrierListing(ServiceListing):
    """Calls that rang at our number. What is missing was never answered by us."""

    loses_words = True

    def __init__(self, client: ListingClient, number: str | None) -> None:
        super().__init__(client)
        self._number = number

    async def fetch(self, listed: ListedCall, agent_id: str) -> Call | None:
        call = listed.summary
        return PlatformReport(
            source=self.name,
            sid=listed.sid,
            is_inbound=True,
            customer=call.get("from"),
            agent_number=call.get("to"),
            started_at=listed.started_at,
            ended_at=listed.ended_at or listed.started_at,
            end_reason=f"unanswered {call.get('status') or ''}",
            turns=(),
            details={"ids": list(listed.ids)},
        ).to_call(agent_id)

    def _is_at_our_number(self, call: Json) -> bool:
        return self._number is None or call.get("to") == self._number


class TwilioListing(CarrierListing):
    """Twilio's calls, page by page."""

    name = "twilio"

    def __init__(self, client: ListingClient, number: str | None, account: str) -> None:
        super().__init__(client, number)
        self._first = f"/2010-04-01/Accounts/{account}/Calls.json"

    async def read_page(self, since: datetime, cursor: str) -> ListingPage:
        if cursor:
            answer = await self.client.get(cursor)
        else:
            query = {"StartTime>": format_instant(since), "PageSize": "1000"}
            answer = await self.client.get(self._first, query)
        found = [
            call
            for call in get_objects(answer, "calls")
            if call.get("direction") == "inbound"
            and not call.get("parent_call_sid")
            and self._is_at_our_number(call)
        ]
        return ListingPage(
            [self._read(call) for call in found], answer.get("next_page_uri") or None
        )

    def _read(self, call: Json) -> ListedCall:
        ended = call.get("end_time")
        return ListedCall(
            sid_of(call, "sid"),
            _parse_mail_date(call.get("start_time") or call.get("date_created")),
            call.get("status")
            in ("completed", "busy", "failed", "no-answer", "canceled"),
            call,
            _parse_mail_date(ended) if ended else None,
        )


def _parse_mail_date(text: object) -> datetime:
    try:
        return parsedate_to_datetime(str(text))
    except ValueError:
        raise RefusedInput("start_time", "is not a date") from None


class TelnyxListing(CarrierListing):
    """Telnyx lists events, of the last 24 hours; each call begins with one."""

    name = "telnyx"

    async def read_page(self, since: datetime, cursor: str) -> ListingPage:
        number = int(cursor or "1")
        oldest = max(since, self.client.clock.now() - TELNYX_MAX_AGE)
        query = {
            "filter[product]": "call_control",
            "filter[type]": "webhook",
            "filter[occurred_at][gte]": format_instant(oldest),
            "page[number]": str(number),
            "page[size]": str(TELNYX_PAGE_SIZE),
        }
        answer = await self.client.get("/v2/call_events", query)
        listed: dict[str, ListedCall] = {}
        for event in get_objects(answer, "data"):
            call = self._read(event) if event.get("name") == "call.initiated" else None
            if call is not None:
                listed.setdefault(call.sid, call)
        total = get_object(answer, "meta").get("total_pages", number)
        has_more = isinstance(total, int) and number < total
        return ListingPage(list(listed.values()), str(number + 1) if has_more else None)

    async def fetch(self, listed: ListedCall, agent_id: str) -> Call | None:
        """None while the events of the call name no end."""
        query = {"filter[leg_id]": listed.ids[0]}
        answer = await self.client.get("/v2/call_events", query)
        for event in get_objects(answer, "data"):
            if event.get("name") == "call.hangup":
                cause = _find_payload(event).get("hangup_cause")
                ended = ListedCall(
                    listed.sid,
                    listed.started_at,
                    True,
                    listed.summary | {"status": cause},
                    parse_time(event.get("event_timestamp"), "event_timestamp"),
                    listed.ids,
                )
                return await super().fetch(ended, agent_id)
        return None

    def _read(self, event: Json) -> ListedCall | None:
        payload = _find_payload(event)
        if payload.get("direction") != "incoming" or not self._is_at_our_number(
            payload
        ):
            return None
        return ListedCall(
            sid_of(payload, "call_control_id"),
            parse_time(event.get("event_timestamp"), "event_timestamp"),
            True,
            payload,
            ids=(sid_of(event, "call_leg_id"),),
        )


def _find_payload(event: Json) -> Json:
    """The payload of the webhook, wherever the metadata of the event holds it."""
    waiting: list[Any] = [event.get("metadata")]
    for _ in range(50):
        if not waiting:
            break
        found = waiting.pop(0)
        if isinstance(found, dict):
            if "call_control_id" in found:
                return found
            waiting += found.values()
    return {}


def make_listings(
    settings: Settings, clock: Clock, transport: httpx2.AsyncBaseTransport | None
) -> list[ServiceListing]:
    """Of the services with a key. Platforms first: a call of theirs may use our carrier."""
    platforms: dict[str, tuple[type[PlatformListing], Platform]] = {
        "elevenlabs": (
            ElevenLabsListing,
            ElevenLabs(None, settings.elevenlabs.agents),
        ),
        "vapi": (VapiListing, Vapi(None)),
        "retell": (RetellListing, Retell(None)),
        "bland": (BlandListing, Bland(None)),
    }

    def connect(name: str, headers: Headers) -> ListingClient:
        def explain(status: int, body: bytes) -> RestError | None:
            return RestError(f"{name} no longer has it") if status == 404 else None

        url = getattr(settings, name).api_url
        return ListingClient(name, url, headers, RETRY_RULE, explain, clock, transport)

    found: list[ServiceListing] = []
    for name, (listing, platform) in platforms.items():
        if headers := make_key_headers(name, getattr(settings, name).api_key):
            found.append(listing(connect(name, headers), platform))
    twilio = settings.twilio
    telnyx = settings.telnyx
    if twilio.account_sid and twilio.auth_token:
        login = basic_auth(twilio.account_sid, twilio.auth_token.get_secret_value())
        client = connect("twilio", {"Authorization": login})
        found.append(TwilioListing(client, twilio.phone_number, twilio.account_sid))
    if headers := make_key_headers("telnyx", telnyx.api_key):
        client = connect("telnyx", headers)
        found.append(TelnyxListing(client, telnyx.phone_number))
    return found
