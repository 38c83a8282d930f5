"""People with access: invited by a link, each with a role, and every route says which it needs."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from fastapi.testclient import TestClient
from starlette.routing import Route
from starlette.websockets import WebSocketDisconnect

from aftercall.app import App
from aftercall.web.auth import MAX_LOGIN_FAILURES, RoleCheck
from aftercall.web.server import make_server
from aftercall.web.users import ROLES, Role, SessionStore, UserStore
from api_client import csrf_of, make_client, make_stranger
from fakes import VirtualClock, make_call
from followup_work import hold_requests

PASSWORD = "correct horse battery"
HASHED = PasswordHasher(1, 8, 1).hash(PASSWORD)
CALLER = "+15550142"
ADMIN_ONLY = {
    "GET /settings",
    "POST /settings",
    "POST /logout/everywhere",
    "POST /people/{caller}/export",
    "POST /people/{caller}/erase",
    "POST /users",
    "POST /users/{user_id}/link",
    "POST /users/{user_id}/remove",
    "POST /users/{user_id}/role",
}
OPERATOR_GETS = {
    "GET /phone",
    "GET /calls/{call_id}/missed",
    "GET /calls/{call_id}/recordings/{recording_id}",
    "GET /calls/{call_id}/recordings/{recording_id}/waveform",
    "GET /tests/{run_id}/calls/{call_id}/sound",
}
OPEN = ("/login", "/logout", "/join")


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """SQLite only: the statements are plain, and the walks are long."""
    return f"sqlite:///{tmp_path / 'home' / 'aftercall.db'}"


def log_in_as(app: App, role: Role, name: str = "") -> TestClient:
    """A browser of a user who has joined."""
    client = make_stranger(app)
    user = UserStore(app.database, app.clock).add(name or f"The {role}", role, "me")
    sessions = SessionStore(app.database, app.settings, app.clock)
    code = sessions.make_invitation(user.id)
    secret = sessions.use_invitation(code, HASHED)
    assert secret
    client.cookies.set("aftercall_session", secret)
    return client


def list_page_routes(routes: Iterable[Any]) -> Iterator[Any]:
    for route in routes:
        if isinstance(route, Route) and not route.include_in_schema:
            yield route


def find_role(route: Any) -> Role | None:
    """The highest role that a dependency of the route asks for."""
    order = list(ROLES)
    checks = [
        dependency.call
        for dependency in route.dependant.dependencies
        if isinstance(dependency.call, RoleCheck)
    ]
    return max((check.role for check in checks), key=order.index, default=None)


def find_needed(name: str) -> Role:
    if name in ADMIN_ONLY:
        return "admin"
    return (
        "viewer"
        if name.startswith("GET ") and name not in OPERATOR_GETS
        else "operator"
    )


@pytest.mark.parametrize("role", ROLES)
def test_every_route_lets_in_the_role_it_names_and_no_lower_one(
    app: App, role: Role
) -> None:
    client = log_in_as(app, role)
    token = csrf_of(client.get("/calls").text)
    order = list(ROLES)
    seen, wrong = 0, []
    for route in list_page_routes(make_server(app).routes):
        for method in sorted(set(route.methods) & {"GET", "POST"}):
            name = f"{method} {route.path}"
            if route.path.startswith(OPEN) and name not in ADMIN_ONLY:
                continue
            if not hasattr(route, "dependant") or route.path.endswith("/live"):
                continue  # the schema's own page, and streams without end
            needed = find_needed(name)
            seen += 1
            path = re.sub(r"\{[^}]*\}", "x", route.path)
            if name == "POST /logout/everywhere" and role == "admin":
                continue  # it would end this walk
            form = {"csrf": token} if method == "POST" else None
            status = client.request(method, path, data=form).status_code
            is_let_in = status not in (401, 403)
            is_enough = order.index(role) >= order.index(needed)
            if find_role(route) != needed or is_let_in != is_enough:
                wrong.append((name, needed, find_role(route), status))
    assert seen > 35
    assert wrong == []


def test_nothing_is_changed_by_a_get(app: App) -> None:
    """Whatever a browser fetches ahead, or a mail program looks at, changes nothing."""
    app.journal.ingest(make_call([("caller", "I live in Porto.")], caller=CALLER))
    client = make_client(app)
    before = dump(app)
    for route in list_page_routes(make_server(app).routes):
        if "GET" in route.methods and not route.path.endswith("/live"):
            client.get(re.sub(r"\{[^}]*\}", "x", route.path))
    assert dump(app) == before


def dump(app: App) -> dict[str, list[str]]:
    from aftercall.db.tables import metadata

    with app.database.read() as connection:
        return {
            table.name: sorted(map(str, connection.execute(table.select())))
            for table in metadata.sorted_tables
        }


def test_a_person_joins_by_a_link_and_logs_in_with_name_and_password(app: App) -> None:
    admin = make_client(app, follow_redirects=False)
    form = {
        "csrf": csrf_of(admin.get("/settings").text),
        "name": "Ann",
        "role": "viewer",
    }
    page = admin.post("/users", data=form).text
    found = re.search(r"/join\?code=([\w-]+)", page)
    assert found
    code = found[1]
    guest = make_stranger(app)
    for _ in range(2):  # looking at the link does not use it up
        assert "Welcome, Ann" in guest.get(f"/join?code={code}").text
    token = csrf_of(guest.get("/login").text)
    join = {"csrf": token, "code": code, "password": "short"}
    assert guest.post("/join", data=join).status_code == 422
    answer = guest.post("/join", data=join | {"password": PASSWORD})
    assert answer.headers["location"] == "/"
    assert "Ann" in guest.get("/calls").text
    again = make_stranger(app)
    assert again.get(f"/join?code={code}").status_code == 401
    assert name_login(again, "ann", "wrong password") == 401
    assert name_login(again, " ANN ", PASSWORD) == 303
    assert again.get("/calls").status_code == 200
    assert again.get("/settings").status_code == 403


def name_login(client: TestClient, name: str, secret: str) -> int:
    form = {"csrf": csrf_of(client.get("/login").text), "name": name, "secret": secret}
    return client.post("/login", data=form).status_code


def test_guesses_of_a_users_password_are_slowed(app: App) -> None:
    log_in_as(app, "viewer", "Ann")
    client = make_stranger(app, "198.51.100.7")
    for _ in range(MAX_LOGIN_FAILURES):
        assert name_login(client, "Ann", "guess") == 401
    assert name_login(client, "Ann", PASSWORD) == 429
    assert name_login(make_stranger(app, "198.51.100.8"), "nobody", "guess") == 401


def test_a_new_role_counts_at_once_and_a_removed_user_is_out(app: App) -> None:
    client, users = log_in_as(app, "viewer", "Ann"), UserStore(app.database, app.clock)
    (ann,) = users.list_all()
    assert client.get("/settings").status_code == 403
    users.change_role(ann.id, "admin", "me")
    assert client.get("/settings").status_code == 200
    users.remove(ann.id, "me")
    assert client.get("/calls").status_code == 303
    assert name_login(make_stranger(app), "Ann", PASSWORD) == 401


def test_an_invitation_ends_with_its_time_and_with_a_newer_one(
    app: App, clock: VirtualClock
) -> None:
    user = UserStore(app.database, clock).add("Ann", "viewer", "me")
    sessions = SessionStore(app.database, app.settings, clock)
    old, new = sessions.make_invitation(user.id), sessions.make_invitation(user.id)
    assert sessions.find_login(old, "invitation") is None
    assert sessions.find_login(new) is None  # it is no session
    clock.move(7 * 24 * 3600)
    assert sessions.use_invitation(new, "hash") is None


@pytest.mark.parametrize("name", ["", " ", "the owner", "The API", "x" * 61, "a\x07b"])
def test_no_user_has_a_name_that_is_not_a_persons(app: App, name: str) -> None:
    client = make_client(app)
    form = {
        "csrf": csrf_of(client.get("/settings").text),
        "name": name,
        "role": "viewer",
    }
    assert client.post("/users", data=form).status_code == 422


def test_two_users_do_not_share_a_name(app: App) -> None:
    log_in_as(app, "viewer", "Ann")
    client = make_client(app)
    form = {
        "csrf": csrf_of(client.get("/settings").text),
        "name": "ANN",
        "role": "admin",
    }
    assert client.post("/users", data=form).status_code == 422


def test_the_audit_log_names_the_person(app: App) -> None:
    app.journal.ingest(make_call([("caller", "Hello.")], caller=CALLER))
    ann = log_in_as(app, "operator", "Ann")
    token = csrf_of(ann.get("/people").text)
    form = {"csrf": token, "what": "name", "of": CALLER, "new": "Bill Harker"}
    assert ann.post("/corrections", data=form).status_code == 303
    assert [line.deed for line in app.audit.list_recent(who="Ann")] == [
        "corrected",
        "joined",
    ]
    page = make_client(app).get("/settings", params={"who": "Ann"}).text
    assert "<b>corrected</b> Ann" in page
    assert "<b>invited</b>" not in page


def test_a_viewer_sees_no_button_that_they_may_not_press(app: App) -> None:
    (row,) = hold_requests(app, "plumber", caller=CALLER)
    viewer, operator = log_in_as(app, "viewer"), log_in_as(app, "operator")
    called = f"/calls/{row.call_id}"
    for path, deed in (
        ("/", "/followups/decide"),
        (f"{called}/missed", f"{called}/requests"),
        (f"{called}/missed", f"{called}/facts"),
    ):
        assert f'method="post" action="{deed}"' in operator.get(path).text
    for path in ("/", called, "/followups", f"/people/{CALLER}", "/memory", "/search"):
        page = viewer.get(path).text
        posts = re.findall(r'<form[^>]*method="post"[^>]*action="([^"]+)"', page)
        assert posts == ["/logout"], path
    assert 'href="/settings"' not in viewer.get("/people").text
    assert row.call_id in viewer.get("/calls").text


def test_the_call_socket_needs_an_operator(app: App) -> None:
    viewer = log_in_as(app, "viewer")
    with (
        pytest.raises(WebSocketDisconnect),
        viewer.websocket_connect("/browser/call"),
    ):
        pass
