"""Keyed noise: the second computation finds what was drawn, and nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from funnel import Joint
from funnel.frequencies.noise import NoiseSecret, draw_noise, scale_of
from funnel.recount.noise import NoiseMaterial
from funnel.recount.plausible import plausible_noise
from funnel.release.secret import noise_root
from tests.funnel.recount.test_noise import RARE, SPOILT

# What draws as it likes, and may look at the counts; battery and secret are asked in tables of 12, 40 and 240 cells.
CLASSES = {
    **SPOILT,
    "absent": lambda z, w, n, scale: 0 * z,
    "of another table": lambda z, w, n, scale: w,
    "its sign is the parity of the count": lambda z, w, n, scale: np.where(n % 2, -np.abs(z), np.abs(z)),
    "one cell as it is": lambda z, w, n, scale: np.where(np.arange(z.size).reshape(z.shape) == z.argmax(), 0, z),
}
SOURCE = hashlib.sha256(b"a source").hexdigest()
MATERIAL = NoiseMaterial(hashlib.sha256(b"a secret").hexdigest(), "panel", SOURCE)
SHAPES = [(1, 1), (2, 3), (5, 40)]


def table(shape: tuple[int, int]) -> Joint:
    counts = np.random.default_rng(1).integers(0, 50, shape)
    counts[0, 0] = 1
    return Joint.from_counts(
        counts, secret=[f"s{i}" for i in range(shape[0])], inputs=[f"ä{i}" for i in range(shape[1])]
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("epsilon", [0.01, 0.75, 2.5])
@pytest.mark.parametrize("kind", ["counts", "changes"])
def test_what_was_drawn_is_found_and_anything_else_is_not(
    shape: tuple[int, int], epsilon: float, kind: str, tmp_path: Path
) -> None:
    joint, since = table(shape), [] if kind == "counts" else ["panel/1.0.0"]
    root = noise_root(tmp_path / "panel", "panel")
    text = (tmp_path / "panel" / "noise-secret").read_text(encoding="ascii")
    sensitivity = 1 if kind == "counts" else 2
    key = NoiseSecret(root, SOURCE).key(kind, epsilon, joint, [joint.counts], since)
    noise = draw_noise(joint.counts.size, epsilon, sensitivity, key).tolist()
    material, exact = NoiseMaterial(text, "panel", SOURCE), joint.counts.ravel().tolist()
    of = [[[part.columns, part.symbols] for part in (joint.secret, joint.inputs)], list(since)]
    scale = scale_of(epsilon, sensitivity)
    assert material.root == root
    assert material.wrong(kind, epsilon, scale, of, noise, exact) == 0
    # One count that is one off, wherever it is.
    for place in {0, len(noise) - 1}:
        for off in (-1, 1):
            other = [count + off * (place == i) for i, count in enumerate(noise)]
            assert material.wrong(kind, epsilon, scale, of, other, exact) == 1
    if len(noise) < 100:
        return
    # Noise of another table, source, series or secret; it is the same by chance once in 10^27 runs at epsilon 2.5.
    wrong = [
        material.wrong(kind, epsilon, scale, of, noise, [*exact[:-1], exact[-1] + 1]),
        NoiseMaterial(text, "panel", "0" * 64).wrong(kind, epsilon, scale, of, noise, exact),
        NoiseMaterial(text, "other", SOURCE).wrong(kind, epsilon, scale, of, noise, exact),
        NoiseMaterial("ab" * 16 + text[:32], "panel", SOURCE).wrong(kind, epsilon, scale, of, noise, exact),
    ]
    assert min(wrong) > 0


@pytest.mark.parametrize("how", CLASSES)
def test_noise_that_depends_on_anything_is_found_in_a_table_of_twelve_cells(how: str) -> None:
    """Of ten releases of each class all are refused; the battery alone sees none of them in so small a table."""
    battery = 0
    for seed in range(10):
        counts = np.random.default_rng(seed).integers(0, 200, (3, 4))
        joint = Joint.from_counts(counts, secret=["a", "b", "c"])
        secret = NoiseSecret(MATERIAL.root, SOURCE)
        z = draw_noise(12, 0.25, key=secret.key("counts", 0.25, joint, [joint.counts])).reshape(3, 4)
        w = draw_noise(12, 0.25, key=hashlib.sha256(b"%d" % seed).digest()).reshape(3, 4)
        spoilt = np.asarray(CLASSES[how](z, w, counts, 4.0)).astype(np.int64)
        battery += plausible_noise(spoilt.tolist(), 4.0, counts.tolist()).p_value < RARE
        of = [[[part.columns, part.symbols] for part in (joint.secret, joint.inputs)], []]
        assert MATERIAL.wrong("counts", 0.25, 4.0, of, z.ravel().tolist(), counts.ravel().tolist()) == 0
        assert MATERIAL.wrong("counts", 0.25, 4.0, of, spoilt.ravel().tolist(), counts.ravel().tolist()) > 0, seed
    assert battery == 0, battery


def test_a_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    first = noise_root(tmp_path / "work", "people")
    assert noise_root(tmp_path / "work", "people") == first
    assert noise_root(tmp_path / "work", "others") != first
    path = tmp_path / "work" / "noise-secret"
    assert path.stat().st_mode & 0o077 == 0
    path.unlink()
    assert noise_root(tmp_path / "work", "people") != first
    assert "root" not in repr(NoiseMaterial("ab" * 32, "people", SOURCE))
