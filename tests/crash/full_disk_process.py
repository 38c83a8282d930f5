"""A process whose files may not grow for a while: the system itself refuses, as a full disk
does.
"""

import asyncio
import os
import resource
from multiprocessing.connection import Connection
from pathlib import Path

from aftercall.app import App, build
from aftercall.bridge.turn_call import TurnCall
from aftercall.journal.journal import recover
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from fakes import make_live_call
from waiting import until


def talk(home: str, database_url: str, pipe: Connection) -> None:
    """One call goes on and one ends while nothing can be written; tells their ids once both are
    sealed.
    """
    quiet = os.open(os.devnull, os.O_WRONLY)  # a log in a file could not grow either
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    app = build(Settings(home=Path(home), database=DatabaseSettings(url=database_url)))
    asyncio.run(_talk(app, pipe))


async def _talk(app: App, pipe: Connection) -> None:
    ends, goes_on = (
        TurnCall(app.phone.turn_parts, make_live_call(sid=sid)) for sid in ("S1", "S2")
    )
    await ends.start()
    await goes_on.start()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    await ends.answer("One.")
    await goes_on.answer("Two.")
    await ends.end("caller_hung_up")
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    await asyncio.to_thread(recover, app.journal)  # as a server does every minute
    await until(lambda: app.store.get(ends.call.id).state == "sealed")
    await goes_on.answer("Three.")
    await goes_on.end("caller_hung_up")
    await until(lambda: app.store.get(goes_on.call.id).state == "sealed")
    pipe.send((ends.call.id, goes_on.call.id))
    await app.journal.close()
    app.close()
