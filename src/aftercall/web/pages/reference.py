"""`/docs`: the API for people, drawn from its own machine-readable form; nothing is loaded from
elsewhere.
"""

from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import HTMLResponse

from aftercall.web.pages.context import PageContext


def make_router(context: PageContext, server: FastAPI) -> APIRouter:
    router = APIRouter(
        dependencies=[Depends(context.view.auth.require_access)], include_in_schema=False
    )

    @router.get("/docs", response_class=HTMLResponse)
    def get_docs(request: Request) -> HTMLResponse:
        return context.view.render_page(request, "docs.html", groups=_groups(server.openapi()))

    return router


def _groups(schema: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Operations by tag, in the order they are written down."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["other"])[0]
            shown = {
                "method": method.upper(),
                "path": path,
                "summary": operation.get("summary", ""),
                "description": operation.get("description", ""),
                "parameters": operation.get("parameters", []),
                "answers": {
                    code: answer["description"] for code, answer in operation["responses"].items()
                },
            }
            groups.setdefault(tag, []).append(shown)
    return groups
