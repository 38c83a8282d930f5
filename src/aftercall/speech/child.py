"""What an ear or a mouth of ours does in its own process: a body in by standard input, its
answer out, until the input ends.

A body is led by its length in four bytes; an answer by one byte, 1 for done, and its length. So
the process ends with whoever started it, however that ends. What libraries print goes nowhere:
it may hold what was spoken.
"""

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from aftercall.speech.process import Espeak, find_espeak
from aftercall.speech.sound import MULAW_TO_LINEAR, SAMPLE_RATE_HZ

NICENESS = 5  # the process that moves the audio of live calls goes first

Work = Callable[[bytes], bytes]


def open_recogniser() -> Work:
    """Moonshine's smallest model of English, which its wheel brings."""
    os.nice(NICENESS)
    numpy: Any = import_module("numpy")
    moonshine: Any = import_module("moonshine_voice.transcriber")
    model = import_module("moonshine_voice.utils").get_model_path("tiny-en")
    recogniser = moonshine.Transcriber(model, moonshine.ModelArch.TINY)
    scale = numpy.frombuffer(MULAW_TO_LINEAR, dtype=numpy.int16).astype(numpy.float32) / 32_768

    def hear(sound: bytes) -> bytes:
        samples = scale[numpy.frombuffer(sound, dtype=numpy.uint8)]
        lines = recogniser.transcribe_without_streaming(samples.tolist(), SAMPLE_RATE_HZ).lines
        return " ".join(line.text.strip() for line in lines if line.text.strip()).encode()

    return hear


def open_synthesiser(voice: str = "en-us") -> Work:
    command = find_espeak()
    if command is None:
        raise LookupError("espeak-ng is not installed")
    espeak = Espeak(command, voice, words_per_minute=160, pitch=45)
    return lambda text: espeak.speak(text.decode())


OPENERS: dict[str, Callable[..., Work]] = {"ear": open_recogniser, "mouth": open_synthesiser}


def serve(work: Work, requests: BinaryIO, answers: BinaryIO) -> None:
    _write_answer(answers, True, b"")
    while head := requests.read(4):
        body = requests.read(int.from_bytes(head))
        try:
            answer = work(body)
        except Exception as error:  # noqa: BLE001 - the edge of a process: whoever asked is told, and the next one is served
            _write_answer(answers, False, type(error).__name__.encode())
        else:
            _write_answer(answers, True, answer)


def _write_answer(answers: BinaryIO, is_done: bool, body: bytes) -> None:
    answers.write(is_done.to_bytes() + len(body).to_bytes(4) + body)
    answers.flush()


def main() -> None:
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C goes to the whole group; the end of our input tells when to go
    told = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    organ, *options = sys.argv[1:]
    serve(OPENERS[organ](*options), sys.stdin.buffer, told)


if __name__ == "__main__":
    main()
