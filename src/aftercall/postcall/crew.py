"""The threads that take steps: so many at once, and the urgent steps of all calls before the
others of any.
"""

import heapq
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class Crew:
    def __init__(self, hands: int) -> None:
        self._pool = ThreadPoolExecutor(hands, thread_name_prefix="aftercall-step")
        self._due: list[tuple[int, int, Callable[[], Any], Future[Any]]] = []
        self._order = count()
        self._lock = Lock()
        self._holds = 0

    def submit(self, urgency: int, job: Callable[[], T]) -> Future[T]:
        """The lower the number the sooner; among equals who came first."""
        done: Future[T] = Future()
        with self._lock:
            heapq.heappush(self._due, (urgency, next(self._order), job, done))
        self._pool.submit(self._take_next)
        return done

    @contextmanager
    def only_urgent(self) -> Iterator[None]:
        """No other job is begun meanwhile; those under way come to their end."""
        with self._lock:
            self._holds += 1
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1
                passed_over = 0 if self._holds else len(self._due)
            for _ in range(passed_over):
                self._pool.submit(self._take_next)

    def close(self) -> None:
        """What has not been begun is not begun any more; what goes on comes to its end by
        itself.
        """
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            due, self._due = self._due, []
        for *_, done in due:
            done.cancel()

    def _take_next(self) -> None:
        with self._lock:
            if not self._due or (
                self._holds and self._due[0][0] > 0
            ):  # the crew has been sent home, or this can wait
                return
            _, _, job, done = heapq.heappop(self._due)
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(job())
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: it is raised where the result is awaited
            done.set_exception(error)
