"""Files of Stata, SPSS and SAS, with labels of values and user-missing codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from funnel.readers.formats.columnar import Columnar, FormatError
from funnel.readers.formats.loaded import Loaded
from funnel.storage import open_binary


class Statistical(Columnar):
    """A format of a statistics package; the whole file is held in memory."""

    # What reads it, by how the name of a file ends.
    readers: ClassVar[dict[str, str]]

    def open_file(self, address: str, texts: Sequence[str] = ()) -> Loaded:
        try:
            import pyreadstat
        except ImportError:
            raise FormatError(
                f"is a file of {self.name}, which needs a further package; install it with pip install "
                "'funnel[statistics]'"
            ) from None
        ending = next((one for one in self.readers if address.lower().endswith(one)), self.suffixes[0])
        read: Callable[..., tuple[dict[str, list[Any]], Any]] = getattr(pyreadstat, self.readers[ending])
        columns: dict[str, list[Any]] | None = None
        failures = (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError, OverflowError)
        # What it says may quote a cell.
        with open_binary(address) as stream, suppress(*failures):
            columns, described = read(stream, output_format="dict")
        if columns is None:
            raise FormatError(f"cannot be read as a file of {self.name}; check the path, or set format in [source]")
        return Loaded(columns, described.variable_value_labels, described.column_names_to_labels)


class Stata(Statistical):
    """Files of Stata."""

    name = "stata"
    suffixes = (".dta",)
    readers: ClassVar[dict[str, str]] = {".dta": "read_dta"}


class Spss(Statistical):
    """Files of SPSS."""

    name = "spss"
    suffixes = (".sav", ".zsav", ".por")
    readers: ClassVar[dict[str, str]] = {".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por"}


class Sas(Statistical):
    """Files of SAS, which have no labels of values."""

    name = "sas"
    suffixes = (".sas7bdat", ".xpt")
    readers: ClassVar[dict[str, str]] = {".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}
