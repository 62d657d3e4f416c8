"""ReleaseSpec: the one description of a release, read from a TOML file and validated before anything else happens."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, StrictStr, ValidationError, field_validator, model_validator

from funnel.complaint import complaint
from funnel.databases import Database, resolved
from funnel.disclosure_settings import DisclosureSettings
from funnel.errors import SpecError
from funnel.fields import Columns, Line
from funnel.frequency_settings import Categories, FrequencySettings
from funnel.group_settings import GroupSettings, Published, read_groups, unfit_for_groups
from funnel.hierarchy import Known, with_hierarchies
from funnel.settings import (
    OTHER,
    ApprovalSettings,
    ConfidenceSettings,
    EngineSettings,
    GuaranteeSettings,
    HistorySettings,
    LedgerSettings,
    LimitSettings,
    MechanismSettings,
    MetadataSettings,
    NumberSettings,
    OutputSettings,
    Recode,
    Section,
    SourceSettings,
    folder_name,
    secret_place,
)
from funnel.storage import base_name, is_url, local_path
from funnel.wording import did_you_mean, nearest, same_name, toml_key, toml_text


def drawn_name(column: str) -> str:
    """The name of the column of numbers that are drawn within the intervals of a column."""
    return f"{column} (number)"


# A spec is written by people; beyond this it is some other file, and would take minutes to be refused in detail.
MAX_SPEC_BYTES = 1 << 20


class ReleaseSpec(Section):
    """What to release, from what, under which guarantee, and where to.

    Read one with `load`; a wrong one raises `SpecError` with one sentence for its first problem.

    Attributes
    ----------
    name : str
        Folder name of the release: lower-case letters, digits and hyphens.
    title : str
        What the release is called, for people.
    description : str
        What it is, for people.
    secret : tuple of str
        Columns whose values must not become known.
    publish : tuple of str
        Columns to publish, none of which is secret; or a list of groups of columns, or "auto".
    record_key : tuple of str
        Columns whose values together are unique to a record, to give a record the same answer in every release; by
        default none, and every release is drawn afresh.
    record_secret : str
        Where the secret is that these answers are derived with: "file" (in the workspace, made on first use),
        "environment:NAME" or "prefect:NAME-OF-A-SECRET-BLOCK".
    unit : tuple of str
        Columns whose values together are unique to a person or another unit that several rows could be of; by default
        none, and every row is of a person of its own. Several rows of one are drawn under one bound where the history
        says that people are the same, and refused otherwise; the unit is then the record key, named or not.
    source, guarantee, mechanism, output, metadata, limits, confidence, approval, engine, history, ledger
        Sections of `funnel.settings`; history is None where the spec does not say who its people are.
    frequencies : FrequencySettings
        How the frequencies are protected that public documents are made from.
    disclosure : DisclosureSettings
        What these frequencies may hold.
    groups : GroupSettings
        How the published columns are grouped, where ``publish`` is a list of groups or "auto". In memory ``publish`` is
        always the flat tuple of columns; of "auto" it is empty until `funnel.source.settled_columns` has seen the
        source.
    recode : mapping of column name to Recode
        For secret and published columns only.
    categories : mapping of column name to tuple of str
        The values that a secret or published column may have, in order; all others are one category.
    utility : "information", "variance" or "estimation"
        What a protocol is chosen by: the information that is kept, or the share that is explained of the variance of
        the one published column, which then holds numbers.
    numbers : mapping of column name to NumberSettings
        What the numbers of a secret or published column are.
    weight : str or None
        The published column of survey weights, which is published as classes like any other column.
    """

    name: StrictStr
    title: Line
    description: StrictStr = ""
    secret: Columns
    publish: Published
    record_key: Columns | None = None
    record_secret: Line = "file"
    unit: Columns | None = None
    source: SourceSettings
    recode: Mapping[str, Recode] = Field(default_factory=dict)
    categories: Categories = Field(default_factory=dict)
    guarantee: GuaranteeSettings
    utility: Literal["information", "variance", "estimation"] = "information"
    numbers: Mapping[str, NumberSettings] = Field(default_factory=dict)
    weight: Line | None = None
    mechanism: MechanismSettings = MechanismSettings()
    output: OutputSettings = OutputSettings()
    metadata: MetadataSettings
    limits: LimitSettings = LimitSettings()
    confidence: ConfidenceSettings = ConfidenceSettings()
    frequencies: FrequencySettings = FrequencySettings()
    disclosure: DisclosureSettings = DisclosureSettings()
    groups: GroupSettings = GroupSettings()
    approval: ApprovalSettings = ApprovalSettings()
    engine: EngineSettings = EngineSettings()
    history: HistorySettings | None = None
    ledger: LedgerSettings = LedgerSettings()

    _folder: Path = PrivateAttr(default_factory=Path)
    _text: str | None = PrivateAttr(default=None)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read and validate a TOML file; relative paths in it start at its folder.

        Raises
        ------
        SpecError
            If the file cannot be read, is not TOML, or says something wrong: one sentence that names the file, the
            setting and what to do.
        """
        return cls.parse(read_spec_text(path), path)

    @classmethod
    def parse(cls, text: str, path: str | os.PathLike[str], hierarchies: Known | None = None) -> Self:
        """Validate the text of a spec file that was read already; ``path`` says whose it is.

        What its hierarchies came to may be given, as `hierarchies` has it; by default they are read.

        Raises
        ------
        SpecError
            As `load`.
        """
        file = Path(path)
        _require_size(file, len(text))
        try:
            settings = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SpecError(f"{file.name} is not valid TOML: {error}") from error
        except RecursionError as error:
            raise SpecError(f"{file.name} is not a spec: its lists or tables are nested too deeply") from error
        try:
            spec = cls.of(settings, file.parent, hierarchies)
        except SpecError as error:
            raise SpecError(f"{file.name}: {error}") from error
        spec._text = text
        return spec

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], folder: str | os.PathLike[str] = ".", hierarchies: Known | None = None
    ) -> Self:
        """Validate settings that are in memory already; relative paths start at ``folder``.

        Hierarchies as `parse` has them.

        Raises
        ------
        SpecError
            As `load`.
        """
        try:
            spec = cls.model_validate(with_hierarchies(settings, Path(folder), hierarchies))
        except ValidationError as error:
            raise SpecError(complaint(error, cls)) from error
        spec = spec.with_declared_bins()
        spec._folder = Path(folder).absolute()
        spec._require_apart()
        return spec

    def with_declared_bins(self) -> Self:
        """Where noise protects the frequencies, bins that are to be found are a function of the range that is declared.

        Nothing in the source has a part in it, so it costs no epsilon.
        """
        if self.frequencies.protection != "noise" or not self.automatic:
            return self
        made = {column: self.recode[column].with_edges(self.numbers[column].round_edges) for column in self.automatic}
        return self.model_copy(update={"recode": {**self.recode, **made}})

    def _require_apart(self) -> None:
        """Refuse an output folder that would publish what releases are made from."""
        if self.workspace_folder.resolve().is_relative_to(published := self.output_folder.resolve()):
            raise SpecError(
                "[output] workspace must not lie inside folder: working files are private, and folder is published"
            )
        if self.output_url is not None:
            return
        source = self._local_source
        for what, path in (("source", source), ("spec", self._folder)):
            # A link in the folder is as public as what it leads to.
            try:
                places = () if path is None else (path.resolve(), path.parent.resolve() / path.name)
            except (OSError, RuntimeError) as error:
                raise SpecError(
                    f"the {what} {path} is a link that leads back to itself; name the file itself"
                ) from error
            if any(place.is_relative_to(published) for place in places):
                raise SpecError(
                    f"[output] folder must not hold the {what}: all that is in it is published; choose a folder of its "
                    'own, such as "releases"'
                )
        if source is not None and source.is_dir() and published.is_relative_to(source.resolve()):
            raise SpecError(
                "[output] folder must not lie inside the folder of the source: what is released would become a part of "
                "the source; choose another folder"
            )

    @field_validator("name")
    @classmethod
    def _folder_name(cls, value: str) -> str:
        return folder_name(value, "adult-education")

    @field_validator("record_secret")
    @classmethod
    def _a_place(cls, value: str) -> str:
        return secret_place(value)

    @model_validator(mode="before")
    @classmethod
    def _grouped(cls, settings: Any) -> Any:
        return read_groups(settings) if isinstance(settings, Mapping) else settings

    @model_validator(mode="before")
    @classmethod
    def _known_by_units(cls, settings: Any) -> Any:
        """Where people are the same and have several rows, they are known again by the unit: it is the record key."""
        if not isinstance(settings, Mapping) or settings.get("unit") is None or settings.get("record_key") is not None:
            return settings
        history = settings.get("history")
        people = history.get("people") if isinstance(history, Mapping) else getattr(history, "people", None)
        return {**settings, "record_key": settings["unit"]} if people == "same" else settings

    @model_validator(mode="after")
    def _keys_are_no_data(self) -> Self:
        if self.record_key is None and "record_secret" in self.model_fields_set:
            raise ValueError(
                "says where a record_secret is, but names no record_key, so that nothing would be drawn with it"
            )
        for what, columns in (("record key", self.record_key), ("unit", self.unit)):
            for column in columns or ():
                if any(same_name(column, other) for other in self.columns):
                    raise ValueError(
                        f"the column {column!r} is a {what}, and secret or published as well; a {what.split()[-1]} "
                        "identifies a person, so it is neither"
                    )
        if self.history is not None and self.history.people == "same" and self.record_key is None:
            raise ValueError(
                '[history] people = "same" needs a record_key, by which a person is known again in a later version; '
                "name the columns that identify a person"
            )
        if self.is_robust_over_versions and (self.frequencies.protection != "noise" or self.unit is not None):
            what = "rows of a unit" if self.unit is not None else "frequencies without noise"
            raise ValueError(
                f"[history] robust is about what noise leaves open of how people changed, and there is nothing of that "
                f"kind for {what}; take robust out"
            )
        if self.register is not None and self.unit is not None and set(self.unit) != set(self.record_key or ()):
            raise ValueError(
                'the unit is not the record_key, and with [history] people = "same" a person is known again by the '
                "record_key; name the same columns in both"
            )
        return self

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        self._check_columns()
        return self

    def _check_columns(self) -> None:
        for column in self.publish:
            # Names that differ only in case, spaces or dashes are one column to everybody who reads them.
            if any(same_name(column, secret) for secret in self.secret):
                raise ValueError(
                    f"the column {column!r} is both secret and published; take it out of secret or out of publish"
                )
        for column, recode in self.recode.items():
            self._require_listed("recode", column)
            if self._names_other(column):
                if recode.other in recode.bin_labels and recode.other not in recode.group_of:
                    raise ValueError(f"[recode] {column!r} has a bin named {recode.other!r}; set other to another text")
            elif "other" in recode.model_fields_set:
                raise ValueError(
                    f"[recode.{toml_key(column)}] names other, the category of rarer values, but gives no minimum_count"
                )
            group_of, groups = recode.group_of, recode.groups or {}
            names = {*recode.bin_labels, *([recode.other] if self._names_other(column) else [])}
            if recode.bins is not None:
                # What no bin is called, nothing else can be either.
                known = (*recode.bin_labels, self.source.missing_label, recode.other)
                for value in group_of:
                    if value not in known:
                        raise ValueError(
                            f"[recode] {column!r} puts {value!r} into a group, which is none of its bins"
                            f"{did_you_mean(value, known)}"
                        )
            for name in groups:
                if name in names and name not in group_of:
                    raise ValueError(
                        f"[recode] {column!r} has a group named {name!r}, as another category is; give the group "
                        "another name"
                    )
            names.update(groups)
            names.difference_update(value for value in (self.source.missing_label,) if value in group_of)
            if self.source.on_missing == "category" and self.source.missing_label in names:
                raise ValueError(
                    f"[source] missing_label {self.source.missing_label!r} is also a category made by the recoding of "
                    f"{column!r}; set missing_label to another text"
                )
        for column in self.categories:
            self._require_listed("categories", column)
            if self.has_bins(column):
                raise ValueError(
                    f"[categories] {column!r} lists values of a column that [recode] puts into bins, which name all of "
                    "them; take one of the two out"
                )

    def _require_listed(self, section: str, column: str) -> None:
        """Refuse a section of a column that is not released.

        Whichever of two similar names is misspelt: without the source nobody can tell, so the one in the list, which
        all else follows, is named first.
        """
        if column in self.columns or (self.groups.is_auto and not self.publish):
            return
        near = nearest(column, self.columns)
        if near is None:
            raise ValueError(
                f"[{section}] {column!r} is neither secret nor published; add it to publish, or leave the section out"
            )
        listing = "secret" if near in self.secret else "publish"
        raise ValueError(
            f"{listing} names {near!r} and [{section}] {column!r}, which is neither secret nor published; if they are "
            "one column, write its name in the source in both"
        )

    @property
    def automatic(self) -> tuple[str, ...]:
        """Columns whose bins are yet to be found."""
        return tuple(column for column in self.columns if column in self.recode and self.recode[column].bins == "auto")

    def has_bins(self, column: str) -> bool:
        """Whether the categories of a column are bins."""
        return column in self.recode and self.recode[column].bins is not None

    def other_label(self, column: str) -> str:
        """The name of the category of a column's values that have no name of their own, where there is one."""
        return self.recode[column].other if column in self.recode else OTHER

    def _names_other(self, column: str) -> bool:
        """Whether there can be such a category."""
        if column in self.categories or self.recode[column].minimum_count is not None:
            return True
        return self.frequencies.protection == "noise" and not self.has_bins(column)

    @model_validator(mode="after")
    def _groups_agree(self) -> Self:
        of = self.groups.of
        if of is None:
            if not self.publish:
                raise ValueError("publish must name at least one column")
            return self
        if not self.groups.is_auto and tuple(column for group in of for column in group) != self.publish:
            raise ValueError("publish and [groups] of name other columns; say the groups in publish alone")
        if (reason := self.ungroupable) is not None:
            raise ValueError(reason)
        return self

    @property
    def ungroupable(self) -> str | None:
        """Why the columns of this spec cannot be published in groups, in one sentence; None if they can."""
        protection = self.frequencies.protection
        if protection == "noise":
            return (
                'columns cannot be published in groups with [frequencies] protection = "noise": the counts of '
                "combinations of that many columns are those of single people, and noise leaves nothing of them; write "
                'protection = "threshold", under which what few people have is grouped, or "none"; public figures are '
                "rounded from exact counts"
            )
        if (reason := unfit_for_groups(self.guarantee.kind, (self.guarantee.model_extra or {}).get("set"))) is not None:
            return reason
        if self.history is not None and self.history.people == "same":
            return (
                'columns cannot be published in groups with [history] people = "same": what several versions tell of '
                'somebody is bounded together for one group only; write people = "different" if it is so, or publish '
                "fewer columns"
            )
        if self.utility == "variance" and not self.number_columns:
            return (
                'utility = "variance" needs a published column of numbers, and none is named under [numbers]; name '
                "one, such as [numbers.age] with its range, or take utility out"
            )
        if self.mechanism.name != "auto" or self.mechanism.reads_secret:
            asked = "reads_secret" if self.mechanism.reads_secret else f"[mechanism] {self.mechanism.name}"
            return f"{asked} is for columns that are published together, not in groups; take it out"
        least = [(self.disclosure.minimum_cell, "[disclosure] minimum_cell")]
        if protection == "threshold":
            least.append((self.frequencies.threshold, "[frequencies] threshold"))
        fewest, where = max(least)
        if self.groups.people < fewest:
            return (
                f"[groups] people is {self.groups.people}, fewer than the {fewest} of {where}, which holds for what a "
                "record shows as well; raise people"
            )
        return None

    def _require_drawable(self, column: str) -> None:
        """Refuse numbers within intervals where there are none, or where nothing says how they are drawn."""
        what = f'[numbers] draw = "within" of {column!r}'
        if column in self.secret:
            raise ValueError(f"{what} draws from what is published, and that column is secret; take draw out")
        if not self.has_bins(column):
            raise ValueError(
                f"{what} draws within the bins of a column, and it has none; give bins under "
                f"[recode.{toml_key(column)}], or take draw out"
            )
        name = drawn_name(column)
        if any(same_name(name, other) for other in self.columns):
            raise ValueError(f"{what} makes a column {name!r}, and there is one already; publish one of the two")

    def _require_means(self, column: str, numbers: NumberSettings) -> None:
        """Refuse means that are not one for each bin, inside it."""
        edges, means = self.recode[column].edges if column in self.recode else (), numbers.means or ()
        if not edges or numbers.range is None:
            raise ValueError(
                f"[numbers] {column!r} has means, which are of bins that are listed under [recode.{toml_key(column)}], "
                "within a range; give both, or take means out"
            )
        ends = (numbers.range[0], *edges, numbers.range[1])
        if len(means) != len(ends) - 1:
            raise ValueError(f"[numbers] {column!r} has {len(means)} means and {len(ends) - 1} bins; give one for each")
        under = float(numbers.step or 0)
        for (low, high), mean in zip(pairwise(ends), means, strict=True):
            if not low <= mean <= (high if high == ends[-1] else high - under):
                raise ValueError(f"[numbers] {column!r} has a mean of {mean} for its bin from {low} to {high}")

    def _require_weighable(self) -> None:
        """Refuse weights that are not published, or with nothing beside them."""
        if self.weight not in self.publish:
            raise ValueError(
                f"weight names the column {self.weight!r}, which is not published: weights are one more column under "
                f"the bound, in classes; add it to publish{did_you_mean(str(self.weight), self.publish)}"
            )
        if len(self.publish) < 2:
            raise ValueError("weight names the only published column; publish what is to be weighted, too")

    @model_validator(mode="after")
    def _weight_agrees(self) -> Self:
        if self.weight is None:
            return self
        column, key = self.weight, toml_key(self.weight)
        if self.publish or not self.groups.is_auto:
            self._require_weighable()
        numbers = self.numbers.get(column)
        if not self.has_bins(column) or numbers is None or numbers.range is None:
            raise ValueError(
                f"weight is published as classes, and next to a record a weight that is nearly unique is a name; give "
                f"bins under [recode.{key}], and range = [least, largest] under [numbers.{key}]"
            )
        if numbers.range[0] < 0:
            raise ValueError(f"[numbers] {column!r} is a weight, and its range begins below 0")
        if self.recode[column].groups or self.recode[column].minimum_count is not None:
            raise ValueError(
                f"[recode.{key}] joins classes of weights, and what is joined stands for no one weight; give fewer bins"
            )
        return self

    @property
    def drawn_columns(self) -> tuple[str, ...]:
        """The published columns of which a number is drawn within the interval of every record, in order."""
        return tuple(column for column in self.publish if column in self.numbers and self.numbers[column].draw)

    @model_validator(mode="after")
    def _numbers_agree(self) -> Self:
        for column, numbers in self.numbers.items():
            self._require_listed("numbers", column)
            edges = self.recode[column].edges if column in self.recode else ()
            if numbers.range is not None and edges:
                low, high = numbers.range
                if not low < edges[0] or not edges[-1] < high:
                    raise ValueError(
                        f"[numbers] {column!r} has a range from {low} to {high}, and [recode] an edge that is not "
                        "inside; change one of the two"
                    )
            if numbers.draw is not None:
                self._require_drawable(column)
            if numbers.means is not None:
                self._require_means(column, numbers)
        if self.utility == "estimation" and self.register is not None:
            raise ValueError(
                'utility = "estimation" is not there yet for versions about the same people; take utility out, or set '
                '[history] people = "different" if no person is in two versions'
            )
        for column in self.automatic:
            if column in self.secret:
                raise ValueError(
                    f'[recode] {column!r} is secret, and bins = "auto" finds what to publish; list its edges'
                )
            ranged = column in self.numbers and self.numbers[column].range is not None
            if self.frequencies.protection == "noise" and not ranged:
                raise ValueError(
                    f'[recode] bins = "auto" of {column!r} is made of its range alone where noise protects the '
                    f"frequencies; give range = [least, largest] under [numbers.{toml_key(column)}], or list the edges"
                )
        if self.utility != "variance":
            return self
        if self.register is not None:
            raise ValueError(
                'utility = "variance" is not there yet for versions about the same people; take utility out, or set '
                '[history] people = "different" if no person is in two versions'
            )
        if len(self.publish) != 1 and self.groups.of is None:
            groups = ", ".join(f"[{toml_text(column)}]" for column in self.publish)
            raise ValueError(
                'utility = "variance" is for one published column of numbers, or for groups of columns; write '
                f"publish = [{groups}] for one column after the other, publish one column, or take utility out"
            )
        for column in self.publish if self.groups.of is None else self.number_columns:
            if self.has_bins(column) and (column not in self.numbers or self.numbers[column].range is None):
                raise ValueError(
                    f'utility = "variance" needs the range of {column!r}, to know what its first and last bin stand '
                    f"for; give range = [least, largest] under [numbers.{toml_key(column)}]"
                )
        return self

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The columns under [numbers] that may be published, but for survey weights: what variance is explained of."""
        return tuple(column for column in self.numbers if column not in self.secret and column != self.weight)

    @model_validator(mode="after")
    def _order_is_of_the_source(self) -> Self:
        if self.source.format == "sql" and not self.output.shuffle:
            raise ValueError(
                "[output] shuffle = false is for sources whose rows have an order of their own: those of a database "
                "are read in the order of their values, the secret among them; take shuffle out"
            )
        return self

    @model_validator(mode="after")
    def _disclosure_agrees(self) -> Self:
        if self.frequencies.protection == "noise" and self.disclosure.on_breach == "refuse":
            raise ValueError(
                '[disclosure] on_breach = "refuse" is for frequencies without noise: whether noisy ones break a rule '
                "is chance, and drawing them again until they do not would spend epsilon each time; take on_breach out"
            )
        for column in self.disclosure.ordered:
            if column not in self.categories:
                raise ValueError(
                    f"[disclosure] ordered names {column!r}, whose values [categories] does not list in their order"
                    f"{did_you_mean(column, tuple(self.categories))}"
                )
        return self

    @property
    def names_set(self) -> bool:
        """Whether the text names the set of laws of its robust guarantee, instead of leaving it to what is usual.

        Of settings in memory nobody can tell, and they are taken as they are.
        """
        if self._text is None:
            return True
        said = tomllib.loads(self._text)["guarantee"]
        return "set" in said if isinstance(said, dict) else str(self.guarantee.model_dump().get("set")) in said.lower()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns the release needs: secret ones, then published ones."""
        return self.secret + self.publish

    @property
    def reading(self) -> Self:
        """This spec as one whose columns include the record key and the unit: what the source is opened with."""
        others = tuple(dict.fromkeys((*(self.record_key or ()), *(self.unit or ()))))
        return self.model_copy(update={"publish": self.publish + others}) if others else self

    @property
    def filtering(self) -> Self:
        """This spec as one whose columns include those of the conditions on records."""
        others = tuple(column for column in self.source.where if column not in self.columns)
        return self.model_copy(update={"publish": self.publish + others}) if others else self

    def publishing(self, columns: tuple[str, ...]) -> Self:
        """This spec with the columns that ``publish = "auto"`` means.

        Raises
        ------
        SpecError
            If one cannot be published, or a section is of a column that is none of them.
        """
        found = self.model_copy(update={"publish": columns})
        try:
            found._check_columns()
            for column, numbers in found.numbers.items():
                found._require_listed("numbers", column)
                if numbers.draw is not None:
                    found._require_drawable(column)
            if found.weight is not None:
                found._require_weighable()
        except ValueError as error:
            raise SpecError(str(error)) from error
        return found

    @property
    def register(self) -> str | None:
        """Name of the register that the people of this series are in; None where nobody says they are the same."""
        if self.history is None or self.history.people == "different":
            return None
        return self.history.register or self.name

    @property
    def follows_units(self) -> bool:
        """Whether people may have several rows: those of a unit are drawn one after the other, under one bound."""
        return self.unit is not None and self.register is not None

    @property
    def is_robust_over_versions(self) -> bool:
        """Whether the bound on all versions together holds under every set of tables that noise leaves open."""
        return self.register is not None and self.history is not None and self.history.robust

    @property
    def folder(self) -> Path:
        """The folder of the spec file, absolute."""
        return self._folder

    @property
    def text(self) -> str:
        """The file as it was read; for settings that never were a file, the settings as JSON."""
        return self._text if self._text is not None else self.model_dump_json(indent=1) + "\n"

    def resolve(self, path: str | os.PathLike[str]) -> Path:
        """A path of this spec as an absolute path, from the folder of the spec file; ``~`` is not expanded."""
        return Path(os.path.normpath(self._folder / path))

    @property
    def source_path(self) -> Path:
        """The source, absolute, where it is local."""
        return self.resolve(self.source.path)

    @property
    def source_address(self) -> str:
        """The source as an absolute path or as a URL; of a database, what of it may be shown."""
        return str(self.database) if self.source.format == "sql" else self._address(self.source.path)

    @property
    def source_title(self) -> str:
        """What the source is called: the last part of its address, or a table."""
        if self.source.format == "sql":
            return f"table {self.source.table}" if self.source.table is not None else "the query"
        return base_name(self.source_address)

    @property
    def database(self) -> Database:
        """The database of a source that is in one.

        Raises
        ------
        SpecError
            If the environment variable that is to hold its URL does not.
        """
        return resolved(self.source.path, self._folder)

    @property
    def _local_source(self) -> Path | None:
        """The file or folder that the source is, if it is one of this machine."""
        if self.source.format != "sql":
            return local_path(self.source_address)
        try:
            return self.database.file
        except SpecError:
            # A variable that is not set here is complained of by whoever reads the source.
            return None

    @property
    def output_url(self) -> str | None:
        """The URL under which releases appear; None where that is a local folder."""
        address = self._address(self.output.folder)
        return address if is_url(address) else None

    @property
    def output_folder(self) -> Path:
        """The folder in which releases are put together, absolute: the one they appear in, if that is local.

        Those that appear at a URL are put together in the workspace, apart for each URL, and kept there.
        """
        if self.output_url is not None:
            place = hashlib.sha256(self.output_url.rstrip("/").encode()).hexdigest()[:16]
            return self.workspace_folder / ".remote" / place
        return Path(self._address(self.output.folder))

    def _address(self, given: str) -> str:
        local = local_path(given)
        return given if local is None else str(self.resolve(local))

    @property
    def workspace_folder(self) -> Path:
        """The folder of private working files, absolute."""
        if self.output.workspace is None:
            return (self._folder if self.output_url is not None else self.output_folder.parent) / ".funnel"
        return self.resolve(self.output.workspace)

    @property
    def digest(self) -> str:
        """SHA-256 of everything the spec says, the same on every machine.

        A setting that is left at its default does not count, written or not: so a setting that a later version of
        funnel adds changes no digest. Of paths only the file name of the source counts: its content has a digest of its
        own. Who does the work, who has to approve, and where the release secret and the ledger are, does not count.
        """
        said = self.model_dump(
            mode="json",
            exclude_defaults=True,
            exclude={
                "output": {"folder", "workspace", "served_at"},
                "approval": True,
                "engine": True,
                "ledger": True,
                "history": {"on_drift"},
                "record_secret": True,
            },
        )
        # Where a database is, does not count either; the table or query does.
        said["source"]["path"] = "" if self.source.format == "sql" else PurePath(self.source.path).name
        return _digest({key: value for key, value in said.items() if value != {}})

    @property
    def hierarchies(self) -> Known:
        """What the hierarchies that its text names came to: of each column the values of every group."""
        said = {} if self._text is None else tomllib.loads(self._text).get("recode", {})
        return {column: self.recode[column].groups or {} for column, one in said.items() if "hierarchy" in one}

    @property
    def coding_digest(self) -> str:
        """SHA-256 of the settings that, with the source, decide the counts of secret and input, and nothing else.

        Settings at their defaults do not count, as in `digest`.
        """
        said = self.model_dump(
            mode="json",
            exclude_defaults=True,
            include={"secret", "publish", "record_key", "unit", "source", "recode", "categories", "limits", "numbers"},
        )
        del said["source"]["path"]
        if self.automatic:
            # What bins are chosen for.
            said["chosen for"] = [self.guarantee.canonical, self.utility]
        if self.frequencies.protection == "noise":
            # What of the noise decides which values have a name.
            said["noise"] = [self.frequencies.epsilon, self.frequencies.delta]
        if self.frequencies.protection == "threshold":
            # What values are grouped for.
            rules = self.disclosure
            said["rules"] = [
                self.frequencies.threshold,
                rules.minimum_cell,
                rules.dominance,
                rules.unique_share,
                *rules.ordered,
            ]
        return _digest(said)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same from the same folder, however it is written."""
        if not isinstance(other, ReleaseSpec):
            return NotImplemented
        return self._folder == other._folder and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash(self.digest)


def read_spec_text(path: str | os.PathLike[str]) -> str:
    """The text of a spec file, read once.

    Raises
    ------
    SpecError
        If it is too long, or cannot be read as UTF-8 text.
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_SPEC_BYTES + 1)
        _require_size(file, len(content))
        return content.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise SpecError(f"there is no spec file {file}; check the path") from error
    except IsADirectoryError as error:
        raise SpecError(f"{file} is a folder; name the spec file in it, which ends in .toml") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{file} is not a spec: it is not UTF-8 text") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name is not a path"
        raise SpecError(f"the spec file {str(file)!r} cannot be read: {reason}") from error


def _require_size(file: Path, size: int) -> None:
    if size > MAX_SPEC_BYTES:
        raise SpecError(
            f"{file.name} is not a spec: it is longer than {MAX_SPEC_BYTES:,} bytes; name the TOML file that describes "
            "the release, not its data"
        )


def _digest(said: dict[str, Any]) -> str:
    text = json.dumps(said, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
