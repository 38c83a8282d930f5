"""The pages. For now the front door: that the server runs, and where to go."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from aftercall import __version__

_FRONT_DOOR = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Aftercall</title>
<style>body {{ font: 1.05rem/1.6 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto; padding: 0 1rem }}
code {{ background: color-mix(in srgb, currentColor 10%, transparent); padding: .1em .35em; border-radius: .25em }}</style>
<h1>Aftercall</h1>
<p>The call ends; the work doesn't. This server (version {__version__}) is running.</p>
<ul>
<li><a href="/api/calls">The calls</a>, as JSON; one of them at <code>/api/calls/ID</code></li>
<li><a href="/docs">The API</a>, and <a href="/openapi.json">its machine-readable form</a></li>
<li>In the terminal: <code>aftercall talk</code>, <code>aftercall calls list</code>, <code>aftercall doctor</code></li>
</ul>
</html>
"""


def make_router() -> APIRouter:
    router = APIRouter(tags=["pages"])

    @router.get("/", response_class=HTMLResponse, summary="The front door")
    def get_front_door() -> str:
        return _FRONT_DOOR

    return router
