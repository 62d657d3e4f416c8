"""Provenance: which code makes a release, as a digest that caches are kept under and records name."""

from __future__ import annotations

import hashlib
import inspect
import os
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import funnel

# What the numbers of a release come out of, besides this package: another version may give others.
_COMPUTES = ("numpy", "scipy", "pyarrow", "highspy", "pycddlib-standalone", "python-flint", "numba")


def code_digest() -> str:
    """SHA-256 of the code that makes releases: this package, registered mechanisms, libraries that compute.

    A cache entry under another digest is not used: a newly registered mechanism is compared, and a mended defect
    counts, without anybody thinking of the caches.
    """
    from funnel.mechanisms import names, registered

    added = sorted(_source_of(type(mechanism)) for mechanism in registered())
    return hashlib.sha256("\n".join([_package_digest(), *names(), *added]).encode()).hexdigest()


def software_name() -> str:
    """This package and its version, as documents name what wrote them."""
    return f"funnel {software()['funnel']}"


def software() -> dict[str, str]:
    """Versions of this package and of the libraries that compute, by name; those not installed are left out."""
    return {name: found for name in ("funnel", *_COMPUTES) if (found := installed(name)) is not None}


@lru_cache
def installed(name: str) -> str | None:
    """The version of a package; None if it is not installed.

    Looked up once: what a process has imported stays what it is, and every release names a dozen of them several times.
    """
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@lru_cache(maxsize=1)
def _package_digest() -> str:
    root = str(Path(funnel.__file__).parent)
    total = hashlib.sha256(repr(sorted(software().items())).encode())
    # The pipeline is in links where this package is a checkout. There are hundreds of files, so their names are texts.
    modules = (f"{folder}/{name}" for folder, _, files in os.walk(root, followlinks=True) for name in files)
    for path in sorted(path for path in modules if path.endswith(".py")):
        total.update(f"{path.removeprefix(root)}\0".encode())
        total.update(hashlib.sha256(Path(path).read_bytes()).digest())
    return total.hexdigest()


def _source_of(kind: type) -> str:
    """Name and content of the module of a mechanism that another package registers."""
    try:
        content = Path(inspect.getfile(kind)).read_bytes()
    except (OSError, TypeError):
        # Made at a prompt: there is no file that could change.
        content = b""
    return f"{kind.__module__}.{kind.__qualname__} {hashlib.sha256(content).hexdigest()}"
