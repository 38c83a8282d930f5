"""The durable workflow of retention: one run an hour over all processes."""

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

# One for each process, as the durable engine is.
_retention: Retention | None = None


def opened_retention() -> Retention:
    if _retention is None:
        raise RuntimeError("retention has not been opened")
    return _retention


@workflow("aftercall.retention")
async def expire_all() -> None:
    for kind in KINDS:
        try:
            await expire_kind(kind)
        except Exception as error:  # noqa: BLE001 - the edge of a kind: the others still run
            log.warning("retention failed", kind=kind, error=error_code(error))


@step("aftercall.expire_kind", MAX_ATTEMPTS)
async def expire_kind(kind: RetentionKind) -> int:
    return len(await run_in_thread(opened_retention().expire, kind))


def open_retention(retention: Retention) -> None:
    """Call this before the durable engine starts."""
    global _retention
    _retention = retention
    register_queue(QUEUE, 1, poll_s=POLL_INTERVAL_S)


def close_retention() -> None:
    """Call this after the durable engine has stopped."""
    global _retention
    _retention = None


async def start_retention(retention: Retention) -> bool:
    """Start this hour's run if something has expired; several processes start the same run."""
    found = await run_in_thread(retention.find_expired)
    if not any(found.values()):
        return False
    with SetWorkflowID(f"retention:{retention.clock.now():%Y%m%dT%H}"):
        await DBOS.enqueue_workflow_async(QUEUE, expire_all)
    return True
