"""The child process of a recogniser or synthesiser: requests on stdin, answers on stdout.

A request is its length in four bytes and its body. An answer is one byte (1: done), its length
and its body. The process ends with its input, so it never outlives its parent. Output of
libraries is dropped: it may hold what was spoken.
"""

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from aftercall.speech.kit import Espeak, find_espeak
from aftercall.speech.sound import MULAW_TO_LINEAR, SAMPLE_RATE_HZ

NICENESS = 5  # the process with the audio of live calls goes first

Work = Callable[[bytes], bytes]


def open_recogniser() -> Work:
    """Moonshine's smallest model of English, which is part of its wheel."""
    os.nice(NICENESS)
    numpy: Any = import_module("numpy")
    moonshine: Any = import_module("moonshine_voice.transcriber")
    model = import_module("moonshine_voice.utils").get_model_path("tiny-en")
    recogniser = moonshine.Transcriber(model, moonshine.ModelArch.TINY)
    scale = (
        numpy.frombuffer(MULAW_TO_LINEAR, dtype=numpy.int16).astype(numpy.float32)
        / 32_768
    )

    def hear(sound: bytes) -> bytes:
        samples = scale[numpy.frombuffer(sound, dtype=numpy.uint8)]
        lines = recogniser.transcribe_without_streaming(
            samples.tolist(), SAMPLE_RATE_HZ
        ).lines
        return " ".join(
            line.text.strip() for line in lines if line.text.strip()
        ).encode()

    return hear


def open_synthesiser(voice: str = "en-us") -> Work:
    command = find_espeak()
    if command is None:
        raise LookupError("espeak-ng is not installed")
    espeak = Espeak(command, voice, words_per_minute=160, pitch=45)
    return lambda text: espeak.speak(text.decode())


OPENERS: dict[str, Callable[..., Work]] = {
    "recogniser": open_recogniser,
    "synthesiser": open_synthesiser,
}


def serve(work: Work, requests: BinaryIO, answers: BinaryIO) -> None:
    _write_answer(answers, True, b"")
    while head := requests.read(4):
        body = requests.read(int.from_bytes(head))
        try:
            answer = work(body)
        except Exception as error:  # noqa: BLE001 - the edge of a process
            _write_answer(answers, False, type(error).__name__.encode())
        else:
            _write_answer(answers, True, answer)


def _write_answer(answers: BinaryIO, is_done: bool, body: bytes) -> None:
    answers.write(is_done.to_bytes() + len(body).to_bytes(4) + body)
    answers.flush()


def main() -> None:
    # Ctrl-C hits the group; the input ends us
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    kind, *options = sys.argv[1:]
    serve(OPENERS[kind](*options), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
