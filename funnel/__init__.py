"""funnel: microdata released with a proven bound on what each record discloses about a sensitive attribute."""

from importlib import import_module as _import_module

# Every command and every worker starts with `import funnel`, and few need all of it: a name is loaded when it is first
# used (PEP 562). `__init__.pyi` says the same to type checkers.
_MODULES = {
    "alphabet": ("Alphabet",),
    "analysis.release": ("load_release",),
    "donors.wide_tables": ("fit_columns",),
    "errors": ("FunnelError",),
    "estimation.estimating": ("estimate",),
    "frequencies.library": ("protect",),
    "guarantees": ("ALIP", "LDP", "LIP", "PML", "RLIP", "SRLIP", "Attribute", "parse_guarantee"),
    "history.panel": ("History",),
    "joint": ("Joint",),
    "mechanisms": ("fit",),
    "planning": ("plan",),
    "protocol": ("Protocol",),
    "sampling.keyed": ("RecordKey",),
    "sampling.sanitising": ("sanitise",),
    "solver.optimum": ("optimal",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
# Modules whose names are found here, too: every kind of guarantee and of error is funnel.NAME.
_KINDS = ("guarantees", "errors")

__all__ = [*_HOMES, "errors", "guarantees", "measures", "mechanisms"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_"):
        for kind in _KINDS if name[0].isupper() else ():
            module = _import_module(f"{__name__}.{kind}")
            if name in module.__all__:
                return getattr(module, name)
        try:
            return _import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
