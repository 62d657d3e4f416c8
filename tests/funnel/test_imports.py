"""What `import funnel` loads: commands and workers wait for it, and a library install has no more."""

from __future__ import annotations

import ast
import graphlib
import importlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import grimp
import pytest

import funnel
from tests.projects import SPEC, make_project

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
# What only the extras bring.
EXTRAS = ("prefect", "great_expectations", "pandas", "jinja2", "markupsafe", "dask", "s3fs")
STUB = ast.parse(Path(funnel.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))


def python(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def loaded(code: str) -> set[str]:
    done = python(f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_the_library_and_its_workers_load_nothing_heavy() -> None:
    modules = loaded(
        "import funnel, funnel.cli, funnel.sampling.parts\nfor name in funnel.__all__: getattr(funnel, name)"
    )
    assert not modules & set(HEAVY)


def order_of_imports(edges: dict[str, set[str]]) -> list[str]:
    """Modules, each after all that it imports; `graphlib.CycleError` names a cycle."""
    return [*graphlib.TopologicalSorter(edges).static_order()]


def test_no_module_imports_itself_through_others() -> None:
    """Imports inside functions count too: a cycle that is put off is one all the same."""
    graph = grimp.build_graph("funnel", exclude_type_checking_imports=True, cache_dir=None)
    edges = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert {"funnel.spec", "funnel.pipeline.flows.pipeline"} <= set(order_of_imports(edges))
    assert "funnel.readers.formats" in edges["funnel.hierarchy"]
    with pytest.raises(graphlib.CycleError):
        order_of_imports({**edges, "funnel.readers.formats": {*edges["funnel.readers.formats"], "funnel.spec"}})


def test_import_funnel_alone_loads_no_package_at_all() -> None:
    modules = loaded("import funnel")
    assert {name for name in modules if name.partition(".")[0] == "funnel"} == {"funnel"}
    assert not {"numpy", "pyarrow", "scipy"} & modules


def test_a_command_computes_with_one_thread_unless_told_otherwise() -> None:
    run = (
        "import os, sys\nfrom funnel.cli import main\nassert 'numpy' not in sys.modules\n"
        "main(['--version'], standalone_mode=False)\nprint(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    alone = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    for environment, threads in ((alone, "1"), ({**alone, "OPENBLAS_NUM_THREADS": "3"}, "3")):
        done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.splitlines()[-1] == threads


def test_a_name_loads_its_own_room() -> None:
    modules = loaded("import funnel; funnel.Alphabet")
    assert "funnel.alphabet" in modules
    assert "funnel.solver" not in modules


def test_type_checkers_know_the_names_that_are_there() -> None:
    homes = {
        alias.name: node.module
        for node in STUB.body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    }
    (listed,) = (ast.literal_eval(node.value) for node in STUB.body if isinstance(node, ast.Assign))
    kinds = {*funnel.errors.__all__, *(name for name in funnel.guarantees.__all__ if name[0].isupper())}
    assert sorted(listed) == sorted(funnel.__all__)
    assert set(listed) <= set(homes) <= {*listed, *kinds}
    assert set(funnel.errors.__all__) <= set(homes)
    for name, home in homes.items():
        assert home
        same = importlib.import_module(f"funnel.{name}") if home == "funnel" else None
        assert getattr(funnel, name) is (same or getattr(importlib.import_module(home), name))


def test_import_funnel_lists_its_public_names_and_leaks_no_other() -> None:
    code = "import funnel; print(*sorted({*dir(funnel), *(n for n in vars(funnel) if not n.startswith('_'))}))"
    done = python(code)
    assert done.stdout.split() == sorted(funnel.__all__)
    assert len(funnel.__all__) <= 30


def test_rooms_are_attributes_and_other_names_are_not() -> None:
    assert isinstance(funnel.sample_size, types.ModuleType)
    with pytest.raises(AttributeError, match="no attribute 'sample_sizes'"):
        _ = funnel.sample_sizes


def test_mechanisms_is_a_module_with_its_modules_in_it() -> None:
    assert isinstance(funnel.mechanisms, types.ModuleType)
    assert callable(funnel.mechanisms.oue.listed_sets)
    with pytest.raises(AttributeError, match="no attribute 'oue_of'"):
        _ = funnel.mechanisms.oue_of


def test_a_mechanism_is_found_by_its_own_name_and_loads_no_other() -> None:
    for name in funnel.mechanisms.names():
        found = funnel.mechanisms.mechanism(name)
        assert found.name == name
        assert funnel.mechanisms.mechanism(name) == found
    modules = loaded("import funnel; funnel.mechanisms.mechanism('grr')")
    assert "funnel.mechanisms.grr" in modules
    assert not {"funnel.mechanisms.oue", "funnel.solver.optimum", "highspy", "scipy"} & modules


# No finder finds the extras, as if they were not installed.
LIBRARY = f"""
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {EXTRAS!r} else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
COMMAND = LIBRARY + "from funnel.cli import main; main(prog_name='funnel')"


def test_plan_and_audit_and_help_work_in_a_library_install(tmp_path: Path) -> None:
    spec = make_project(tmp_path, SPEC + '\n[mechanism]\nname = "grr"\n')
    # One process does all three.
    several = (
        f"{LIBRARY}from funnel.cli import main\n"
        "for arguments in (['--help'], ['release', '--help'], ['plan', sys.argv[1]]):\n"
        "    main(arguments, prog_name='funnel', standalone_mode=False)"
    )
    done = python(several, spec)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: funnel ") == 2
    assert "\ngrr " in done.stdout
    missing = python(COMMAND, "audit", tmp_path)
    assert missing.returncode == 4
    assert missing.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["release", "watch"])
def test_the_pipeline_s_commands_say_what_to_install(command: str, tmp_path: Path) -> None:
    done = python(COMMAND, command, make_project(tmp_path))
    assert done.returncode == 12
    assert done.stdout == ""
    assert done.stderr == (
        "funnel: the pipeline is not installed (prefect is missing): pip install 'funnel[pipeline]'\n"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"people.parquet", "people.toml"}


def test_a_command_that_cannot_be_loaded_breaks_no_other(tmp_path: Path) -> None:
    """Any package may register commands; one of them may lack what it imports."""
    entry = "EntryPoint('other', 'package_that_is_not_there:command', 'funnel.commands')"
    code = (
        "import sys, importlib.metadata as metadata, funnel.cli as cli, funnel.commands as commands\n"
        f"entry = metadata.{entry}\n"
        "commands.entry_points = lambda **wanted: metadata.EntryPoints([entry]).select(**wanted)\n"
        "cli.main(prog_name='funnel')"
    )
    shown = python(code, "--help")
    assert shown.returncode == 0, shown.stderr
    assert "package_that_is_not_there" in shown.stdout
    done = python(code, "other", "spec.toml", "--again")
    assert done.returncode == 12
    assert done.stderr == (
        "funnel: the command other cannot be loaded, because of this: No module named 'package_that_is_not_there'; "
        "install what it needs to use it\n"
    )


def test_the_validator_is_loaded_without_what_it_is_never_asked_for() -> None:
    modules = loaded(
        "import funnel.pipeline.expectations.custom as engine\n"
        "import great_expectations.expectations.core.expect_column_kl_divergence_to_be_less_than as core\n"
        "from scipy import stats\nassert stats.entropy([1.0]) == 0 == core.stats.entropy([1.0])"
    )
    assert "great_expectations.expectations.core" in modules
    # What is asked of it is there all the same.
    assert "scipy.stats._stats_py" in modules
    assert "altair.vegalite" not in modules


def test_a_module_that_stood_back_is_the_module_itself_afterwards(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text("import aside\n")
    (tmp_path / "aside.py").write_text("print('loaded', end=' ')\nvalue = 3\n")
    (tmp_path / "broken.py").write_text("import aside, no_such_module\n")
    begin = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom funnel.deferred_imports import import_without\n"
    deferring = begin + "import_without('library', 'aside')\nassert 'aside' not in sys.modules\n"
    for code, printed in (
        (deferring, ""),
        (deferring + "import library; print(library.aside.value, sys.modules['aside'].value)", "loaded 3 3\n"),
        (deferring + "import aside, library; print(aside.value is library.aside.value)", "loaded True\n"),
        (
            begin + "import aside; import_without('library', 'aside'); print(sys.modules['aside'] is aside)",
            "loaded True\n",
        ),
        (
            begin + "try: import_without('broken', 'aside')\nexcept ImportError: print('aside' in sys.modules)",
            "False\n",
        ),
    ):
        done = python(code)
        assert (done.stdout, done.returncode) == (printed, 0), done.stderr
