"""What a library install must do: run by check-installs.sh in a clean environment, on the parquet file it names."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

PIPELINE = ("prefect", "great_expectations", "pandas", "jinja2", "fastapi", "sqlalchemy")


def main(source: str) -> None:
    for name in PIPELINE:
        assert importlib.util.find_spec(name) is None, f"{name} came with the library"
    # Told, not judged: a test of the imports counts modules. The first run writes the byte code.
    code = "import time, funnel; print(time.process_time())"
    times = sorted(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))
    print(f"import funnel takes {times[2]:.3f} s of processor time")

    import funnel

    assert "site-packages" in Path(funnel.__file__).parts
    joint = funnel.Joint.from_table(source, secret=["marital-status"], inputs=["education"])
    bound = funnel.LIP(1.0)
    best = funnel.optimal(joint, bound)
    assert bound.holds(joint, best.protocol)
    released = funnel.sanitise(source, best.protocol)
    assert (released.num_rows, released.column_names) == (joint.n, ["education"])
    for name in funnel.__all__:
        getattr(funnel, name)
    assert {top.partition(".")[0] for top in sys.modules}.isdisjoint(PIPELINE)
    installed = len(list(importlib.metadata.distributions()))
    print(f"{installed} distributions installed")


main(sys.argv[1])
