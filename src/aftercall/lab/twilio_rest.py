"""The emulated Twilio's REST routes: the account and its numbers, calls, recordings, messages.

Refusals have Twilio's codes and form.
"""

import hmac
import secrets
from base64 import b64encode
from email.utils import format_datetime
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from aftercall.clock import format_instant
from aftercall.lab.carrier import refuse_by_fault
from aftercall.lab.exchange import LabDial, PhoneNetwork
from aftercall.lab.leg import Leg
from aftercall.lab.rest import Refusal
from aftercall.lab.twiml import Form, TwimlFault, parse_twiml
from aftercall.model.json_fields import Json
from aftercall.phone.twilio import Fields, read_form

ACCOUNT = "/2010-04-01/Accounts/{account}"


def make_router(exchange: PhoneNetwork) -> APIRouter:
    router = APIRouter(tags=["twilio"], prefix=ACCOUNT)

    _add_account_routes(router, exchange)

    @router.post("/Calls.json")
    async def create_call(account: str, request: Request) -> Response:
        form = await _read(request, account, exchange)
        return JSONResponse(_describe(exchange, exchange.dial(_read_dial(form))), 201)

    @router.get("/Calls.json")
    async def list_calls(account: str, request: Request) -> Response:
        await _read(request, account, exchange)
        refuse_by_fault(exchange)
        return JSONResponse(_list_calls(exchange, request))

    @router.get("/Calls/{sid}.json")
    async def get_call(account: str, sid: str, request: Request) -> Response:
        await _read(request, account, exchange)
        return JSONResponse(_describe(exchange, _find(exchange, sid)))

    @router.post("/Calls/{sid}.json")
    async def update_call(account: str, sid: str, request: Request) -> Response:
        form = dict(await _read(request, account, exchange))
        call = _find(exchange, sid)
        if call.is_over:
            raise _not_found(request.url.path)
        _update(call, form)
        return JSONResponse(_describe(exchange, call))

    @router.post("/Calls/{sid}/Recordings.json")
    async def record_call(account: str, sid: str, request: Request) -> Response:
        form = dict(await _read(request, account, exchange))
        leg = exchange.legs.get(sid)
        if leg is None or leg.is_over:
            raise _not_found(request.url.path)
        if leg.state != "in-progress":
            raise _refuse(
                400, 21220, "Requested resource is not eligible for recording"
            )
        recording = {
            "sid": leg.start_recording(form.get("RecordingStatusCallback")),
            "call_sid": sid,
            "account_sid": account,
            "status": "in-progress",
            "channels": 2,
        }
        return JSONResponse(recording, 201)

    @router.post("/Messages.json")
    async def create_message(account: str, request: Request) -> Response:
        form = dict(await _read(request, account, exchange))
        return JSONResponse(_store_message(exchange, form), 201)

    @router.get("/Recordings/{name}")
    async def get_recording(account: str, name: str, request: Request) -> Response:
        await _read(request, account, exchange)
        return exchange.recordings.serve(name.partition(".")[0], request)

    return router


def _add_account_routes(router: APIRouter, exchange: PhoneNetwork) -> None:
    @router.get(".json")
    async def get_account(account: str, request: Request) -> Response:
        await _read(request, account, exchange)
        return JSONResponse({"sid": account, "status": "active", "type": "Full"})

    @router.get("/IncomingPhoneNumbers.json")
    async def list_numbers(account: str, request: Request) -> Response:
        await _read(request, account, exchange)
        numbers = [
            {"phone_number": number, "voice_url": plan.voice_url}
            for number, plan in exchange.numbers.items()
        ]
        return JSONResponse({"incoming_phone_numbers": numbers, "page": 0})


async def _read(request: Request, account: str, exchange: PhoneNetwork) -> Fields:
    """The form of a request that has the account's key."""
    login = f"{exchange.account_sid}:{exchange.auth_token}"
    expected = "Basic " + b64encode(login.encode()).decode()
    given = request.headers.get("authorization", "")
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise _refuse(401, 20003, "Authenticate")
    if account != exchange.account_sid:
        raise _not_found(request.url.path)
    return read_form(await request.body()) if request.method == "POST" else ()


def _refuse(status: int, code: int, message: str) -> Refusal:
    url = f"https://www.twilio.com/docs/errors/{code}"
    body = {"code": code, "message": message, "more_info": url, "status": status}
    return Refusal(JSONResponse(body, status))


def _not_found(path: str) -> Refusal:
    return _refuse(404, 20404, f"The requested resource {path} was not found")


def _read_dial(form: Fields) -> LabDial:
    fields = dict(form)
    to = fields.get("To")
    if not to:
        raise _refuse(400, 21201, "No 'To' number is specified")
    if not fields.get("From"):
        raise _refuse(400, 21213, "'From' phone number is required")
    if not to.startswith(("+", "sip:", "client:")):
        reason = f"The phone number you are attempting to call, {to}, is not valid."
        raise _refuse(400, 21211, reason)
    url = fields.get("Url") or fields.get("Twiml") or ""
    if not url:
        raise _refuse(400, 21205, "Url parameter is required")
    events = frozenset(value for name, value in form if name == "StatusCallbackEvent")
    return LabDial(
        to=to,
        caller=fields["From"],
        url=url,
        status_url=fields.get("StatusCallback", ""),
        events=events or frozenset({"completed"}),
        timeout_s=_number(fields, "Timeout", 60.0),
        limit_s=_number(fields, "TimeLimit", 14_400.0),
        is_recorded=fields.get("Record", "false").lower() == "true",
        recording_url=fields.get("RecordingStatusCallback", ""),
        detects_machines=bool(fields.get("MachineDetection")),
    )


def _number(fields: Form, name: str, default: float) -> float:
    try:
        return float(fields.get(name, default))
    except ValueError:
        raise _refuse(400, 20001, f"Invalid {name}") from None


def _find(exchange: PhoneNetwork, sid: str) -> Leg:
    if sid not in exchange.legs:
        raise _not_found(f"/Calls/{sid}.json")
    return exchange.legs[sid]


def _update(leg: Leg, form: Form) -> None:
    if form.get("Status") in ("completed", "canceled"):
        leg.end.hang_up()
    elif form.get("Twiml"):
        try:
            leg.redirect(parse_twiml(form["Twiml"]))
        except TwimlFault as fault:
            raise _refuse(400, fault.code, str(fault)) from None
    else:
        raise _refuse(400, 20001, "Status or Twiml is needed")


def _list_calls(exchange: PhoneNetwork, request: Request) -> Json:
    """Newest first. The next page's address has the same filters."""
    query = dict(request.query_params)
    size = int(query.get("PageSize", "50"))
    page = int(query.get("Page", "0"))
    since = query.get("StartTime>", "")
    legs = sorted(
        (
            leg
            for leg in exchange.legs.values()
            if format_instant(leg.created_at) >= since
        ),
        key=lambda leg: leg.created_at,
        reverse=True,
    )
    following = None
    if (page + 1) * size < len(legs):
        again = query | {"Page": str(page + 1), "PageToken": f"PA{legs[0].sid}"}
        following = f"{request.url.path}?{urlencode(again)}"
    shown = legs[page * size : (page + 1) * size]
    return {
        "calls": [_describe(exchange, leg) for leg in shown],
        "page": page,
        "page_size": size,
        "next_page_uri": following,
        "uri": str(request.url.path),
    }


def _describe(exchange: PhoneNetwork, leg: Leg) -> Json:
    uri = f"{ACCOUNT.format(account=exchange.account_sid)}/Calls/{leg.sid}"
    return {
        "sid": leg.sid,
        "account_sid": exchange.account_sid,
        "api_version": "2010-04-01",
        "from": leg.caller,
        "to": leg.callee,
        "direction": leg.direction,
        "status": leg.state,
        "answered_by": leg.answered_by,
        "parent_call_sid": None,
        "date_created": format_datetime(leg.created_at),
        "start_time": format_datetime(leg.created_at),
        "end_time": format_datetime(leg.ended_at) if leg.ended_at else None,
        "uri": f"{uri}.json",
        "subresource_uris": {"recordings": f"{uri}/Recordings.json"},
    }


def _store_message(exchange: PhoneNetwork, form: Form) -> Json:
    if not form.get("To"):
        raise _refuse(400, 21604, "A 'To' phone number is required.")
    if not form.get("From") and not form.get("MessagingServiceSid"):
        raise _refuse(400, 21603, "A 'From' phone number is required.")
    if not form.get("Body"):
        raise _refuse(400, 21602, "Message body is required.")
    sid = "SM" + secrets.token_hex(16)
    message = {
        "sid": sid,
        "from": form.get("From", ""),
        "to": form["To"],
        "body": form["Body"],
    }
    exchange.messages.append(message)
    return message | {
        "status": "queued",
        "direction": "outbound-api",
        "num_segments": "1",
        "num_media": "0",
        "error_code": None,
        "account_sid": exchange.account_sid,
        "uri": f"{ACCOUNT.format(account=exchange.account_sid)}/Messages/{sid}.json",
    }
