"""Bodies of requests as they came, and no more of them than they may hold."""

from fastapi import Request

from aftercall.errors import RefusedInput


async def read_body(request: Request, limit: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise RefusedInput("body", f"is longer than {limit:,} bytes")
    return bytes(body)
