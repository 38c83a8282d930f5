"""What an ear or a mouth of ours does in its own process: a body in by standard input, its answer out, until the input ends.

A body is led by its length in four bytes; an answer by one byte, 1 for done, and its length. So the process ends with whoever
started it, however that ends. What libraries print goes nowhere: it may hold what was spoken.
"""

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from aftercall.speech.espeak import Espeak, find_espeak
from aftercall.speech.sound import LINEAR, RATE

POLITENESS = 5  # the process that moves the audio of live calls goes first

Work = Callable[[bytes], bytes]


def open_ear() -> Work:
    """Moonshine's smallest model of English, which its wheel brings."""
    os.nice(POLITENESS)
    numpy: Any = import_module("numpy")
    moonshine: Any = import_module("moonshine_voice.transcriber")
    model = import_module("moonshine_voice.utils").get_model_path("tiny-en")
    recogniser = moonshine.Transcriber(model, moonshine.ModelArch.TINY)
    scale = numpy.frombuffer(LINEAR, dtype=numpy.int16).astype(numpy.float32) / 32_768

    def hear(sound: bytes) -> bytes:
        samples = scale[numpy.frombuffer(sound, dtype=numpy.uint8)]
        lines = recogniser.transcribe_without_streaming(samples.tolist(), RATE).lines
        return " ".join(line.text.strip() for line in lines if line.text.strip()).encode()

    return hear


def open_mouth(voice: str = "en-us") -> Work:
    command = find_espeak()
    if command is None:
        raise LookupError("espeak-ng is not installed")
    espeak = Espeak(command, voice, words_per_minute=160, pitch=45)
    return lambda text: espeak.speak(text.decode())


ORGANS: dict[str, Callable[..., Work]] = {"ear": open_ear, "mouth": open_mouth}


def serve(work: Work, asked: BinaryIO, told: BinaryIO) -> None:
    _tell(told, True, b"")
    while head := asked.read(4):
        body = asked.read(int.from_bytes(head))
        try:
            answer = work(body)
        except Exception as error:  # noqa: BLE001 - the edge of a process: whoever asked is told, and the next one is served
            _tell(told, False, type(error).__name__.encode())
        else:
            _tell(told, True, answer)


def _tell(told: BinaryIO, is_done: bool, body: bytes) -> None:
    told.write(is_done.to_bytes() + len(body).to_bytes(4) + body)
    told.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the end of our input tells when to go
    told = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    organ, *options = sys.argv[1:]
    serve(ORGANS[organ](*options), sys.stdin.buffer, told)


if __name__ == "__main__":
    main()
