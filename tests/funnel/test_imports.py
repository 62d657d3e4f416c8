"""What `import funnel` loads: every command and every worker process waits for it."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = (
    "distributed",
    "great_expectations",
    "jinja2",
    "matplotlib",
    "numba",
    "pandas",
    "prefect",
    "scipy.optimize",
    "scipy.stats",
)


def test_the_library_and_its_workers_load_nothing_heavy() -> None:
    code = (
        "import json, sys, funnel, funnel.cli, funnel.sampling.parts; "
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
