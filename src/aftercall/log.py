"""Structured logs to standard error.

Speech, prompts, tool arguments and digits never go into a log call. Libraries do not know that:
of their records we keep the fixed part of the message and the class and place of an error.
structlog is loaded by the first line: most commands write none.
"""

import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger

REFUSAL_WINDOW_S = 60.0
MAX_REFUSALS = 100  # lines of one kind in a window
_REFUSALS = (
    "request refused",
    "webhook refused",
    "media socket refused",
    "client went away",
)
_ID_FIELDS = ("call", "conversation", "subject")
_OWN_WORDS = re.compile(
    r"[0-7][0-9A-HJKMNP-TV-Z]{25}|.* .*"
)  # an id of `ids.py`, a phrase


def configure_logs(*, level: str = "info", as_json: bool = False) -> None:
    _options.update(level=level, as_json=as_json)
    capture_library_logs(logging.getLogger())


_options: dict[str, Any] = {}
"""What the next line configures structlog with; empty once that is done."""


def _configure_structlog(*, level: str, as_json: bool) -> None:
    import structlog

    renderer = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            RefusalLimit(),
            hash_foreign_ids,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        # looked up at each line: tests replace it
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


class RefusalLimit:
    """Leaves out refusals that repeat: strangers must not fill the disk with them."""

    def __init__(self, get_time: Callable[[], float] = time.monotonic) -> None:
        self._get_time = get_time
        self._began = get_time()
        self._counts: Counter[str] = Counter()

    def __call__(
        self, _logger: object, _method: str, event: "EventDict"
    ) -> "EventDict":
        name = str(event["event"])
        if name not in _REFUSALS:
            return event
        if self._get_time() - self._began >= REFUSAL_WINDOW_S:
            left_out = sum(max(0, n - MAX_REFUSALS) for n in self._counts.values())
            self._began, self._counts = self._get_time(), Counter()
            if left_out:
                event["left_out_before"] = left_out
        self._counts[name] += 1
        if self._counts[name] > MAX_REFUSALS:
            import structlog

            raise structlog.DropEvent
        return event


def hash_foreign_ids(_logger: object, _method: str, event: "EventDict") -> "EventDict":
    """Ids that others chose may hold a name or a number; their hash tells lines apart."""
    for field in _ID_FIELDS:
        value = event.get(field)
        if isinstance(value, str) and not _OWN_WORDS.fullmatch(value):
            event[field] = f"sha256:{sha256(value.encode()).hexdigest()[:16]}"
    return event


def capture_library_logs(logger: logging.Logger) -> None:
    """Makes this logger write through ours, and through nothing else that prints."""
    for handler in logger.handlers[:]:
        if type(handler) is logging.StreamHandler or isinstance(handler, _LibraryLog):
            logger.removeHandler(handler)
    logger.addHandler(_LibraryLog(logging.WARNING))


class _LibraryLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """A library's message may hold what was said: only fixed texts are written."""
        is_fixed = record.args or record.name.startswith("uvicorn")
        event = str(record.msg).strip() if is_fixed else "a library reports"
        about = {"logger": record.name, "at": f"{record.filename}:{record.lineno}"}
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            about |= {"error": type(error).__name__, "place": get_place(error)}
        is_error = record.levelno >= logging.ERROR
        write = (
            get_logger("library").error if is_error else get_logger("library").warning
        )
        write(event, **about)


def get_place(error: BaseException) -> str:
    """File and line where an error was raised."""
    last = extract_tb(error.__traceback__)[-1:]
    return f"{Path(last[0].filename).name}:{last[0].lineno}" if last else ""


def get_logger(part: str) -> "FilteringBoundLogger":
    return cast("FilteringBoundLogger", _LazyLogger(part))


class _LazyLogger:
    """A logger of structlog, made for each line."""

    def __init__(self, part: str) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        import structlog

        if _options:
            _configure_structlog(**_options)
            _options.clear()
        return getattr(structlog.get_logger(part=self._part), name)
