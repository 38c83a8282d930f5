"""A bucket of an S3-compatible object store: objects are created once, read, listed, removed.

Creating is a conditional write (`If-None-Match: *`), so that the store itself refuses to overwrite.
A versioned bucket keeps what was deleted: we remove every version of an erased file, with requests
that we sign ourselves because obstore has none for versions.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import BinaryIO, cast
from urllib.parse import quote
from xml.etree import ElementTree

import httpx2
import obstore
from obstore import exceptions
from obstore.store import S3Store

from aftercall.encryption import FileCipher
from aftercall.errors import (
    ArchiveError,
    ConfigError,
    FileUnreadable,
    NotFound,
    ObjectStoreUnreachable,
)
from aftercall.faults import fault_point
from aftercall.journal.archive import KEY_CHECK_FILE
from aftercall.log import get_logger
from aftercall.rest import describe_network_error
from aftercall.settings.providers import ArchiveSettings

log = get_logger("archive")

MAX_TRANSFERS = 8  # at once; each holds one file in memory
TIMEOUT_S = 20
MAX_RETRIES = 2
RETRY_TIMEOUT = timedelta(seconds=15)  # a job that fails is repeated anyway
LIST_PAGE = 1_000
HASH_PIECE_BYTES = 1 << 20
OWNER_FILE = "owner"  # the id of the database whose calls these are
CONDITION_CHECK = "conditional-write.check"
EMPTY_HASH = sha256(b"").hexdigest()
_FORBIDDEN = 403


class Bucket:
    """The objects under one prefix of a bucket. A key is relative to that prefix.

    A tag is the store's own mark of what an object holds (ETag): the same tag, the same bytes.
    Calls may come from any thread. obstore sends requests outside the GIL and retries them for a
    few seconds; then ObjectStoreUnreachable says that the store is away.
    """

    def __init__(self, settings: ArchiveSettings) -> None:
        self.url = settings.url.rstrip("/")
        self.locked_keys: set[str] = set()
        self._settings = settings
        self._name, _, self._prefix = self.url.removeprefix("s3://").partition("/")
        config = {"region": settings.region, "checksum_algorithm": "sha256"}
        if settings.endpoint:
            config["endpoint"] = settings.endpoint.rstrip("/")
        if settings.access_key_id:
            config["access_key_id"] = settings.access_key_id
        for key in ("secret_access_key", "session_token"):
            if secret := getattr(settings, key):
                config[key] = secret.get_secret_value()
        self._store = S3Store(
            self._name,
            prefix=self._prefix or None,
            config=config,  # type: ignore[arg-type]
            client_options={"allow_http": True, "timeout": f"{TIMEOUT_S}s"},
            retry_config={"max_retries": MAX_RETRIES, "retry_timeout": RETRY_TIMEOUT},
        )

    @property
    def removes_versions(self) -> bool:
        """Whether we have a key to sign with; a machine's role is known to obstore alone."""
        return self._settings.secret_access_key is not None

    def create(self, key: str, data: bytes) -> str | None:
        """Creates an object, whole; returns its tag, or None if the key is taken.

        The store decides, so that of two processes one wins. Never in parts: a store that takes
        an object in parts may not check the condition at the end.
        """
        with _store_errors(f"the bucket {self._name}"):
            try:
                made = obstore.put(
                    self._store, key, data, mode="create", use_multipart=False
                )
            except exceptions.AlreadyExistsError:
                return None
        return str(made["e_tag"])

    def create_same(self, key: str, data: bytes) -> str:
        """Creates an object, or finds the same one there; returns its tag. Raises ArchiveError.

        The same one is there if a process died between the upload and its note of it, or if two
        processes uploaded a file at once.
        """
        tag = self.create(key, data)
        if tag is None:
            if self.read(key) != data:
                raise ArchiveError(
                    f"{self.url}/{key} holds something else; nothing was overwritten"
                )
            with _store_errors(f"{self.url}/{key}"):
                tag = str(obstore.head(self._store, key)["e_tag"])
        return tag

    def create_all(
        self, keys: Sequence[str], load: Callable[[str], bytes | None]
    ) -> Iterator[tuple[str, str]]:
        """Creates objects, a few at once; yields the key and the tag of each.

        Leaves out keys for which nothing is loaded, and those that hold something else.
        """

        def create(key: str) -> str | None:
            data = load(key)
            if data is None:
                return None
            try:
                tag = self.create_same(key, data)
            except ArchiveError as error:
                if error.retryable:
                    raise
                log.warning("an object cannot be created", error=error.code)
                return None
            fault_point("upload.after_object")
            return tag

        pool = ThreadPoolExecutor(MAX_TRANSFERS, "upload")
        try:
            for key, tag in zip(keys, pool.map(create, keys), strict=True):
                if tag is not None:
                    yield key, tag
        finally:
            pool.shutdown(cancel_futures=True)

    def hash_all(self, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Fetches objects, a few at once; yields the key and the hash of each that is there.

        One that is gone was erased after it had been listed.
        """

        def fetch(key: str) -> tuple[str, str] | None:
            with suppress(NotFound):
                return key, sha256(self.read(key)).hexdigest()
            return None

        with ThreadPoolExecutor(MAX_TRANSFERS, "verify") as pool:
            yield from filter(None, pool.map(fetch, keys))

    def hash_object(self, key: str) -> str | None:
        """Of one object, fetched in pieces: it may be large. None if it is not there."""
        digest = sha256()
        with suppress(NotFound), closing(self.open_object(key)) as file:
            while piece := file.read(HASH_PIECE_BYTES):
                digest.update(piece)
            return digest.hexdigest()
        return None

    def replace(self, key: str, data: bytes) -> None:
        with _store_errors(f"the bucket {self._name}"):
            obstore.put(self._store, key, data, use_multipart=False)

    def read(self, key: str) -> bytes:
        """Raises NotFound."""
        with _store_errors(f"{self.url}/{key}"):
            return bytes(obstore.get(self._store, key).bytes())

    def has(self, key: str) -> bool:
        try:
            with _store_errors(f"{self.url}/{key}"):
                obstore.head(self._store, key)
        except NotFound:
            return False
        return True

    def open_object(self, key: str) -> BinaryIO:
        """An object as a file that is fetched while it is read. Raises NotFound."""
        with _store_errors(f"{self.url}/{key}"):
            return cast(BinaryIO, _ObjectFile(obstore.open_reader(self._store, key)))

    def list_tags(self, folder: str, after: str | None = None) -> dict[str, str]:
        """Keys and tags of the objects in a folder; only those behind `after` if it is given."""
        found: dict[str, str] = {}
        with _store_errors(f"the bucket {self._name}"):
            for page in obstore.list(
                self._store, folder, offset=after, chunk_size=LIST_PAGE
            ):
                found |= {item["path"]: str(item["e_tag"]) for item in page}
        return found

    def remove(self, key: str) -> None:
        """Removes an object with all its versions; notes it if an object lock keeps one.

        In a versioned bucket a plain deletion only hides an object, and its words stay.
        """
        kept: list[str] = []
        if self.removes_versions:
            versions, markers = self._list_versions(key)
            kept = [one for one in versions if not self._remove_version(key, one)]
            for marker in () if kept else markers:
                self._remove_version(key, marker)
        if kept or not self.removes_versions:
            with _store_errors(f"{self.url}/{key}"):
                obstore.delete(self._store, key)  # hides what is kept
        if kept:
            self.locked_keys.add(key)

    def check_access(self) -> None:
        """One request that lists next to nothing: the bucket exists and the key may read it."""
        self.list_tags("", after="~")

    def prepare(
        self, cipher: FileCipher, database_id: str, *, takes_over: bool
    ) -> None:
        """Refuses a service, a key or a database that would damage what is here."""
        self.check_conditional_writes()
        self.check_key(cipher)
        if takes_over:
            self.replace(OWNER_FILE, _format_owner(database_id))
        else:
            self.create(OWNER_FILE, _format_owner(database_id))
            self.check_owner(database_id)

    def check_owner(self, database_id: str) -> None:
        """Refuses a database whose calls these are not; the first one has them."""
        with suppress(NotFound):
            if self.read(OWNER_FILE) == _format_owner(database_id):
                return
            raise ConfigError(
                f"{self.url} holds the calls of another database: name that database in "
                "AFTERCALL_DATABASE_URL, or another bucket or prefix in AFTERCALL_ARCHIVE_URL. "
                "If that database is lost, run `aftercall rebuild`: it makes this one from "
                "the calls"
            )

    def check_conditional_writes(self) -> None:
        """Refuses a service that would overwrite: nothing in the archive would be safe.

        The first of all starts creates the object. Every later one must be refused to.
        """
        tries = (b"created once\n", b"created twice\n")
        if all(self.create(CONDITION_CHECK, data) for data in tries):
            raise ConfigError(
                f"{self.url}: the service ignores conditional writes (If-None-Match) and "
                "would overwrite sealed calls; use another one"
            )

    def check_key(self, cipher: FileCipher) -> None:
        """Refuses a key that is not the one of the encrypted objects."""
        if cipher.is_on:
            self.create(KEY_CHECK_FILE, cipher.encrypt(b"the key fits\n"))
        with suppress(NotFound):
            try:
                cipher.decode(self.read(KEY_CHECK_FILE))
            except FileUnreadable:
                raise ConfigError(
                    f"{self.url}: the archive was encrypted with another key; set "
                    "AFTERCALL_SECRET_KEY to it"
                ) from None

    def _list_versions(self, key: str) -> tuple[list[str], list[str]]:
        """The versions of an object, and the marks of its deletion.

        A bucket that keeps no versions has one of each object, which is called `null`.
        """
        full = f"{self._prefix}/{key}" if self._prefix else key
        answer = self._request("GET", "", {"prefix": full, "versions": ""})
        root = ElementTree.fromstring(answer.content)  # noqa: S314 - of our own store
        space = root.tag.rpartition("}")[0] + "}" if "}" in root.tag else ""
        return tuple(  # type: ignore[return-value]
            [
                item.findtext(f"{space}VersionId") or "null"
                for item in root.findall(f"{space}{kind}")
                if item.findtext(f"{space}Key") == full
            ]
            for kind in ("Version", "DeleteMarker")
        )

    def _remove_version(self, key: str, version: str) -> bool:
        full = f"{self._prefix}/{key}" if self._prefix else key
        answer = self._request("DELETE", f"/{full}", {"versionId": version})
        return answer.status_code != _FORBIDDEN

    def _request(
        self, method: str, path: str, query: dict[str, str]
    ) -> httpx2.Response:
        region = self._settings.region
        address = self._settings.endpoint or f"https://s3.{region}.amazonaws.com"
        target = f"/{self._name}{quote(path, safe='/~')}"
        headers = sign_request(
            method, address, target, query, self._settings, datetime.now(UTC)
        )
        url = f"{address.rstrip('/')}{target}?{_encode_query(query)}"
        try:
            with httpx2.Client(timeout=TIMEOUT_S, trust_env=False) as http:
                answer = http.request(method, url, headers=headers)
        except httpx2.HTTPError as error:
            raise ObjectStoreUnreachable(
                f"{self.url} does not answer ({describe_network_error(error)})"
            ) from error
        if answer.status_code >= 500:
            raise ObjectStoreUnreachable(f"{self.url} answers {answer.status_code}")
        if answer.is_error and not (
            method == "DELETE" and answer.status_code == _FORBIDDEN
        ):
            raise ArchiveError(
                f"{self.url} refuses to list or remove versions ({answer.status_code}); the key "
                "needs s3:ListBucketVersions and s3:DeleteObjectVersion"
            )
        return answer


class _ObjectFile:
    """obstore reads into buffers of its own; ciphers want bytes.

    Only what a cipher uses of a file.
    """

    def __init__(self, reader: "obstore.ReadableFile") -> None:
        self._reader = reader

    def read(self, size: int = -1) -> bytes:
        with _store_errors("an object"):
            return bytes(self._reader.read(size if size >= 0 else None))

    def seek(self, offset: int) -> int:
        return self._reader.seek(offset)

    def close(self) -> None:
        self._reader.close()


def sign_request(
    method: str,
    address: str,
    path: str,
    query: dict[str, str],
    settings: ArchiveSettings,
    at: datetime,
) -> dict[str, str]:
    """The headers of a request without a body, signed as AWS Signature Version 4.

    The request is written down in one fixed form and hashed. The key that signs it is made from
    the secret, the day, the region and the service, so that a stolen signature is of little use.
    """
    day = f"{at:%Y%m%d}"
    stamp = f"{at:%Y%m%dT%H%M%SZ}"
    headers = {
        "host": address.split("://")[1].rstrip("/"),
        "x-amz-content-sha256": EMPTY_HASH,
        "x-amz-date": stamp,
    }
    if settings.session_token:
        headers["x-amz-security-token"] = settings.session_token.get_secret_value()
    signed = ";".join(headers)
    canonical = "\n".join(
        (
            method,
            path,
            _encode_query(query),
            *(f"{name}:{value}" for name, value in headers.items()),
            "",
            signed,
            EMPTY_HASH,
        )
    )
    scope = f"{day}/{settings.region}/s3/aws4_request"
    digest = sha256(canonical.encode()).hexdigest()
    secret = settings.secret_access_key
    key = f"AWS4{secret.get_secret_value() if secret else ''}".encode()
    for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"):
        key = hmac.digest(key, part.encode(), "sha256")
    credential = f"{settings.access_key_id}/{scope}"
    return headers | {
        "authorization": f"AWS4-HMAC-SHA256 Credential={credential},"
        f"SignedHeaders={signed},Signature={key.hex()}"
    }


def _encode_query(query: dict[str, str]) -> str:
    return "&".join(
        f"{quote(name, safe='~')}={quote(value, safe='~')}"
        for name, value in sorted(query.items())
    )


@contextmanager
def _store_errors(what: str) -> Iterator[None]:
    """The store's own text is left out: it holds whole answers."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"there is no {what.removeprefix('the ')}") from None
    except (
        exceptions.PermissionDeniedError,
        exceptions.UnauthenticatedError,
    ):
        raise ArchiveError(
            f"{what} refuses us; check AWS_ACCESS_KEY_ID and what its key may do"
        ) from None
    except exceptions.BaseError:
        raise ObjectStoreUnreachable(f"{what} cannot be reached") from None


def _format_owner(database_id: str) -> bytes:
    return f"{database_id}\n".encode()
