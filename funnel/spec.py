"""ReleaseSpec: the one description of a release, read from a TOML file and validated before anything else happens."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, PrivateAttr, StrictStr, ValidationError, field_validator, model_validator

from funnel.databases import Database, resolved
from funnel.errors import SpecError
from funnel.hierarchy import Known, with_hierarchies
from funnel.protocol import INVARIANT
from funnel.settings.agreement import ROBUST_OVER_VERSIONS, conflicts, together
from funnel.settings.disclosure_rules import DOMINANCE_OF_PUBLISHED, DisclosureSettings
from funnel.settings.fields import Columns, Line, Section, Texts
from funnel.settings.groups import GroupSettings, Published, read_groups
from funnel.settings.guarantee import ConfidenceSettings, GuaranteeSettings, MechanismSettings
from funnel.settings.numbers import NumberSettings
from funnel.settings.protection_settings import Categories, FrequencySettings, Impossible
from funnel.settings.publication import ApprovalSettings, LedgerSettings, MetadataSettings, OutputSettings, secret_place
from funnel.settings.recode import OTHER, Recode
from funnel.settings.source import SourceSettings
from funnel.settings.version_settings import HistorySettings, folder_name
from funnel.settings.whole_record_agreement import why_not_by_class
from funnel.settings.work import EngineSettings, LimitSettings
from funnel.storage import base_name, is_url, local_path
from funnel.validation_message import validation_sentence

if TYPE_CHECKING:
    from funnel.settings.disclosure_rules import Rules

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
        Columns to publish, in order; in a spec file also a list of lists, or "auto". The secret columns may stand first
        among them under a guarantee with an attribute part.
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
        How the records of many columns are grouped into classes. In memory ``publish`` is always the flat tuple of
        columns; of "auto" it is empty until `funnel.source.resolved_columns` has seen the source.
    recode : mapping of column name to Recode
        For secret and published columns only.
    categories : mapping of column name to tuple of str
        The values that a secret or published column may have, in order; all others are one category.
    complete : tuple of str
        Columns of which every record has one of the listed values, or a number in a bin: under noise they have no
        category for other or missing values. A record that has none stops the release.
    impossible : tuple of mapping of column name to tuple of str
        Published values that do not go together, as they are after recoding: a combination that has one of those listed
        of every column named cannot exist. It is in no count, with noise or without, and so never published; a record
        that has one stops the release.
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
    complete: Texts = ()
    impossible: Impossible = ()
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
    _whole: tuple[str, ...] = PrivateAttr(default=())
    _asked: MechanismSettings | None = PrivateAttr(default=None)

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
    def parse(
        cls, text: str, path: str | os.PathLike[str], hierarchies: Known | None = None, kept: bool = False
    ) -> Self:
        """Validate the text of a spec file that was read already; ``path`` says whose it is.

        What its hierarchies came to may be given, as `hierarchies` has it; by default they are read. A copy that is
        ``kept`` in a release lies in the output folder, and nothing is ever read or written where it says.

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
            spec = cls.of(settings, file.parent, hierarchies, kept)
        except SpecError as error:
            raise SpecError(f"{file.name}: {error}") from error
        spec._text = text
        return spec

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any],
        folder: str | os.PathLike[str] = ".",
        hierarchies: Known | None = None,
        kept: bool = False,
    ) -> Self:
        """Validate settings that are in memory already; relative paths start at ``folder``.

        Hierarchies, and whether it is a copy that is kept, as `parse` has them.

        Raises
        ------
        SpecError
            As `load`.
        """
        try:
            spec = cls.model_validate(with_hierarchies(settings, Path(folder), cls.of, hierarchies))
        except ValidationError as error:
            raise SpecError(validation_sentence(error, cls)) from error
        spec = spec.with_declared_bins()
        spec._folder = Path(folder).absolute()
        if not kept:
            spec._require_apart()
        return spec

    def with_declared_bins(self) -> Self:
        """Where noise protects the frequencies, bins that are to be found are a function of the range that is declared.

        Nothing in the source has a part in it, so it costs no epsilon.
        """
        if not self.frequencies.kind.is_noisy or not self.automatic:
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
    def _agrees(self) -> Self:
        if found := conflicts(self):
            raise ValueError(together(found))
        return self

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

    @property
    def drawn_columns(self) -> tuple[str, ...]:
        """The published columns of which a number is drawn within the interval of every record, in order."""
        return tuple(column for column in self.publish if column in self.numbers and self.numbers[column].draw)

    def by_class(self, column: str) -> Self:
        """This spec for records that are counted and drawn by their class, which takes the place of unknown columns."""
        publish = (*(self.secret if self.publishes_secret else ()), *self.groups.known_columns, column)
        update: dict[str, object] = {"name": INVARIANT}
        if self.utility == "estimation":
            # The variances of all cells of any table are at most twice the share of records that change (columns.md).
            update["weights"] = "share"
        mechanism = self.mechanism.model_copy(update=update)
        found = self.model_copy(update={"publish": publish, "mechanism": mechanism})
        found._whole, found._asked = self.publish, self.mechanism
        return found

    @property
    def whole(self) -> Self:
        """This spec for whole records, whatever they are drawn by."""
        return self.model_copy(update={"publish": self._whole}) if self.is_by_class else self

    @property
    def not_by_class(self) -> str | None:
        """Why records cannot be counted and drawn by classes, in one sentence; None if they can."""
        return why_not_by_class(self)

    @property
    def is_by_class(self) -> bool:
        """Whether records are counted and drawn by their class."""
        return bool(self._whole)

    @property
    def rules(self) -> Rules:
        """The rules of [disclosure], for what records are counted by."""
        return self.rules_of(self.is_by_class)

    def rules_of(self, by_class: bool) -> Rules:
        """The rules of [disclosure], for classes of records or for combinations of values."""
        rules = replace(self.disclosure.rules, by_class=by_class)
        if by_class and self.publishes_secret and "dominance" not in self.disclosure.model_fields_set:
            # Tables of the secret that are right on average tell as much (0089).
            return replace(rules, dominance=DOMINANCE_OF_PUBLISHED)
        return rules

    @property
    def released(self) -> tuple[str, ...]:
        """The columns of the released records, in order."""
        return (*self._whole, self.publish[-1]) if self.is_by_class else self.publish

    @property
    def inputs(self) -> tuple[str, ...]:
        """The published columns that are not secret: what records are counted by, beside the secret."""
        return tuple(column for column in self.publish if column not in self.secret)

    @property
    def publishes_secret(self) -> bool:
        """Whether the secret columns are published too."""
        return self.inputs != self.publish

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns the release needs: secret ones, then the other published ones."""
        return self.secret + self.inputs

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
        if contradictions := conflicts(found):
            raise SpecError(together(contradictions))
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
    def one_secret(self) -> str | None:
        """Why all rows of a unit have to have one secret, and what to write where each has its own; None if not."""
        if self.frequencies.kind.is_noisy:
            return (
                "noise on frequencies leaves open how secrets follow one another within a unit: write "
                '[frequencies] protection = "none"'
            )
        if self.guarantee.kind in ROBUST_OVER_VERSIONS:
            return f"{self.guarantee.canonical} is kept for one secret of a unit: name a guarantee that is not robust"
        if self.bounded_secrets == "current":
            return 'secrets = "current" bounds one secret of a unit: write [history] secrets = "all"'
        return None

    @property
    def is_robust_over_versions(self) -> bool:
        """Whether the bound on all versions together holds under all that noise, or a sample, leaves open of them."""
        robust = self.history is not None and (self.history.robust or self.guarantee.kind in ROBUST_OVER_VERSIONS)
        return self.register is not None and robust

    @property
    def bounded_secrets(self) -> Literal["all", "current"]:
        """Of which versions about the same people secrets are bounded."""
        asked = None if self.history is None else self.history.secrets
        return asked or ("current" if self.is_robust_over_versions else "all")

    @property
    def asks_for_movers(self) -> bool:
        """Whether everything published about a person is to be bounded for "mover-stayer" too, by name."""
        asked = None if self.register is None or self.history is None else self.history.observers
        return asked is not None and "mover-stayer" in asked

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
        # As the text says, which may leave the mechanism open, or the columns to the source.
        if self.groups.auto:
            said["publish"] = []
        elif self.is_by_class:
            said["publish"] = list(self._whole)
        if self._asked is not None:
            said["mechanism"] = self._asked.model_dump(mode="json", exclude_defaults=True)
        if self.groups.classes is not None:
            # What it holds decides the classes of a snapshot, which has a digest of its own.
            said["groups"]["classes"] = PurePath(self.groups.classes).name
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
            include={
                "secret",
                "publish",
                "record_key",
                "unit",
                "source",
                "recode",
                "categories",
                "complete",
                "impossible",
                "limits",
                "numbers",
            },
        )
        del said["source"]["path"]
        if self.automatic:
            # What bins are chosen for.
            said["chosen for"] = [self.guarantee.canonical, self.utility]
        if self.frequencies.kind.is_noisy:
            # What of the noise decides which values have a name.
            said["noise"] = [self.frequencies.epsilon, self.frequencies.delta]
        if self.frequencies.kind.groups_values:
            # What values are grouped for.
            rules = self.disclosure
            said["rules"] = [
                self.frequencies.threshold,
                rules.minimum_cell,
                rules.dominance,
                rules.unique_share,
                *rules.ordered,
                *(f"blank {column}" for column in rules.blank),
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
