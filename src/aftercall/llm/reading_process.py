"""A process of its own for the reading of long calls.

Patterns hold the interpreter while they match, so a long reading in a thread takes time from the
audio of live calls. The process starts when it is first needed and ends with the app.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from threading import Lock, Thread

from aftercall.log import get_logger
from aftercall.model.calls import Call
from aftercall.model.reading import Reading

MIN_LONG_CALL_CHARS = 20_000
NICENESS = 5  # the process with the audio of live calls goes first

log = get_logger("reading")


class ReadingProcess:
    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._lock = Lock()
        self._one_at_a_time = (
            Lock()
        )  # readings side by side would only slow the audio down

    def read(self, job: Callable[[Call], Reading], call: Call) -> Reading:
        """Reads a long call in the process, a short one in this thread.

        A call whose process dies is read in this thread; the next one gets a new process.
        """
        if sum(len(turn.text) for turn in call.turns) >= MIN_LONG_CALL_CHARS:
            try:
                return self._submit(job, call).result()
            except BrokenProcessPool:
                log.warning("the process that reads long calls has died")
                self.close()
        with self._one_at_a_time:
            return job(call)

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _submit(self, job: Callable[[Call], Reading], call: Call) -> Future[Reading]:
        with self._lock:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    max_workers=1,
                    # a fork would copy the locks of our threads
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=_prepare_process,
                )
            return self._pool.submit(job, call)


def _prepare_process() -> None:
    os.nice(NICENESS)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C hits the group; the app ends us
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """An executor's process would wait for ever for work from a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
