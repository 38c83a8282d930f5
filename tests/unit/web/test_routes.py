"""Routes that are built when they are first used."""

from pathlib import Path
from typing import Annotated

import pytest
from fastapi import APIRouter, FastAPI, Query
from fastapi.exceptions import FastAPIError
from fastapi.testclient import TestClient

from aftercall.settings import Settings
from aftercall.web.routes import ApiRoute, LazyRoute, add_section
from aftercall.web.server import make_server
from opened_apps import OpenApp


def make_router(route_class: type[LazyRoute] = LazyRoute) -> APIRouter:
    return APIRouter(route_class=route_class)


def serve(router: APIRouter) -> TestClient:
    server = FastAPI()
    server.router.routes += router.routes
    return TestClient(server)


def test_a_route_is_built_by_its_first_request() -> None:
    router = make_router()

    @router.get("/double/{number}")
    def get_double(number: int, plus: Annotated[int, Query()] = 0) -> int:
        return number * 2 + plus

    (route,) = router.routes
    client = serve(router)
    assert client.get("/elsewhere").status_code == 404
    assert client.post("/double/4").status_code == 405
    assert "dependant" not in vars(route)
    assert client.get("/double/4?plus=1").json() == 9
    assert client.get("/double/four").status_code == 422
    assert "dependant" in vars(route)


def test_a_route_has_its_address_before_it_is_built() -> None:
    router = make_router()

    @router.get("/calls/{call_id}", name="call")
    def get_call(call_id: str) -> str:
        return call_id

    (route,) = router.routes
    assert router.url_path_for("call", call_id="1") == "/calls/1"
    assert "dependant" not in vars(route)


def test_the_schema_holds_routes_that_nobody_asked_for() -> None:
    section = add_section(make_router(), "/people", route_class=ApiRoute)

    @section.get("/{name}")
    def get_person(name: str) -> dict[str, str]:
        """One person,
        by name.
        """
        return {"name": name}

    schema = serve(section).get("/openapi.json").json()
    (operation,) = schema["paths"]["/people/{name}"].values()
    assert operation["summary"] == "One person, by name"
    assert "description" not in operation


def test_what_a_route_does_not_have_is_an_error_not_a_loop() -> None:
    router = make_router()

    @router.get("/")
    def get_nothing() -> None: ...

    with pytest.raises(AttributeError, match="LazyRoute has no attribute weight"):
        _ = router.routes[0].weight  # type: ignore[attr-defined]


class Thing:
    """No type that a parameter can have."""


def test_a_signature_that_cannot_be_used_is_refused_when_it_is_built() -> None:
    router = make_router()

    @router.get("/")
    def get_thing(thing: Thing) -> None: ...

    (route,) = router.routes
    assert isinstance(route, LazyRoute)
    with pytest.raises(FastAPIError, match="Thing"):
        _ = route.dependant


def test_every_route_of_the_server_can_be_built(
    tmp_path: Path, open_app: OpenApp
) -> None:
    server = make_server(open_app(Settings(home=tmp_path / "home")))
    lazy = [route for route in server.routes if isinstance(route, LazyRoute)]
    assert len(lazy) > 100
    assert all(route.dependant.call is route.endpoint for route in lazy)
