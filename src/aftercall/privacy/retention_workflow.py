"""The durable workflow of retention, once an hour however many processes there are.

Knows the durable engine, as postcall's does.
"""

import asyncio

from dbos import DBOS, SetWorkflowID

from aftercall.durable import register_queue, run_in_thread, step, workflow
from aftercall.errors import error_code
from aftercall.log import get_logger
from aftercall.privacy.retention import KINDS, Retention
from aftercall.settings.sections import RetentionKind

QUEUE = "aftercall.retention"
POLL_INTERVAL_S = 10.0
MAX_ATTEMPTS = 5

log = get_logger("retention")

# One at a time in a process, because the durable engine is one.
_retention: Retention | None = None


def retention() -> Retention:
    if _retention is None:
        raise RuntimeError("the retention has not been opened")
    return _retention


@workflow("aftercall.retention")
async def expire_all() -> None:
    for kind in KINDS:
        try:
            await expire_kind(kind)
        except Exception as error:  # noqa: BLE001 - the edge of a kind: one that fails holds up no other, and comes again in an hour
            log.warning("retention failed", kind=kind, error=error_code(error))


@step("aftercall.let_go", MAX_ATTEMPTS)
async def expire_kind(kind: RetentionKind) -> int:
    return len(await run_in_thread(retention().expire, kind))


def open_retention(at: Retention) -> None:
    """Call before the durable engine is launched."""
    global _retention
    _retention = at
    register_queue(QUEUE, 1, poll_s=POLL_INTERVAL_S)


def close_retention() -> None:
    """The durable engine has ended."""
    global _retention
    _retention = None


async def start_retention(at: Retention) -> bool:
    """Start this hour's run if there is anything to do; started by several processes it is one
    run.
    """
    found = await asyncio.to_thread(at.find_expired)
    if not any(found.values()):
        return False
    with SetWorkflowID(f"retention:{at.clock.now():%Y%m%dT%H}"):
        await DBOS.enqueue_workflow_async(QUEUE, expire_all)
    return True
