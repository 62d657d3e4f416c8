"""The dual simplex method of `batch`, programme by programme in compiled code, where numba is installed."""

from __future__ import annotations

import numba  # type: ignore[import-not-found,unused-ignore]
import numpy as np


# Sums in any order: four or eight terms at once. Whatever comes out is checked by `bounds`, as before.
@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # type: ignore[untyped-decorator,unused-ignore]
def solve_stack(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    table,
    basic,
    nonbasic,
    costs,
    low,
    high,
    cut,
    steps,
    smallest_pivot,
    tolerance,
    values,
    duals,
    rays,
    solved,
    empty,
    exchanges,
):
    """Solve N programmes in place; arguments are those of `BatchProgramme.maximise`, spread over all n + m places.

    The outputs ``values, duals, rays`` (N, n + m) and ``solved, empty, exchanges`` (N,) must come filled with zeros.
    """
    number, m, n = table.shape
    d = np.empty(n)
    x = np.empty(n)
    beta = np.empty(m)
    passed = np.empty(n, dtype=np.bool_)
    for k in range(number):
        T, B, N = table[k], basic[k], nonbasic[k]
        for j in range(n):
            d[j] = costs[k, N[j]]
        for i in range(m):
            price = costs[k, B[i]]
            if price != 0.0:
                for j in range(n):
                    d[j] += price * T[i, j]
        step = 0
        while True:
            total = 0.0
            for j in range(n):
                x[j] = high[k, N[j]] if d[j] > 0 else low[k, N[j]]
                total += d[j] * x[j]
            worst, leave, sign = tolerance, -1, 1.0
            for i in range(m):
                activity = 0.0
                for j in range(n):
                    activity += T[i, j] * x[j]
                beta[i] = activity
                short = low[k, B[i]] - activity
                over = activity - high[k, B[i]]
                if short > worst:
                    worst, leave, sign = short, i, 1.0
                if over > worst:
                    worst, leave, sign = over, i, -1.0
            if leave < 0:
                solved[k] = True
                break
            # Long-step ratio test: pass what changes ends until the rest repairs the row.
            needed = worst - tolerance
            for j in range(n):
                passed[j] = False
            enter = -1
            while True:
                best, at = np.inf, -1
                for j in range(n):
                    if not passed[j]:
                        repair = sign * T[leave, j] * (-1.0 if d[j] > 0 else 1.0)
                        if repair > smallest_pivot:
                            ratio = abs(d[j]) / repair
                            if ratio < best:
                                best, at = ratio, j
                if at < 0:
                    break
                gain = abs(T[leave, at]) * (high[k, N[at]] - low[k, N[at]])
                if gain >= needed:
                    enter = at
                    break
                needed -= gain
                passed[at] = True
            if enter < 0:
                empty[k] = True
                rays[k, B[leave]] = -sign
                for j in range(n):
                    rays[k, N[j]] = sign * T[leave, j]
                break
            if total <= cut[k] or step == steps:
                break
            step += 1
            pivot = T[leave, enter]
            entering = d[enter]
            for i in range(m):
                if i != leave:
                    factor = T[i, enter] / pivot
                    if factor != 0.0:
                        for j in range(n):
                            T[i, j] -= factor * T[leave, j]
                    T[i, enter] = factor
            for j in range(n):
                if j != enter:
                    d[j] -= entering * T[leave, j] / pivot
                    T[leave, j] = -T[leave, j] / pivot
            # What leaves goes to the end it was beyond, also where its reduced cost is the rounding of zero.
            d[enter] = -sign * max(abs(entering / pivot), 1e-300)
            T[leave, enter] = 1.0 / pivot
            B[leave], N[enter] = N[enter], B[leave]
        exchanges[k] = step
        for i in range(m):
            values[k, B[i]] = beta[i]
        for j in range(n):
            values[k, N[j]] = x[j]
            duals[k, N[j]] = d[j]
