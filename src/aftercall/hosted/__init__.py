"""Calls that a hosted platform runs: what the platforms send, and how their lists are read.

Notes on the four protocols, from the platforms' documentation and from the types of their SDKs
(elevenlabs 2.77, vapi-server-sdk 3.0, retell-sdk 6.2). Payloads in the tests and in the lab have
these forms.

Vapi
    One server URL gets everything as `{"message": {"type": …, "call": {…}, …}}`.
    An answer is expected to two types that we serve:
    - `assistant-request`, within 7.5 s, if a number has no assistant: `assistantId` and
      `assistantOverrides` (`variableValues`, `firstMessage`);
    - `tool-calls`: `results`, each with `toolCallId`, `name` and a `result` in one line. The
      arguments of a function are JSON text in the SDK's types and an object in the guides.
    `status-update` goes through queued, ringing, in-progress, forwarding, ended.
    `transcript` comes as `partial` and `final`; final pieces are no turns yet.
    `end-of-call-report` is sent once unless the server has a backoff plan. Its messages have the
    roles bot or assistant, user, system and those of tools; `time` is in milliseconds.
    A chat has no `call`.
    List: `GET /call`, whole calls, newest first, filtered by `createdAtGe` and `createdAtLe`, up
    to `limit`; there is no cursor.

Retell
    One URL for events, the same or another for inbound calls and for custom functions; all are
    signed with the API key over body and time.
    `call_inbound` comes before the call has an id and waits 10 s, three times, for
    `call_inbound.dynamic_variables`, whose values must be text.
    A custom function posts `name`, `args` and `call`. It has no id of its own.
    `call_started` and `transcript_updated` come during the call; unconnected calls skip them.
    `call_ended` has everything but the analysis, `call_analyzed` everything. Retries may make
    them overtake each other.
    Timestamps are in milliseconds; the times of words in seconds from the start.
    List: `POST /v3/list-calls` with `filter_criteria`, `limit` and `pagination_key`; its items
    have no words, `GET /v2/get-call` has them.

ElevenLabs
    Post-call webhooks of a whole workspace, signed; only `post_call_transcription` holds a call.
    Retries are off by default, and a status below 500 is not retried.
    The conversation initiation webhook is not signed and sends headers that the user sets. It
    has `caller_id`, `called_number`, `agent_id`, `call_sid`, and in newer traffic
    `conversation_id`. All variables of the agent must be in the answer.
    A server tool posts the fields that the user describes, with the same headers.
    Times are whole seconds. `message` is null in turns that only use a tool.
    List: `GET /v1/convai/conversations` with `page_size` and `cursor`; the whole conversation
    has the form of the webhook's `data`.

Bland
    One post after the call, signed if a secret was made, without a time: only the call's id
    reveals a repeat. Nothing is sent again by itself.
    Dynamic data and custom tools are requests that the user describes, with `{{call_id}}`,
    `{{from}}` and `{{to}}` in the body and any headers. These names are in Bland's guide to
    dynamic data, which waits 2 s unless `timeout` says otherwise; there is no SDK with types to
    check them by. A name that was not filled in stays as it is, braces and all.
    `call_length` is in minutes, all else in ISO 8601. Speakers are user, assistant, robot and
    agent-action.
    List: `GET /v1/calls` by number, `from` and `limit`, newest first; `GET /v1/calls/ID` has the
    words.

Carriers
    Twilio lists calls (`Calls.json`, dates as in mails, `next_page_uri`); legs that another call
    dialled have a `parent_call_sid`.
    Telnyx has no list of calls. `GET /v2/call_events` has the webhooks it sent in the last 24
    hours, the raw event somewhere in `metadata`; with a leg's id also older ones. Filters and
    fields are in the types of its SDK (telnyx 4); what `metadata` holds is in none of them, so the
    payload is looked for.
"""
