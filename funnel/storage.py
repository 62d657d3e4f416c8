"""Where files are: local paths and fsspec URLs, opened and listed alike, with every failure in one sentence."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

from funnel.errors import FunnelError, SpecError
from funnel.wording import did_you_mean

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_LOCAL = ("file", "local")
_WEB = ("http", "https")
# Seconds that a web server may be silent.
_PATIENCE = 60.0
# Protocols whose package an extra of this project installs.
_EXTRAS = {"s3": "s3", "s3a": "s3"}

T = TypeVar("T")


def is_url(address: str) -> bool:
    """Whether an address is a URL rather than a path."""
    return _URL.match(address) is not None


@contextmanager
def writing_in(place: Path) -> Iterator[None]:
    """Name the file or folder in errors of the system that name no file, such as that of a full disk."""
    try:
        yield
        return
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        failure = OSError(error.errno, os.strerror(error.errno), str(place))
    # The words of a library around the reason are left out.
    raise failure


def check_address(address: str) -> str:
    """An address of a spec, after making sure that its protocol is known and that it holds no secret.

    Raises
    ------
    ValueError
        With a sentence about it that does not repeat the secret.
    """
    match = _URL.match(address)
    if match is None:
        return address
    if "::" in address:
        raise ValueError("must be one URL; chains of URLs joined by '::' are not read")
    protocol, parts = match[1], urlsplit(address)
    if "@" in parts.netloc and ":" in parts.netloc.rpartition("@")[0]:
        raise ValueError("holds a password; a spec is no place for secrets, give credentials in the environment")
    if protocol.startswith("http") and parts.query:
        raise ValueError("holds a query, which may be a secret; a spec is no place for secrets")
    if protocol in _LOCAL:
        if parts.netloc:
            raise ValueError(f"must have three slashes: {protocol}:///folder/file; or give a path without {protocol}:")
        return address
    from fsspec import available_protocols

    if protocol not in available_protocols():
        hint = did_you_mean(protocol, available_protocols()) or "; known is s3, for instance"
        raise ValueError(f"has the protocol {protocol!r}, which is not known{hint}")
    return address


def local_path(address: str) -> Path | None:
    """The path an address stands for; None if it is elsewhere."""
    match = _URL.match(address)
    if match is None:
        return Path(address)
    return Path(unquote(urlsplit(address).path)) if match[1] in _LOCAL else None


def base_name(address: str) -> str:
    """The last part of a path or URL."""
    return PurePosixPath(address).name


def joined(address: str, *parts: str) -> str:
    """An address below another one."""
    return "/".join([address.rstrip("/"), *parts])


def filesystem(address: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and its path there.

    Credentials, endpoints and other options come from the environment and from the configuration files of the
    protocol's package, never from the caller. Listings are not cached: what others write is seen.

    Raises
    ------
    SpecError
        If the package of the protocol is not installed.
    """
    import fsspec

    match = _URL.match(address)
    protocol = match[1] if match is not None else "file"
    try:
        kind = fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        raise SpecError(f"{address} cannot be opened: {_remedy(protocol, str(error))}") from None
    options = {"client_kwargs": _web_client()} if protocol in _WEB else {}
    storage = fsspec.filesystem(protocol, use_listings_cache=False, **options)
    return storage, str(kind._strip_protocol(address))


def _web_client() -> dict[str, Any]:
    """How web servers are asked: none may be silent, or send the reader to another host."""
    import aiohttp
    from yarl import URL

    class Elsewhere(aiohttp.ClientError):
        """A server names another host for a file."""

    async def redirected(session: Any, context: Any, told: Any) -> None:
        target = told.url.join(URL(told.response.headers.get("Location", "")))
        if target.origin() != told.url.origin():
            raise Elsewhere

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(redirected)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_PATIENCE, sock_read=_PATIENCE)
    return {"trace_configs": [trace], "timeout": timeout}


def _remedy(protocol: str, said: str) -> str:
    if protocol in _EXTRAS:
        return f"{protocol}:// needs a further package; install it with pip install 'funnel[{_EXTRAS[protocol]}]'"
    return f"{protocol}:// needs a further package: {said.splitlines()[0].rstrip('.')}"


def open_binary(address: str) -> IO[bytes]:
    """Open a file to read; reads go to the storage as they are made, so ask for blocks of a megabyte or more."""
    path = local_path(address)
    if path is not None:
        return path.open("rb")
    storage, inside = filesystem(address)
    return cast(IO[bytes], storage.open(inside, "rb", cache_type="none"))


def failures() -> tuple[type[Exception], ...]:
    """What reading and writing can raise; packages that are not loaded cannot have raised theirs."""
    kinds: list[type[Exception]] = [OSError]
    for module, names in (("botocore.exceptions", ("BotoCoreError", "ClientError")), ("aiohttp", ("ClientError",))):
        if (loaded := sys.modules.get(module)) is not None:
            kinds.extend(getattr(loaded, name) for name in names)
    return tuple(kinds)


def attempt(action: Callable[[], T], address: str, kind: type[FunnelError], missing: str = "") -> T:
    """The result of an action on storage; what it raises becomes one sentence without credentials or content.

    Parameters
    ----------
    missing : str
        What to say if there is nothing at the address.
    """
    try:
        return action()
    except failures() as error:
        sentence = explained(error, address, missing)
    # Raised outside the handler, so that no traceback carries the original message.
    raise kind(sentence)


def explained(error: Exception, address: str, missing: str = "") -> str:
    """What went wrong at an address, as one sentence made of the class of the error alone."""
    name = type(error).__name__
    if isinstance(error, FileNotFoundError):
        return missing or f"there is nothing at {address}; check the address"
    if isinstance(error, PermissionError) or "Credentials" in name:
        if not is_url(address):
            return f"{address} cannot be read: permission denied"
        why = "there are no credentials for it" if "Credentials" in name else "access was denied"
        return (
            f"{address} cannot be read or written: {why}; check the credentials in the environment "
            "(for s3, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) and what they permit"
        )
    if isinstance(error, OSError) and error.strerror and not is_url(address):
        return f"{address} cannot be read: {error.strerror}"
    if name == "Elsewhere":
        return f"{address} is sent on to another host, which is not followed; name the address where it really is"
    return (
        f"{address} cannot be reached or read ({name}); check the address, the network and, for s3 elsewhere than at "
        "AWS, AWS_ENDPOINT_URL in the environment"
    )
