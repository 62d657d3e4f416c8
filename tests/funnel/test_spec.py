"""The spec: what a good one says, and that a bad one is answered with one sentence about its first problem."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from funnel import validation_message as complaints
from funnel.errors import SpecError
from funnel.guarantees import parse_guarantee
from funnel.recount.promise import declared_promise, read_promise
from funnel.settings.work import EngineSettings
from funnel.spec import ReleaseSpec
from funnel.wording import toml_key

EXAMPLE = Path(__file__).parents[2] / "data" / "adult-education.toml"

GOOD: dict[str, Any] = {
    "name": "adult-education",
    "title": "Education of adults",
    "secret": ["marital-status"],
    "publish": ["education", "age"],
    "source": {"path": "adult.parquet", "missing": ["?"]},
    "recode": {"age": {"bins": [25, 45.5, 65]}},
    "guarantee": {"kind": "lip", "epsilon": 1.0},
    "metadata": {"licence": "CC-BY-4.0"},
}


def changed(path: str, value: object) -> dict[str, Any]:
    """The good settings with one changed; a value of None takes it away."""
    settings = copy.deepcopy(GOOD)
    *parents, last = path.split("/")
    place = settings
    for parent in parents:
        place = place.setdefault(parent, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return settings


def complaint(settings: Mapping[str, Any]) -> str:
    with pytest.raises(SpecError) as caught:
        ReleaseSpec.of(settings)
    message = str(caught.value)
    assert "\n" not in message
    assert "pydantic" not in message
    assert "validation" not in message
    return message


def refusal(settings: Mapping[str, Any]) -> str | None:
    try:
        assert len(ReleaseSpec.of(settings).digest) == 64
    except SpecError as error:
        return str(error)
    return None


def load(folder: Path, text: str | bytes) -> ReleaseSpec:
    path = folder / "release.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return ReleaseSpec.load(path)


def toml(settings: Mapping[str, Any], prefix: str = "") -> str:
    """Settings as TOML text, every table with a header of its own."""
    plain = {key: value for key, value in settings.items() if not isinstance(value, Mapping)}
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in plain.items()]
    for key, value in settings.items():
        if isinstance(value, Mapping):
            lines += [f"[{prefix}{json.dumps(key)}]", toml(value, f"{prefix}{json.dumps(key)}.")]
    return "\n".join(lines)


def test_the_example_says_what_its_readers_expect() -> None:
    spec = ReleaseSpec.load(EXAMPLE)
    assert spec.name == "adult-education"
    assert spec.columns == ("marital-status", "education")
    assert spec.guarantee.canonical == "rlip:1.0,0.05"
    assert (spec.frequencies.protection, spec.frequencies.epsilon) == ("noise", 1.0)
    assert spec.mechanism.name == "auto"
    assert not spec.mechanism.reads_secret
    assert spec.source_path == EXAMPLE.parent / "adult.parquet"
    assert spec.output_folder == EXAMPLE.parents[1] / "releases"
    assert spec.workspace_folder == EXAMPLE.parents[1] / ".funnel"
    assert "10.24432/C5XW20" in str(spec.metadata.sources[0].path)


def test_defaults_are_the_safe_ones() -> None:
    spec = ReleaseSpec.of(GOOD, "/somewhere")
    assert spec.output.shuffle
    assert not spec.output.csv
    assert not spec.mechanism.reads_secret
    assert spec.source.format == "parquet"
    assert spec.source.on_missing == "category"
    assert spec.workspace_folder == Path("/somewhere/.funnel")
    assert (spec.limits.max_symbols, spec.limits.max_inputs, spec.confidence.alpha) == (1000, 1_000_000, 0.05)


def test_a_file_says_the_same_as_the_settings_in_memory(tmp_path: Path) -> None:
    assert load(tmp_path, toml(GOOD)) == ReleaseSpec.of(GOOD, tmp_path)
    # As some editors save it.
    assert load(tmp_path, b"\xef\xbb\xbf" + toml(GOOD).replace("\n", "\r\n").encode()) == ReleaseSpec.of(GOOD, tmp_path)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("source/pth", "a.parquet", "[source] pth: unknown setting; did you mean path?"),
        (
            "history",
            {"people": "same", "reserve": 0.9},
            "reserve: unknown setting; it is called budget_fraction now",
        ),
        ("groups", {"people": 100}, "[groups] people: unknown setting; it is called min_records now"),
        ("groups", {"without": ["id"]}, "[groups] without: unknown setting; it is called exclude now"),
        ("frequencies", {"total": 5.0}, "[frequencies] total: unknown setting; it is called max_epsilon now"),
        ("titel", "x", "titel: unknown setting; did you mean title?"),
        ("recode/age/bin", [1], "[recode.age] bin: unknown setting; did you mean bins?"),
        (
            "metadata/sources",
            [{"titel": "x"}],
            "[metadata] sources, entry 1, titel: unknown setting; did you mean title?",
        ),
        ("metadata/license", "x", "[metadata] license: unknown setting; did you mean licence?"),
        ("guarantee/epsilom", 1.0, "[guarantee] lip does not take epsilom; did you mean epsilon?"),
        ("qqqqqq", 1, "qqqqqq: unknown setting"),
        ("name", "../x", "'../x' must be lower-case letters, digits and single hyphens"),
        ("name", "internal", "'internal' is the name of a folder of the workspace; choose another one"),
        ("name", "Adult", "lower-case"),
        ("name", "", "lower-case"),
        ("name", "a\n", "lower-case"),
        ("name", 3, "name must be text in quotes"),
        ("title", " ", "title must not be empty"),
        ("title", "a\nb", "title must be one line"),
        ("secret", [], "secret must name at least one column"),
        ("secret", "marital-status", "secret must be a list of texts"),
        ("secret", ["a", "a"], "secret lists the column 'a' twice"),
        ("publish", [], "publish must name at least one column"),
        ("publish", ["education", "age", "age"], "publish lists the column 'age' twice"),
        ("publish", ["age", 3], "publish must be a list of texts"),
        ("publish", ["age", ""], "publish must not be empty"),
        ("publish", ["age", "marital-status"], "'marital-status' is both secret and published"),
        ("source", None, "[source] is missing"),
        ("source", "adult.parquet", "[source] must be a table of settings"),
        ("source/path", None, "[source] path is missing"),
        ("source/path", "adult.xls", "cannot tell the format by '.xls'"),
        (
            "source/format",
            "word",
            "[source] format must be 'parquet', 'csv', 'arrow', 'orc', 'stata', 'spss', 'sas', 'excel' or 'sql'",
        ),
        ("source/on_missing", "ignore", "[source] on_missing must be 'category' or 'drop'"),
        ("source/missing", [9], "[source] missing must be a list of texts"),
        ("source/missing_label", "25 to under 45.5", "missing_label '25 to under 45.5' is also a category"),
        ("source/missing_label", "x" * 201, "[source] missing_label must have at most 200 characters"),
        ("source/delimiter", "ab", "[source] delimiter must be one character"),
        ("recode/income", {"minimum_count": 5}, "'income' is neither secret nor published"),
        # Which of the two is misspelt nobody knows before the source is read: the one in the list is named first.
        (
            "recode/educaton",
            {"minimum_count": 5},
            "publish names 'education' and [recode] 'educaton', which is neither secret nor published; if they are one "
            "column, write its name in the source in both",
        ),
        ("publish", ["education", "agee"], "publish names 'agee' and [recode] 'age', which is neither"),
        ("categories/marital_statu", ["a"], "secret names 'marital-status' and [categories] 'marital_statu', which"),
        ("recode/age", {}, "[recode.age] says nothing to do; give bins = [...], period, groups or minimum_count = ..."),
        ("recode/age", {"bins": []}, "[recode.age] bins must be a list of at least one finite number"),
        ("recode/age", {"bins": [25, 25]}, "[recode.age] bins must increase from edge to edge, but 25 follows 25"),
        ("recode/age", {"bins": [45, 25]}, "25 follows 45"),
        ("recode/age", {"bins": [1.0, float("nan")]}, "[recode.age] bins must be a list of at least one finite number"),
        ("recode/age", {"bins": [float("inf")]}, "finite"),
        ("recode/age", {"bins": [True, 2]}, "finite number"),
        ("recode/age", {"bins": 25}, "must be a list of at least one finite number, such as [25, 45, 65]"),
        ("recode/education", {"groups": {}}, "[recode.education] groups must name at least one group with its values"),
        ("recode/education", {"groups": {"low": []}}, "groups must list the values of the group 'low'"),
        ("recode/education", {"groups": {"low": "9th"}}, "groups, low must be a list of texts in quotes"),
        (
            "groups",
            {"known": "single"},
            'known = "single" in [groups] is for srlip, with lip or without, and lip:1.0 is',
        ),
        ("groups", {"known": "any"}, "[groups] known"),
        ("recode/education", {"groups": {"low": ["9th"], "no": ["9th"]}}, "puts the value '9th' into a group twice"),
        (
            "recode/education",
            {"groups": {"low": ["no"], "no": ["9th"]}},
            "puts 'no', the name of a group, into the group",
        ),
        ("recode/education", {"groups": {"(missing)": ["9th"]}}, "missing_label '(missing)' is also a category made"),
        ("recode/education", {"groups": {"Other": ["9th"]}, "minimum_count": 2}, "has a group named 'Other'"),
        ("recode/age", {"bins": [25], "groups": {"x": ["under 26"]}}, "is none of its bins; did you mean under 25?"),
        ("recode/age", {"bins": [25], "groups": {"under 25": ["25 and over"]}}, "has a group named 'under 25'"),
        ("recode/age", {"minimum_count": 0}, "[recode.age] minimum_count must be at least 1"),
        ("recode/age", {"minimum_count": 2.5}, "[recode.age] minimum_count must be a whole number"),
        ("recode/age", {"minimum_count": True}, "[recode.age] minimum_count must be a whole number"),
        ("recode/age", {"bins": [3], "other": "rest"}, "[recode.age] names other"),
        ("recode/age", {"bins": [3], "minimum_count": 9, "other": "under 3"}, "has a bin named 'under 3'"),
        ("guarantee", None, "[guarantee] is missing"),
        ("guarantee", {"kind": "lip"}, "lip lacks its epsilon"),
        ("guarantee/kind", "lipp", "[guarantee] kind 'lipp' is not a guarantee; did you mean lip?"),
        ("guarantee/epsilon", 0.0, "[guarantee] epsilon must be above zero: 0 asks that a record tell nothing at all"),
        ("guarantee/epsilon", -1.0, "[guarantee] lip needs a finite epsilon >= 0 (nats), not -1.0"),
        ("guarantee/epsilon", float("inf"), "[guarantee] lip needs a finite epsilon >= 0 (nats), not inf"),
        ("guarantee/epsilon", float("nan"), "[guarantee] lip needs a finite epsilon >= 0 (nats), not nan"),
        ("guarantee/epsilon", 1000, "[guarantee] epsilon of 1000 nats is no protection at all"),
        ("guarantee/epsilon", True, "[guarantee] epsilon must be a number"),
        ("guarantee/epsilon", "1.0", "[guarantee] epsilon must be a number"),
        ("guarantee/lower", 1.0, "lip does not take lower"),
        ("guarantee", {"kind": "alip", "lower": -1.0, "upper": 1.0}, "alip needs a lower >= 0 (nats), not -1.0"),
        ("guarantee", {"kid": "lip", "epsilon": 1.0}, "[guarantee] kid: unknown setting; did you mean kind?"),
        ("guarantee", {"epsilon": 1.0}, "[guarantee] kind is missing; every spec must state it"),
        ("guarantee", {"kind": 3, "epsilon": 1.0}, "[guarantee] kind must be text in quotes"),
        ("guarantee", "lip", "lip lacks its epsilon; write for instance 'lip:1.0'"),
        ("guarantee", "lip:much", "needs a number after the colon"),
        ("guarantee", "lip:nan", "lip needs a finite epsilon >= 0 (nats), not nan"),
        ("guarantee", "lip:0", "epsilon must be above zero"),
        ("guarantee", "ldq:1", "'ldq' is not a guarantee; did you mean ldp?"),
        ("guarantee", 1.0, "[guarantee] must be a table of settings"),
        ("mechanism", {"name": "gr"}, "[mechanism] name 'gr' is not a mechanism; did you mean grr?"),
        ("mechanism", "optimum", "'optimum' is not a mechanism; did you mean optimal?"),
        ("mechanism", {"reads_secret": "yes"}, "[mechanism] reads_secret must be true or false"),
        ("mechanism", {"reads_secret": 1}, "[mechanism] reads_secret must be true or false"),
        ("mechanism", {"time_limit": 0}, "[mechanism] time_limit must be above 0"),
        (
            "mechanism",
            {"name": "optimal", "weights": "share"},
            '[mechanism] weights = "share" is for records that an invariant protocol leaves unchanged, and name is '
            '"optimal"; write name = "invariant", or take weights out',
        ),
        ("mechanism", {"weights": "uniform"}, 'and name is "auto"; write name = "invariant"'),
        ("mechanism", {"name": "invariant", "weights": "counts"}, "weights must be 'root', 'share' or 'uniform'"),
        ("mechanism", {"time_limit": float("inf")}, "[mechanism] time_limit must be a finite number"),
        ("output", {"workspace": "releases/private"}, "[output] workspace must not lie inside folder"),
        ("output", {"workspace": "releases"}, "[output] workspace must not lie inside folder"),
        ("output", {"csv": "no"}, "[output] csv must be true or false"),
        ("metadata", None, "[metadata] is missing"),
        ("metadata", {}, "[metadata] licence is missing"),
        ("metadata/contact_email", "nobody", "[metadata] contact_email 'nobody' is not an e-mail address"),
        ("metadata/contact_email", "a@b@c.org", "is not an e-mail address"),
        ("metadata/contact_email", "a b@c.org", "is not an e-mail address"),
        ("metadata/licence_url", "javascript:alert(1)", "[metadata] licence_url must be a web address"),
        ("metadata/sources", [{"title": "x", "path": "javascript:alert(1)"}], "sources, entry 1, path must be an http"),
        ("limits", {"max_symbols": 1}, "[limits] max_symbols must be at least 2"),
        ("confidence", {"alpha": 1.0}, "[confidence] alpha must be below 1"),
        ("confidence", {"alpha": 0.0}, "[confidence] alpha must be above 0"),
        ("engine", 2, "[engine] must be a table of settings"),
        ("engine", "spark", "[engine] kind must be 'local' or 'dask'"),
        ("engine", {"kind": "spark"}, "[engine] kind must be 'local' or 'dask'"),
        ("engine", {"wokers": 2}, "[engine] wokers: unknown setting; did you mean workers?"),
        ("engine", {"workers": 0}, "[engine] workers must be at least 1"),
        ("engine", {"workers": 1025}, "[engine] workers must be at most 1024"),
        ("engine", {"workers": 2.5}, "[engine] workers must be a whole number"),
        ("engine", {"workers": True}, "[engine] workers must be a whole number"),
        ("engine", {"scheduler": "tcp://10.0.0.5:8786"}, '[engine] names a scheduler, which is for kind = "dask"'),
        ("engine", {"kind": "dask", "scheduler": 8786}, "[engine] scheduler must be text in quotes"),
        ("engine", {"kind": "dask", "scheduler": ""}, "[engine] scheduler must not be empty"),
        ("engine", {"kind": "dask", "scheduler": "10.0.0.5:8786"}, "give one such as tcp://10.0.0.5:8786"),
        (
            "engine",
            {"kind": "dask", "scheduler": "tcp://10.0.0.5"},
            "[engine] scheduler 'tcp://10.0.0.5' is no address",
        ),
        ("record_key", "id", "record_key must be a list of texts"),
        ("record_key", [], "record_key must name at least one column"),
        ("record_key", [""], "record_key must not be empty"),
        ("record_key", ["id", "id"], "record_key lists the column 'id' twice"),
        ("record_key", ["age"], "the column 'age' is a record key, and secret or published as well"),
        ("record_key", ["Marital Status"], "the column 'Marital Status' is a record key, and secret or published"),
        ("record_secret", 3, "record_secret must be text in quotes"),
        ("record_secret", "", "record_secret must not be empty"),
        ("record_secret", "environment:A-B", 'record_secret must say where the secret is, "file", "environment:NAME"'),
        ("record_secret", "file", "names no record_key"),
        ("unit", "id", "unit must be a list of texts"),
        ("unit", ["Marital Status"], "the column 'Marital Status' is a unit, and secret or published as well; a unit"),
        ("history", "same", "[history] must be a table of settings"),
        ("history", {}, "[history] people is missing"),
        ("history", {"peple": "same"}, "[history] peple: unknown setting; did you mean people?"),
        ("history", {"people": "some"}, "[history] people must be 'same' or 'different'"),
        ("history", {"people": "same"}, '[history] people = "same" needs a record_key, by which a person is known'),
        (
            "history",
            {"people": "different", "register": "panel"},
            '[history] gives a register, which is for people = "',
        ),
        (
            "history",
            {"people": "different", "budget_fraction": 1.0},
            "[history] gives a budget_fraction",
        ),
        ("history", {"people": "same", "budget_fraction": 0.0}, "[history] budget_fraction must be above 0"),
        ("history", {"people": "same", "budget_fraction": 1.01}, "[history] budget_fraction must be at most 1"),
        ("history", {"people": "same", "budget_fraction": "all"}, "[history] budget_fraction must be a number"),
        ("history", {"people": "same", "on_drift": "warn"}, "[history] on_drift must be 'fail' or 'continue'"),
        (
            "history",
            {"people": "same", "register": "../x"},
            "[history] register '../x' must be lower-case letters, dig",
        ),
        ("history", {"people": "same", "register": "x" * 81}, "because it becomes a folder"),
        ("ledger", {"url": "mysql://db/x"}, "[ledger] url must be a database, such as postgresql+psycopg://"),
        ("ledger", {"url": "environment:A-B"}, "[ledger] url must be a database"),
        ("ledger", {"url": ""}, "[ledger] url must not be empty"),
    ],
)
def test_a_wrong_setting_is_named_in_one_sentence(path: str, value: object, expected: str) -> None:
    message = complaint(changed(path, value))
    assert expected in message
    assert "more)" not in message


def test_a_secret_in_a_spec_is_refused_and_not_repeated() -> None:
    message = complaint({**GOOD, "record_key": ["id"], "record_secret": "Zebediah-0123456789abcdef"})
    assert message.startswith("record_secret must say where the secret is")
    assert "Zebediah" not in message


def test_who_works_does_not_change_a_release() -> None:
    keyed = {**GOOD, "record_key": ["id"]}
    assert ReleaseSpec.of({**keyed, "engine": "dask"}).engine == EngineSettings(kind="dask")
    engine = {"kind": "dask", "scheduler": "tls://scheduler.example:8786"}
    described = ReleaseSpec.of({**keyed, "record_secret": "environment:SECRET", "engine": engine})
    assert described.digest == ReleaseSpec.of(keyed).digest
    assert described.coding_digest == ReleaseSpec.of(keyed).coding_digest
    assert described.digest != ReleaseSpec.of(GOOD).digest


def test_who_the_people_are() -> None:
    keyed = {**GOOD, "record_key": ["id"]}
    alone = ReleaseSpec.of(keyed)
    assert (alone.history, alone.register, alone.reading.publish) == (None, None, (*alone.publish, "id"))
    different = ReleaseSpec.of({**keyed, "history": {"people": "different", "on_drift": "fail"}})
    assert different.register is None
    same = ReleaseSpec.of({**keyed, "history": {"people": "same"}, "unit": ["id"]})
    assert same.history is not None
    assert (same.register, same.history.budget_fraction, same.history.on_drift) == (same.name, 1.0, "continue")
    assert same.reading.publish == (*same.publish, "id")
    named = ReleaseSpec.of({**keyed, "history": {"people": "same", "register": "panel", "budget_fraction": 0.9}})
    assert named.register == "panel"
    assert len({spec.digest for spec in (alone, different, same, named)}) == 4
    # What is counted is the same.
    assert alone.coding_digest == different.coding_digest == named.coding_digest != same.coding_digest
    assert "is not the record_key" in complaint({**keyed, "history": {"people": "same"}, "unit": ["household"]})
    # A unit that is followed is known again by itself.
    unit = ReleaseSpec.of({**GOOD, "history": {"people": "same"}, "unit": ["id"]})
    assert (unit.record_key, unit.follows_units, unit.digest) == (("id",), True, same.digest)
    assert ReleaseSpec.of({**GOOD, "history": {"people": "different"}, "unit": ["id"]}).record_key is None


def test_a_ledger_changes_no_release_and_holds_no_password() -> None:
    urls = ("environment:LEDGER", "postgresql+psycopg://ledger@db.example:5432/funnel", "sqlite:////srv/ledger.sqlite")
    described = [ReleaseSpec.of({**GOOD, "ledger": {"url": url}}) for url in urls]
    assert [spec.ledger.url for spec in described] == list(urls)
    assert {spec.digest for spec in described} == {ReleaseSpec.of(GOOD).digest}
    message = complaint({**GOOD, "ledger": {"url": "postgresql://ledger:Zebediah@db.example/funnel"}})
    assert message.startswith("[ledger] url holds a password, which has no place in a spec")
    assert "Zebediah" not in message


def test_all_problems_are_told_at_once() -> None:
    message = complaint({**GOOD, "name": "A B", "title": "", "publish": []})
    assert message.startswith("name 'A B' must be")
    assert message.endswith("; and title must not be empty; and publish must name at least one column")
    without = {name: value for name, value in GOOD.items() if name not in ("secret", "publish")}
    assert complaint(without) == (
        "secret is missing; every spec must state it; and publish is missing; every spec must state it"
    )
    assert "; and [limits] max_symbols must be at least" in complaint(
        {**GOOD, "metadata": {}, "limits": {"max_symbols": 1}}
    )
    many = {name: 7 for name in ("name", "title", "secret", "publish", "mechanism", "description", "weight", "unit")}
    assert re.search(r" \(and 2 more: weight, \[mechanism\]\)$", complaint({**GOOD, **many}))


def test_a_misspelt_setting_is_looked_for_in_all_sections() -> None:
    assert complaint({**GOOD, "threshhold": 3}) == "threshhold: unknown setting; did you mean [frequencies] threshold?"
    assert complaint({**GOOD, "wholly": 3}) == "wholly: unknown setting"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"mechanism": {"name": "auto", "max_inputs": 9}},
            "[mechanism] max_inputs: unknown setting; it belongs in [limits]",
        ),
        ({"bins": [1]}, "bins: unknown setting; it belongs in [recode.COLUMN]"),
        (
            {"limits": {"utility": "variance"}},
            "[limits] utility: unknown setting; it belongs in no section: write it above the first line in [brackets]",
        ),
        ({"limits": {"colour": 1}}, "[limits] colour: unknown setting"),
    ],
)
def test_a_setting_in_the_wrong_section_is_told_the_right_one(settings: dict[str, Any], expected: str) -> None:
    assert complaint({**GOOD, **settings}) == expected


def test_a_word_for_all_columns_is_told_the_one_there_is() -> None:
    assert complaint({**GOOD, "publish": "all"}) == (
        'publish must be a list of columns in quotes, such as ["one", "two"], a list of such lists, or "auto"'
    )


def test_a_misspelt_setting_is_not_reported_as_missing_too() -> None:
    settings = changed("source", {"pth": "adult.parquet"})
    assert complaint(settings) == "[source] pth: unknown setting; did you mean path?"


def test_unknown_settings_are_named_at_once() -> None:
    settings = {
        **changed("source", {"path": "a.parquet", "delimeter": ";"}),
        "titel": "x",
        "recode": {"age": {"bns": [1]}},
    }
    assert complaint(settings) == (
        "[source] delimeter: unknown setting; did you mean delimiter?; unknown as well: [recode.age] bns (did you mean "
        "bins?), titel (did you mean title?)"
    )


def test_a_column_name_with_dots_is_quoted_as_toml_wants_it() -> None:
    settings = {**GOOD, "publish": ["a.b c"], "recode": {"a.b c": {"bins": []}}}
    assert complaint(settings).startswith('[recode."a.b c"] bins must be')


def test_broken_toml_is_answered_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"release\.toml is not valid TOML: .*line 2"):
        load(tmp_path, 'name = "x"\ntitle = \n')


def test_a_setting_of_a_file_is_named_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"^release\.toml: title must not be empty$"):
        load(tmp_path, toml({**GOOD, "title": ""}))


def test_nan_and_inf_of_toml_are_refused(tmp_path: Path) -> None:
    for literal in ("nan", "inf", "-inf", "0", "-0.0"):
        text = toml({**GOOD, "guarantee": {"kind": "lip", "epsilon": 7777}}).replace("7777", literal)
        with pytest.raises(SpecError, match=r"\[guarantee\] (lip needs a finite )?epsilon "):
            load(tmp_path, text)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x = " + b"[" * 5000, b"\x00", b""])
def test_what_is_no_spec_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SpecError, match=r"release\.toml"):
        load(tmp_path, content)


def test_a_spec_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"there is no spec file .*none\.toml"):
        ReleaseSpec.load(tmp_path / "none.toml")
    with pytest.raises(SpecError, match="is a folder"):
        ReleaseSpec.load(tmp_path)
    with pytest.raises(SpecError, match="its name is not a path"):
        ReleaseSpec.load("a\0b")


def test_a_spec_is_immutable_and_travels(tmp_path: Path) -> None:
    spec = ReleaseSpec.of(GOOD, tmp_path)
    with pytest.raises(ValidationError):
        spec.title = "other"  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec
    assert again.source_path == tmp_path / "adult.parquet"
    assert hash(again) == hash(spec)


def test_relative_paths_start_at_the_folder_of_the_spec(tmp_path: Path) -> None:
    spec = ReleaseSpec.of({**GOOD, "output": {"folder": "../out"}}, tmp_path / "specs")
    assert spec.output_folder == tmp_path / "out"
    assert spec.workspace_folder == tmp_path / ".funnel"
    assert spec.resolve("/absolute/file") == Path("/absolute/file")


@pytest.mark.parametrize(
    ("link", "leads_to", "output"),
    [
        # A workspace that a link leads into the output folder, and an output folder that a link leads above it.
        ("private", "releases/inside", {"folder": "releases", "workspace": "private"}),
        ("public", ".", {"folder": "public", "workspace": "private"}),
    ],
)
def test_a_link_does_not_hide_that_the_workspace_is_published(
    link: str, leads_to: str, output: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / leads_to).mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / leads_to)
    with pytest.raises(SpecError, match="workspace must not lie inside folder"):
        ReleaseSpec.of({**GOOD, "output": output}, tmp_path)
    # The same names without a link are fine.
    ReleaseSpec.of({**GOOD, "output": output}, tmp_path / "elsewhere")


def test_the_digest_does_not_depend_on_the_machine() -> None:
    here = ReleaseSpec.of(GOOD, "/a")
    there = ReleaseSpec.of(
        {**GOOD, "source": {"path": "/data/adult.parquet", "missing": ["?"]}, "output": {"folder": "/o"}}, "/b"
    )
    assert here.digest == there.digest
    assert here.coding_digest == there.coding_digest


@pytest.mark.parametrize(
    ("path", "value", "coding_changes"),
    [
        ("title", "other", False),
        ("guarantee/epsilon", 2.0, False),
        ("mechanism", "optimal", False),
        ("secret", ["income"], True),
        ("publish", ["age", "education"], True),
        ("recode/age/bins", [25], True),
        ("source/missing", [], True),
        ("source/on_missing", "drop", True),
        ("limits", {"max_symbols": 17}, True),
        ("limits", {"max_inputs": 17}, True),
    ],
)
def test_the_digest_tells_what_a_change_concerns(path: str, value: object, coding_changes: bool) -> None:
    before, after = ReleaseSpec.of(GOOD), ReleaseSpec.of(changed(path, value))
    assert before.digest != after.digest
    assert (before.coding_digest != after.coding_digest) == coding_changes


@given(st.sampled_from(["lip", "ldp"]), st.floats(min_value=1e-9, max_value=100))
def test_both_spellings_of_a_guarantee_are_one(kind: str, epsilon: float) -> None:
    table = ReleaseSpec.of({**GOOD, "guarantee": {"kind": kind, "epsilon": epsilon}})
    text = ReleaseSpec.of({**GOOD, "guarantee": table.guarantee.canonical})
    assert text.guarantee == table.guarantee
    assert text.digest == table.digest
    assert parse_guarantee(text.guarantee.canonical).epsilon == epsilon


@given(st.text(max_size=20).map("§".__add__))
def test_any_unknown_setting_is_named(name: str) -> None:
    assert complaint({**GOOD, name: 1}).startswith(f"{toml_key(name)}: unknown setting")


@given(
    st.sampled_from(
        [
            "name",
            "title",
            "secret",
            "publish",
            "source",
            "recode",
            "guarantee",
            "mechanism",
            "output",
            "metadata",
            "limits",
            "confidence",
        ]
    ),
    st.recursive(
        st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["path", "age", "kind", "epsilon", "bins", "name", "licence"]), inner, max_size=3
            )
        ),
    ),
)
def test_any_value_for_a_setting_gives_a_spec_or_one_sentence(setting: str, value: object) -> None:
    message = refusal({**GOOD, setting: value})
    assert message is None or (setting in message and "\n" not in message)


def test_a_file_that_is_too_long_is_no_spec(tmp_path: Path) -> None:
    """Said at once, by its size, and not by each of its million keys."""
    path = tmp_path / "keys.toml"
    text = "".join(f"k{i} = 1\n" for i in range(1_000_000))
    path.write_text(text, encoding="utf-8")
    for load in (lambda: ReleaseSpec.load(path), lambda: ReleaseSpec.parse(text, path)):
        with pytest.raises(SpecError, match=r"^keys.toml is not a spec: it is longer than 1,048,576 bytes; name the"):
            load()


def test_problems_are_sorted_without_comparing_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = {f"k{i}": 1 for i in range(3000)}
    compared = []

    class Problem(dict):
        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return super().__eq__(other)

        __hash__ = None

    real = ValidationError.errors

    class Error:
        def __init__(self, error: ValidationError) -> None:
            self.error = error

        def errors(self, **options: bool) -> list[Problem]:
            return [Problem(one) for one in real(self.error, **options)]

    with pytest.raises(ValidationError) as caught:
        ReleaseSpec.model_validate(unknown)
    said = complaints.validation_sentence(Error(caught.value), ReleaseSpec)
    assert said.startswith("k0: unknown setting; unknown as well: k1, k2, ")
    assert re.search(r"k19; and name is missing; .* \(and 298[0-9] more: [a-z\[\], ]+\)$", said)
    assert len(compared) == 0


@pytest.mark.parametrize(
    ("source", "folder", "what"),
    [
        ("adult.parquet", ".", "source"),
        ("adult.parquet", "../here", "source"),
        ("adult.parquet", "link", "source"),
        ("https://example.org/adult.parquet", ".", "spec"),
        ("../there/adult.parquet", ".", "spec"),
        ("../there/adult.parquet", "../there", "source"),
        ("../there/parts/*.parquet", "../there", "source"),
        ("../there/adult.parquet", "..", "source"),
        ("../public/link.parquet", "../public", "source"),
    ],
)
def test_an_output_that_would_publish_the_source_or_the_spec(
    tmp_path: Path, source: str, folder: str, what: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "link").symlink_to(here)
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "link.parquet").symlink_to(tmp_path / "adult.parquet")
    settings = copy.deepcopy(GOOD)
    settings["source"]["path"] = source
    settings["output"] = {"folder": folder, "workspace": "../../work"}
    with pytest.raises(
        SpecError, match=rf"^\[output\] folder must not hold the {what}: all that is in it is published"
    ):
        ReleaseSpec.of(settings, here)
    settings["output"]["folder"] = "releases"
    ReleaseSpec.of(settings, here)


def test_an_output_inside_the_folder_of_the_source(tmp_path: Path) -> None:
    """What is released would be read as a part of the source by the next run."""
    (tmp_path / "people").mkdir()
    settings = copy.deepcopy(GOOD)
    settings["source"]["path"] = "people"
    settings["output"] = {"folder": "people/releases"}
    with pytest.raises(SpecError, match="folder must not lie inside the folder of the source"):
        ReleaseSpec.of(settings, tmp_path)


def published(**changes: Any) -> dict[str, Any]:
    """Settings that publish their secret."""
    return {
        **GOOD,
        "publish": ["marital-status", "education", "age"],
        "guarantee": "attribute:1.0",
        "mechanism": "invariant",
        **changes,
    }


def test_a_secret_may_be_published_under_attribute_protection() -> None:
    spec = ReleaseSpec.of(published())
    assert spec.publishes_secret
    assert spec.inputs == ("education", "age")
    assert spec.columns == ("marital-status", "education", "age")
    assert not ReleaseSpec.of(GOOD).publishes_secret
    assert ReleaseSpec.of(GOOD).inputs == ("education", "age")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"guarantee": "lip:1.0"}, "under lip:1.0 with mechanism invariant an observer who finds a record by its"),
        ({"guarantee": ["rlip:1.0", "srlip:1.0"]}, "would learn its secret; write guarantee = "),
        ({"mechanism": "auto"}, "under attribute:1.0 with mechanism auto an observer who finds a record by"),
        ({"publish": ["education", "marital-status"]}, 'write publish = ["marital-status", "education"]'),
        ({"publish": ["marital-status"], "recode": {}}, "and at least one column more"),
        ({"secret": ["marital-status", "income"]}, 'write publish = ["marital-status", "income", "education", "age"]'),
    ],
)
def test_any_other_way_to_publish_a_secret_is_refused(changes: dict[str, Any], expected: str) -> None:
    assert expected in complaint(published(**changes))


@pytest.mark.parametrize("guarantee", [["rlip:1.0,0.05", "srlip:1"], "rlip:1.0 & srlip:1.0", ["rlip:1", "srlip:1.0"]])
def test_several_guarantees_hold_together(guarantee: object) -> None:
    spec = ReleaseSpec.of({**GOOD, "guarantee": guarantee})
    assert spec.guarantee.canonical == "rlip:1.0,0.05 & srlip:1.0"
    assert spec.guarantee.parts == tuple(spec.guarantee.canonical.split(" & "))
    # What a release keeps of settings in memory says the same.
    assert json.loads(spec.text)["guarantee"] == list(spec.guarantee.parts)
    assert declared_promise(spec.text) == read_promise(spec.guarantee.canonical)
    assert spec.digest == ReleaseSpec.of({**GOOD, "guarantee": ["rlip:1.0", "srlip:1.0"]}).digest


def test_a_list_of_one_guarantee_is_that_one() -> None:
    assert ReleaseSpec.of({**GOOD, "guarantee": ["lip:1.0"]}) == ReleaseSpec.of(GOOD)


@pytest.mark.parametrize(
    ("guarantee", "expected"),
    [
        ([], "guarantee"),
        (["lip:1.0", 2], "guarantee"),
        (["lip:1.0", "lop:1.0"], "is not a guarantee"),
        (["lip:1.0", "lip:1.0"], "is given twice"),
        (["lip:1.0", "srlip:1000.0"], "is no protection at all"),
    ],
)
def test_a_list_of_guarantees_that_is_none(guarantee: object, expected: str) -> None:
    assert expected in complaint({**GOOD, "guarantee": guarantee})


def test_records_that_are_drawn_by_class_leave_the_digest_as_it_is() -> None:
    """The spec in audit/ says "auto" or "invariant", and no class: it is the same spec."""
    for mechanism in ("auto", "invariant"):
        asked = ReleaseSpec.of({**GOOD, "mechanism": mechanism})
        assert asked.by_class("record_class").digest == asked.digest
