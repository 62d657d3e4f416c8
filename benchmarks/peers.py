"""The sampler alone beside other libraries of local differential privacy, on randomised response of the same size.

pure-ldp, multi-freq-ldpy (with numba) and opendp are not dependencies of the project; what is not installed is left out
and said so. Versions measured: see ``benchmarks/results/sanitise.json``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from funnel.protocol import DENOMINATOR
from funnel.sampling.draw import ChannelSampler
from funnel.sampling.random_words import WordStream

EPSILON = 1.0
Codes = npt.NDArray[np.int64]


def sampler_rates(size: int, rows: int, rounds: int = 3) -> dict[str, dict[str, Any]]:
    """Rows a second of CPU time of every library, for randomised response over ``size`` values."""
    codes = np.random.default_rng(size).integers(0, size, rows)
    rates: dict[str, dict[str, Any]] = {}
    makers = {"funnel": _funnel, "pure-ldp": _pure_ldp, "multi-freq-ldpy": _multi_freq, "opendp": _opendp}
    for name, make in makers.items():
        try:
            run = make(size)
        except ImportError as error:
            rates[name] = {"absent": str(error)}
            continue
        # Small at first, to compile and to see how many rows take a second or so.
        run(codes[:1000])
        probe = _seconds(run, codes[:2000]) / 2000
        some = codes[: max(2000, min(rows, int(1.0 / max(probe, 1e-9))))]
        best = min(_seconds(run, some) for _ in range(rounds))
        rates[name] = {"rows_per_second": len(some) / best, "rows": len(some), "version": _version(name)}
    return rates


def _seconds(run: Callable[[Codes], object], codes: Codes) -> float:
    start = time.process_time()
    run(codes)
    return max(time.process_time() - start, 1e-9)


def _version(name: str) -> str:
    return importlib.metadata.version(name)


def _funnel(size: int) -> Callable[[Codes], object]:
    other = DENOMINATOR // (size - 1 + round(math.exp(EPSILON)))
    weights = np.full((size, size), other, dtype=np.uint64)
    np.fill_diagonal(weights, DENOMINATOR - other * (size - 1))
    sampler, stream = ChannelSampler(weights, weights[:, 0]), WordStream()
    piece = 1 << 16

    def run(codes: Codes) -> object:
        for start in range(0, len(codes), piece):
            here = codes[start : start + piece]
            drawn = sampler.draw(here, stream.words(len(here)))
        return drawn

    return run


def _pure_ldp(size: int) -> Callable[[Codes], object]:
    client = importlib.import_module("pure_ldp.frequency_oracles.direct_encoding").DEClient(EPSILON, size)
    return lambda codes: [client.privatise(value + 1) for value in codes.tolist()]


def _multi_freq(size: int) -> Callable[[Codes], object]:
    respond = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.GRR").GRR_Client
    numba = importlib.import_module("numba")

    @numba.njit  # type: ignore[untyped-decorator]
    def run(codes: Codes) -> Codes:
        drawn = np.empty_like(codes)
        for i in range(len(codes)):
            drawn[i] = respond(codes[i], size, EPSILON)
        return drawn

    return run  # type: ignore[no-any-return]


def _opendp(size: int) -> Callable[[Codes], object]:
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    truth = math.exp(EPSILON) / (math.exp(EPSILON) + size - 1)
    respond = dp.m.make_randomized_response(categories=list(range(size)), prob=truth)
    return lambda codes: [respond(value) for value in codes.tolist()]
