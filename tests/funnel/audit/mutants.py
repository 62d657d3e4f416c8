"""Mutants of a published release: what is changed, and which check has to notice it, with and without evidence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.release.document import dump
from funnel.release.signature import SignatureDocument
from tests.funnel.audit.forging import Forger
from tests.projects import adult_rows

# What notices it; None with the reason in `why` where nothing in these files can.
Noticed = str | None
UNREADABLE = "cannot be read"


@dataclass(frozen=True)
class Mutant:
    """One change of a release.

    Attributes
    ----------
    name : str
    apply : callable
    audit, public : str or None
        The check that notices it with internal evidence there, and on the public copy alone; None if none can.
    why : str
        Why nothing can.
    covered : bool
        Whether the forger makes all digests fit afterwards and signs again.
    internal : bool
        Whether only internal evidence is changed, so that the public copy is the honest one.
    """

    name: str
    apply: Callable[[Forger], object]
    audit: Noticed
    public: Noticed
    why: str = ""
    covered: bool = True
    internal: bool = False


MUTANTS: list[Mutant] = []


def mutant(
    name: str, audit: Noticed, public: Noticed = None, why: str = "", *, covered: bool = True, internal: bool = False
) -> Callable[[Callable[[Forger], object]], Callable[[Forger], object]]:
    """Register a mutant."""

    def register(apply: Callable[[Forger], object]) -> Callable[[Forger], object]:
        MUTANTS.append(Mutant(name, apply, audit, public, why, covered, internal))
        return apply

    return register


def add(name: str, apply: Callable[[Forger], object], audit: Noticed, public: Noticed = None, **rest: Any) -> None:
    """Register a mutant that is one expression."""
    MUTANTS.append(Mutant(name, apply, audit, public, **rest))


CHANCE = "one draw more or less is within chance; the key tells"
FREE = "people wrote it, and nothing public says it again; the key tells"
SECRET = "the distribution of the secret is not public; the key tells"
ORDER = "every order is as likely as any other; the key tells"


def first(content: Any) -> Any:
    """The first resource, that of the csv."""
    return content["resources"][0]


def moved(rows: Any, number: int, to: int) -> Any:
    """Rows of which the first so many say something else."""
    changed = rows.copy()
    changed[:number] = to
    return changed


def swapped(rows: Any, one: int, other: int) -> Any:
    """Rows with two outputs exchanged."""
    return np.select([rows == one, rows == other], [other, one], rows)


# Rows, written as funnel writes them.
add("one record says another output", lambda f: f.rows(lambda r: moved(r, 1, (r[0] + 1) % 6)), "counts", why=CHANCE)
add("a tenth of the records say one output", lambda f: f.rows(lambda r: moved(r, 300, 3)), "counts", "frequencies")
add("one record is gone", lambda f: f.rows(lambda r: r[1:]), "records", "package")
add("half of the records are gone", lambda f: f.rows(lambda r: r[::2]), "records", "package")
add("every record is there twice", lambda f: f.rows(lambda r: np.repeat(r, 2)), "records", "package")
add("all records say the same", lambda f: f.rows(lambda r: moved(r, len(r), 0)), "counts", "frequencies")
add("two outputs are exchanged", lambda f: f.rows(lambda r: swapped(r, 0, 3)), "counts", "frequencies")
add("drawn from a uniform distribution", lambda f: f.rows(lambda r: np.arange(len(r)) % 6), "counts", "frequencies")
add("the rows are sorted by output", lambda f: f.rows(np.sort), "order", "order")
add("the rows are in reverse", lambda f: f.rows(lambda r: r[::-1]), None, why=ORDER)


@mutant("a record is gone, and every number says so", "records", "report")
def _(f: Forger) -> None:
    f.rows(lambda r: r[1:])
    f.privacy(records=2999)


@mutant("the true values are published", "values", "values")
def _(f: Forger) -> None:
    f.table(lambda t: adult_rows().select(["relationship"]))


# The table, written as somebody else writes it.
add(
    "a name among the values",
    lambda f: f.table(lambda t: pa.table({t.column_names[0]: ["Jane"] * 3000})),
    "values",
    "values",
)
add("a further column", lambda f: f.table(lambda t: t.append_column("id", pa.array(range(3000)))), "values", "values")
add("a column is renamed", lambda f: f.table(lambda t: t.rename_columns(["relation"])), "values", "values")
add(
    "a value is null",
    lambda f: f.table(lambda t: pa.table({"relationship": [None, *t[0].cast("string").to_pylist()[1:]]})),
    "values",
    "values",
)
add("the table is empty", lambda f: f.table(lambda t: t.slice(0, 0)), "values", "values")
add("the table is cut short", lambda f: f.folder.data.write_bytes(f.folder.data.read_bytes()[:-20]), "values", "values")
add("the table is a text", lambda f: f.folder.data.write_bytes(b"PAR1 Jane Doe PAR1"), "values", "values")
add(
    "metadata of the file",
    lambda f: f.table(lambda t: t.replace_schema_metadata({"who": "Jane"})),
    "parquet",
    "parquet",
)
add(
    "metadata of a field",
    lambda f: f.table(lambda t: t.cast(pa.schema([t.schema.field(0).with_metadata({"who": "Jane"})]))),
    "parquet",
    "parquet",
)
for setting, value in (
    ("compression", "gzip"),
    ("compression", "none"),
    ("row_group_size", 100),
    ("use_dictionary", False),
    ("data_page_version", "2.0"),
    ("write_statistics", False),
    ("version", "1.0"),
    ("data_page_size", 64),
    ("write_page_index", True),
    ("store_schema", False),
    ("write_page_checksum", True),
    ("use_byte_stream_split", False),
):
    if setting != "use_byte_stream_split":
        add(
            f"parquet written with {setting}={value}",
            lambda f, s=setting, v=value: f.table(lambda t: t, **{s: v}),
            "parquet",
            "parquet",
        )  # type: ignore[misc]
add(
    "texts instead of a dictionary",
    lambda f: f.table(lambda t: t.cast(pa.schema([pa.field("relationship", pa.string())]))),
    "parquet",
    "parquet",
)
add(
    "indices of 32 bits",
    lambda f: f.table(
        lambda t: t.cast(pa.schema([pa.field("relationship", pa.dictionary(pa.int32(), pa.string()), nullable=False)]))
    ),
    "parquet",
    "parquet",
)
add(
    "a column that may be null",
    lambda f: f.table(lambda t: t.cast(pa.schema([pa.field("relationship", t.schema.field(0).type)]))),
    "parquet",
    "parquet",
)


def redictionaried(f: Forger, change: Callable[[list[str]], list[str]]) -> None:
    """The same rows, with another dictionary."""
    table = pq.read_table(f.folder.data)
    texts = table[0].cast("string").to_pylist()
    known = change(table[0].chunk(0).dictionary.to_pylist())
    codes = pa.array([known.index(text) for text in texts], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(known))
    schema = pa.schema([table.schema.field(0)])
    pq.write_table(
        pa.Table.from_arrays([column], schema=schema), f.folder.data, compression="zstd", write_batch_size=1 << 16
    )


add("an unused entry in the dictionary", lambda f: redictionaried(f, lambda d: [*d, "Jane Doe"]), "parquet", "parquet")
add("the dictionary in another order", lambda f: redictionaried(f, lambda d: d[::-1]), "parquet", "parquet")


def spliced(f: Forger, at: Callable[[int, int], int], piece: bytes) -> None:
    """Bytes put into the parquet file: at a place made of where the footer begins and the length."""
    content = f.folder.data.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    place = at(footer, len(content))
    f.folder.data.write_bytes(content[:place] + piece + content[place:])


add("hidden bytes before the footer", lambda f: spliced(f, lambda start, end: start, b"Jane Doe"), "parquet", "parquet")
add("hidden bytes after the file", lambda f: spliced(f, lambda start, end: end, b"Jane Doe"), "parquet", "parquet")
add("hidden bytes after the magic", lambda f: spliced(f, lambda start, end: 4, b"Jane"), "parquet", "parquet")


def recreated(f: Forger) -> None:
    """Another library's name in the footer, of the same length."""
    content = f.folder.data.read_bytes()
    assert b"parquet-cpp-arrow" in content
    f.folder.data.write_bytes(content.replace(b"parquet-cpp-arrow", b"Jane Doe lives at"))


add("another library's name", recreated, "parquet", "parquet")


# The csv.
def csv(change: Callable[[bytes], bytes]) -> Callable[[Forger], object]:
    """A change of the csv's bytes."""
    return lambda f: f.folder.csv.write_bytes(change(f.folder.csv.read_bytes()))


def other_cell(content: bytes) -> bytes:
    """The second row says what the first says."""
    lines = content.splitlines(keepends=True)
    other = next(i for i in range(2, len(lines)) if lines[i] != lines[1])
    return b"".join([*lines[:other], lines[1], *lines[other + 1 :]])


def true_values(content: bytes) -> bytes:
    """The csv of the snapshot."""
    return b'"relationship"\n' + b"".join(f'"{v}"\n'.encode() for v in adult_rows()["relationship"].to_pylist())


add("csv: a cell differs", csv(other_cell), "csv", "csv")
add("csv: of the snapshot", csv(true_values), "csv", "csv")
add("csv: rows in reverse", csv(lambda c: b"".join([c.splitlines(True)[0], *c.splitlines(True)[:0:-1]])), "csv", "csv")
add("csv: a byte order mark", csv(lambda c: b"\xef\xbb\xbf" + c), "csv", "csv")
add("csv: line ends of another system", csv(lambda c: c.replace(b"\n", b"\r\n")), "csv", "csv")
add("csv: without quotes", csv(lambda c: c.replace(b'"', b"")), "csv", "csv")
add("csv: a space after every row", csv(lambda c: c.replace(b"\n", b" \n")), "csv", "csv")
add("csv: one row more", csv(lambda c: c + c.splitlines(True)[1]), "csv", "csv")
add("csv: one row less", csv(lambda c: b"".join(c.splitlines(True)[:-1])), "csv", "csv")
add("csv: a further column", csv(lambda c: c.replace(b"\n", b',"1"\n')), "csv", "csv")


@mutant("csv: taken away, and from the data package", "record", "handouts")
def _(f: Forger) -> None:
    f.folder.csv.unlink()
    f.package(lambda c: c["resources"].pop(0))
    f.cover()
    f.edit(f.folder.record, lambda c: c["files"].update({"data/records.csv": "0" * 64}))


MUTANTS[-1] = Mutant(**{**MUTANTS[-1].__dict__, "covered": False})


# The protocol, with a digest that fits.
def weights(change: Callable[[list[list[int]]], None]) -> Callable[[Forger], object]:
    """A change of the weights as integers."""

    def apply(content: Any) -> None:
        rows = [[int(w) for w in row] for row in content["weights"]]
        change(rows)
        content["weights"] = [[str(w) for w in row] for row in rows]

    return lambda f: f.protocol(apply)


def shift(rows: list[list[int]], amount: int) -> None:
    """Weight of the first input moved from its likeliest output to the second."""
    rows[0][0], rows[1][0] = rows[0][0] - amount, rows[1][0] + amount


def exchange(rows: list[list[int]], one: int, other: int) -> None:
    """Two inputs exchanged."""
    for row in rows:
        row[one], row[other] = row[other], row[one]


def identity(rows: list[list[int]]) -> None:
    """Every input has an output of its own."""
    for y, row in enumerate(rows):
        row[:] = [2**63 if x == y else 0 for x in range(len(row))]


add(
    "weights: one unit moved",
    weights(lambda r: shift(r, 1)),
    "record",
    "report figures",
)
add("weights: a twentieth moved", weights(lambda r: shift(r, 2**63 // 20)), "record", "marginal")
add("weights: two inputs exchanged", weights(lambda r: exchange(r, 0, 1)), "leakage", "marginal")
add("weights: the identity", weights(identity), "leakage", "labels")
add("weights: a column too heavy", weights(lambda r: shift([r[0], [0] * 9], 1)), UNREADABLE, UNREADABLE)
add(
    "marginal: an eighth moved",
    lambda f: f.protocol(
        lambda c: c.update(
            marginal=[str(int(c["marginal"][0]) - 2**60), str(int(c["marginal"][1]) + 2**60), *c["marginal"][2:]]
        )
    ),
    "marginal",
    "marginal",
)
add("marginal: in another order", lambda f: f.protocol(lambda c: c["marginal"].reverse()), "marginal", "marginal")


def prior(change: Callable[[list[float]], None]) -> Callable[[Forger], object]:
    """A change of the prior."""
    return lambda f: f.protocol(lambda c: change(c["prior"]["probabilities"]))


def step(shares: list[float], amount: float) -> None:
    """So much moved from the first share to the second."""
    shares[0], shares[1] = round(shares[0] - amount, 6), round(shares[1] + amount, 6)


add("prior: a step moved", prior(lambda p: step(p, 0.005)), "distribution", "marginal")
add("prior: exact shares", prior(lambda p: step(p, 0.00033)), "prior", "prior")
add("prior: adds up to more", prior(lambda p: p.__setitem__(0, p[0] + 0.1)), "prior", "prior")
add("prior: in another order", prior(lambda p: p.reverse()), "distribution", "marginal")


add("posterior: though it follows", lambda f: f.protocol(lambda c: c.update(posterior=[])), UNREADABLE, UNREADABLE)


def promised(**values: Any) -> Callable[[Forger], object]:
    """Other words about the guarantee, in the data package too."""

    def apply(f: Forger) -> None:
        f.protocol(lambda c: c["guarantee"].update(values))
        f.privacy(
            guarantee=values.get("declared", "lip:1.0"),
            level=values.get("level", f.read(f.folder.protocol)["guarantee"]["level"]),
            secret=values.get("secret", ["marital-status"]),
        )

    return apply


add("a lower level", promised(level=0.5), "leakage", "report figures")
add("a level above its bound", promised(level=1.2), "guarantee", "guarantee")
add("a level with all its digits", promised(level=0.9998997581962), "guarantee", "guarantee")
add("a stricter bound", promised(declared="lip:0.5"), "guarantee", "guarantee")
add("a stricter bound and level", promised(declared="lip:0.5", level=0.5), "leakage", "report")
add(
    "another kind of guarantee",
    promised(declared="ldp:1.0", kind="ldp", title="local differential privacy"),
    "leakage",
    "report",
)
add("another title of the guarantee", promised(title="perfect privacy"), "guarantee", "guarantee")
add("another secret", promised(secret=["sex"]), "leakage", "report")


def utility(**values: float) -> Callable[[Forger], object]:
    """Other figures of the utility, in the data package too."""

    def apply(f: Forger) -> None:
        f.protocol(lambda c: c["utility"].update(values))
        f.privacy(utilityShare=f.read(f.folder.protocol)["utility"]["share"])

    return apply


add("more information", utility(mutual_information_nats=1.2), "utility", "utility")
add("a larger share", utility(share=0.8), "utility", "utility")
add("less entropy", utility(entropy_nats=1.2), "utility", "utility")
add(
    "all figures of the utility in proportion",
    utility(mutual_information_nats=0.7, share=0.47),
    "distribution",
    "utility",
)
add("more digits of the utility", utility(mutual_information_nats=0.87512), "utility", "utility")
add(
    "a step more information",
    utility(mutual_information_nats=0.88, share=0.59),
    "distribution",
    "report figures",
)


def renamed(f: Forger, names: dict[str, str]) -> None:
    """Outputs with other names, everywhere."""
    codes = f.codes()

    def apply(content: Any) -> None:
        for symbol in content["outputs"]["symbols"]:
            symbol[0] = names.get(symbol[0], symbol[0])

    f.protocol(apply)
    f.write(codes)

    def categories(content: Any) -> None:
        for resource in content["resources"]:
            field = resource["schema"]["fields"][0]
            field["categories"] = [names.get(v, v) for v in field["categories"]]
            field["constraints"]["enum"] = field["categories"]

    f.package(categories)


LABELS = (
    "Husband or Not-in-family or Wife",
    "Not-in-family or Husband or Wife",
    "Own-child or Wife or others",
)
add("labels: a mix called by one value", lambda f: renamed(f, {LABELS[0]: "Husband"}), "labels", "labels")
add("labels: two exchanged", lambda f: renamed(f, {LABELS[0]: LABELS[2], LABELS[2]: LABELS[0]}), "labels", "labels")
add(
    "labels: in another order",
    lambda f: renamed(f, {LABELS[0]: "Wife or Husband or Not-in-family"}),
    "labels",
    "labels",
)
add("labels: one value left out", lambda f: renamed(f, {LABELS[0]: "Husband or Not-in-family"}), "labels", "labels")
add("labels: a person", lambda f: renamed(f, {LABELS[0]: "Jane Doe"}), "labels", "labels")
add(
    "the symbols of the input in another order",
    lambda f: f.protocol(lambda c: c["inputs"]["symbols"].reverse()),
    "labels",
    "labels",
)


@mutant(
    "another mechanism",
    "report figures",
    "report figures",
)
def _(f: Forger) -> None:
    f.protocol(lambda c: c.update(mechanism="subset-random-response"))
    f.privacy(mechanism="subset-random-response")


def raw(name: str, change: Callable[[bytes], bytes]) -> Callable[[Forger], object]:
    """A change of the bytes of a document."""

    def apply(f: Forger) -> None:
        f.cover()
        path = f.folder.root / name
        path.write_bytes(change(path.read_bytes()))
        if name == "protocol.json":
            digest = __import__("hashlib").sha256(path.read_bytes()).hexdigest()
            f.package(lambda c: c["funnel:privacy"]["protocol"].update(hash=f"sha256:{digest}"))
        if name != "signature.json":
            f.sign()

    return apply


for document in ("protocol.json", "datapackage.json"):
    add(
        f"{document}: written without line breaks",
        raw(document, lambda c: json.dumps(json.loads(c)).encode()),
        "documents",
        "documents",
        covered=False,
    )
    add(
        f"{document}: spaces at its end", raw(document, lambda c: c + b"   \n"), "documents", "documents", covered=False
    )
    add(
        f"{document}: a key twice",
        raw(document, lambda c: c.replace(b"{\n", b'{\n "name": "Jane",\n "name": "Jane",\n', 1)),
        UNREADABLE,
        UNREADABLE,
        covered=False,
    )
add(
    "protocol.json: a number written otherwise",
    raw("protocol.json", lambda c: c.replace(b'"level": 1.0', b'"level": 1.00')),
    "documents",
    "documents",
    covered=False,
)
add(
    "protocol.json: a further key",
    lambda f: f.edit(f.folder.protocol, lambda c: c.update(note="Jane")),
    UNREADABLE,
    UNREADABLE,
)


# What is told to people and portals.
def told(name: str, old: str, new: str) -> Callable[[Forger], object]:
    """Another text in one of these."""
    return lambda f: f.handout(name, old, new)


for what, name, old, new in (
    ("another promise in the README", "README.md", "is promised.", "is promised. Nothing."),
    ("another share in the README", "README.md", "10,000 records", "20,000 records"),
    ("another author in the citation", "CITATION.cff", "Office", "Jane"),
    ("another digest in the catalogue", "dcat.jsonld", '"@type": "xsd:hexBinary",', '"@type": "xsd:string",'),
    ("another probability in the csv of the protocol", "protocol.csv", "0.833740234375", "0.933740234375"),
    ("another column in the csv of weights", "estimator.csv", '"weight"', '"share"'),
):
    add(what, told(name, old, new), "handouts", "handouts", covered=False)
EARLIER = '   "dcat:prev": {\n    "@id": "../0.9.0/"\n   },\n'
VERSION = '   "dcat:version": '
add(
    "another version before in the catalogue",
    told("dcat.jsonld", VERSION, EARLIER + VERSION),
    "report figures",
    "report figures",
    covered=False,
)


@mutant("the README is gone", "handouts", "handouts", covered=False)
def without_readme(f: Forger) -> None:
    f.folder.readme.unlink()
    f.sign()


# The data package.
def packaged(key: str, value: Any) -> Callable[[Forger], object]:
    """Another value of a key."""
    return lambda f: f.package(lambda c: c.update({key: value}))


def retimed(change: Callable[[str], str]) -> Callable[[Forger], object]:
    """Another time of publication."""
    return lambda f: f.package(lambda c: c.update(created=change(c["created"])))


add("package: another title", packaged("title", "People of Jane"), "texts", "report")
add("package: a description", packaged("description", "All about Jane"), "texts", "report")
add("package: another licence", packaged("licenses", [{"name": "CC0-1.0"}]), "texts", "report")
add(
    "package: another contact",
    lambda f: f.package(lambda c: c["contributors"][0].update(email="jane@example.org")),
    "texts",
    "report",
)
add(
    "package: a key of the contact",
    lambda f: f.package(lambda c: c["contributors"][0].update(phone="5")),
    "texts",
    "package",
)
add("package: keywords", packaged("keywords", ["Jane"]), "texts", why=FREE)
add(
    "package: a time with further digits",
    retimed(lambda now: now.replace("+00:00", ".1234+00:00")),
    "package",
    "package",
)
add("package: a time in another zone", retimed(lambda now: now.replace("+00:00", "+12:34")), "package", "package")
add("package: a time that never was", retimed(lambda now: now[:5] + "02-30" + now[10:]), "package", "package")
add("package: another time", packaged("created", "2020-01-01T00:00:00+00:00"), "record", "report figures")
add("package: another version", packaged("version", "2.0.0"), "versions", "report")
add("package: no version", packaged("version", "newest"), "package", "package", covered=False)
add("package: another name", packaged("name", "persons"), "texts", "package")
add("package: a further key", packaged("comment", "Jane"), "package", "package")
add("package: another profile", packaged("$schema", "https://example.org"), "package", "package")
add("package: other records", lambda f: f.privacy(records=4000), "package", "package")
add("package: another share", lambda f: f.privacy(utilityShare=0.9), "package", "package")
add("package: a search that is said to be better", lambda f: f.privacy(certificate=None), *2 * ("report figures",))
add(
    "package: another gap",
    lambda f: f.package(lambda c: c["funnel:privacy"]["certificate"].update(gap=0.25)),
    "report figures",
    "report figures",
)
add("package: another level", lambda f: f.privacy(level=0.5), "package", "package")
add("package: another bound", lambda f: f.privacy(guarantee="lip:0.5"), "package", "package")
add("package: another order", lambda f: f.privacy(rowOrder="as in the source"), "record", "report figures")
add("package: no such rules", lambda f: f.privacy(disclosureControl={"minimumCell": 0}), "package", "package")
add("package: no such order", lambda f: f.privacy(rowOrder="sorted"), "package", "package")
add("package: another scope", lambda f: f.privacy(scope="for ever"), "package", "package")
add("package: another radius", lambda f: f.privacy(confidence={"alpha": 0.05, "radius": 0.0191}), "package", "package")
add("package: reads the secret", lambda f: f.privacy(readsSecret=True), "package", "package")
add("package: other published columns", lambda f: f.privacy(published=["sex"]), "package", "package")
add(
    "package: another description of a field",
    lambda f: f.package(lambda c: first(c)["schema"]["fields"][0].update(description="Jane")),
    "package",
    "package",
)
add(
    "package: a further category",
    lambda f: f.package(lambda c: first(c)["schema"]["fields"][0]["categories"].append("Jane")),
    "package",
    "package",
)
add(
    "package: fields in any order",
    lambda f: f.package(lambda c: first(c)["schema"].update(fieldsMatch="subset")),
    "package",
    "package",
)
add(
    "package: another encoding",
    lambda f: f.package(lambda c: first(c).update(encoding="latin-1")),
    "package",
    "package",
)
add(
    "package: another rule of the csv",
    lambda f: f.package(lambda c: first(c).update(description="Jane")),
    "package",
    "package",
)
add(
    "package: a path elsewhere",
    lambda f: f.package(lambda c: first(c).update(path="../../etc/passwd")),
    "package",
    "package",
)
add(
    "package: a further resource",
    lambda f: f.package(lambda c: c["resources"].append({"path": "https://example.org/x"})),
    "package",
    "package",
)
add("package: no resource", packaged("resources", []), "package", "package")
add(
    "package: wrong digest",
    lambda f: f.package(lambda c: first(c).update(hash="sha256:" + "0" * 64)),
    "package",
    "package",
    covered=False,
)
add("package: wrong size", lambda f: f.package(lambda c: first(c).update(bytes=1)), "package", "package", covered=False)
add(
    "package: wrong digest of the channel",
    lambda f: f.privacy(protocolDigest="0" * 64),
    "package",
    "package",
    covered=False,
)


# Files.
def there(path: str, content: bytes = b"Jane Doe") -> Callable[[Forger], object]:
    """A further file."""

    def apply(f: Forger) -> None:
        target = f.folder.root / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)

    return apply


add("files: a further table", there("data/more.parquet"), "files", "files")
add("files: a hidden one", there(".hidden"), "files", "files")
add(
    "files: the joint distribution beside the data",
    lambda f: shutil.copy(f.folder.joint, f.folder.root / "joint.json"),
    "files",
    "files",
)
add("files: a folder of another name", lambda f: (f.folder.root / "Jane Doe").mkdir(), "files", "files")
add(
    "files: a link to another place",
    lambda f: (f.folder.root / "data" / "link").symlink_to("/etc/passwd"),
    "files",
    "files",
)
add("files: a pipe", lambda f: os.mkfifo(f.folder.root / "data" / "pipe"), "files", "files")
add("files: no report", lambda f: f.folder.report.unlink(), "files", "files")
add("files: no table", lambda f: f.folder.data.unlink(), "files", "files")
add(
    "files: the table is a link",
    lambda f: (f.folder.data.rename(f.folder.root.parent / "t"), f.folder.data.symlink_to(f.folder.root.parent / "t")),
    "files",
    "files",
)
add("files: the table is a pipe", lambda f: (f.folder.data.unlink(), os.mkfifo(f.folder.data)), "files", "files")
add("files: no protocol", lambda f: f.folder.protocol.unlink(), UNREADABLE, UNREADABLE, covered=False)

# The report.
add("report: a script", lambda f: f.report("</body>", "<script>1</script></body>"), "report", "report")
add("report: a handler", lambda f: f.report("<body", '<body onload="x()"'), "report", "report")
add(
    "report: a picture from elsewhere",
    lambda f: f.report("</body>", '<img src="//example.org/x"></body>'),
    "report",
    "report",
)
add("report: no policy", lambda f: f.report("Content-Security-Policy", "X-Policy"), "report", "report")
add("report: another bound", lambda f: f.report("lip:1.0", "lip:0.5"), "report", "report")
add("report: another number of records", lambda f: f.report("3,000", "4,000"), "report", "report")
add("report: another secret", lambda f: f.report("marital-status", "sex"), "report", "report")


# The signature.
def resigned(change: Callable[[Any], None]) -> Callable[[Forger], object]:
    """A change of the signature's document."""
    return lambda f: f.edit(f.folder.signature, change)


def fewer(f: Forger) -> None:
    """A manifest that leaves a file out, signed."""
    f.sign()
    other = SignatureDocument.read(f.folder.signature).manifest
    files = tuple(file for file in other.files if file.path != "report.html")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    shorter = other.model_copy(update={"files": files})
    f.folder.signature.write_bytes(SignatureDocument.signed(shorter, Ed25519PrivateKey.generate()).to_bytes())


add(
    "signature: a bit of it",
    resigned(
        lambda c: c.update(signature="0" + c["signature"][1:] if c["signature"][0] != "0" else "1" + c["signature"][1:])
    ),
    "signature",
    "signature",
    covered=False,
)
add(
    "signature: another key beside it",
    resigned(lambda c: c.update(public_key="ab" * 32)),
    "signature",
    "signature",
    covered=False,
)
add(
    "signature: another digest in it",
    resigned(lambda c: c["manifest"]["files"][0].update(sha256="0" * 64)),
    "signature",
    "signature",
    covered=False,
)
add(
    "signature: of another version",
    resigned(lambda c: c["manifest"].update(version="0.9.0")),
    "signature",
    "signature",
    covered=False,
)
add("signature: leaves a file out", fewer, "signature", "signature", covered=False)
add("signature: taken away", lambda f: f.folder.signature.unlink(), "signature", "signature", covered=False)
add(
    "signature: a file changed after it",
    lambda f: f.report("People", "Persons"),
    "signature",
    "signature",
    covered=False,
)

# The internal evidence.
for part in ("joint", "draws", "findings", "verdict", "record", "spec"):
    add(f"internal: no {part}", lambda f, p=part: getattr(f.folder, p).unlink(), "evidence", internal=True)  # type: ignore[misc]
    add(
        f"internal: {part} is a link",
        lambda f, p=part: (
            getattr(f.folder, p).rename(f.folder.root.parent / p),
            getattr(f.folder, p).symlink_to(f.folder.root.parent / p),
        ),
        "evidence",
        internal=True,
    )  # type: ignore[misc]
add("internal: open to others", lambda f: f.folder.internal.chmod(0o755), "evidence", internal=True)
add(
    "internal: is a link",
    lambda f: (
        (there := f.folder.internal).rename(f.folder.root.parent / "a"),
        there.symlink_to(f.folder.root.parent / "a"),
    ),
    "evidence",
    internal=True,
)


def internal(name: str, part: str, change: Callable[[Any], None], noticed: str) -> None:
    """Register a change of an internal document."""
    add(f"internal: {name}", lambda f: f.edit(getattr(f.folder, part), change), noticed, internal=True)


def one_count(content: Any) -> None:
    """One record of another secret."""
    counts = content["counts"]
    x = next(x for x in range(len(counts[0])) if counts[0][x] > 1)
    counts[0][x] -= 1
    counts[1][x] += 1


internal("one record of the joint distribution has another secret", "joint", one_count, "findings")
internal(
    "every count of the joint distribution squared",
    "joint",
    lambda c: c.update(counts=[[n * n for n in row] for row in c["counts"]]),
    "leakage",
)
internal("the joint distribution of a column", "joint", lambda c: [row.reverse() for row in c["counts"]], "leakage")
internal("another secret in the joint distribution", "joint", lambda c: c["secret"].update(columns=["sex"]), "leakage")


def of_another_input(c: dict[str, Any]) -> None:
    """A record of the first input with one output, as one of the second input with this output."""
    cells = dict(zip(c["cells"], c["records"], strict=True))
    first = min(cells)
    cells[first] -= 1
    cells[first + c["shape"][1]] = cells.get(first + c["shape"][1], 0) + 1
    c["cells"], c["records"] = map(list, zip(*sorted((k, n) for k, n in cells.items() if n), strict=True))


internal("a record of the draw with another input", "draws", of_another_input, "draws")
internal("a record of the draw less", "draws", lambda c: c["records"].__setitem__(0, c["records"][0] - 1), "draws")
internal("a draw counted twice", "draws", lambda c: c["cells"].__setitem__(1, c["cells"][0]), "evidence")
internal("a lower level found", "findings", lambda c: c.update(level=0.5), "findings")
internal(
    "who sees a record guesses worse",
    "internal_numbers",
    lambda c: c["alone"].update(after=c["alone"]["before"]),
    "internal report",
)
internal(
    "nothing of the secret told",
    "internal_numbers",
    lambda c: c["figures"].update(secret_information=0.0),
    "internal report",
)
internal("found not to hold", "findings", lambda c: c.update(holds=False), "findings")
internal("found for another bound", "findings", lambda c: c.update(guarantee="lip:2.0"), "findings")
internal(
    "a failed judgement",
    "verdict",
    lambda c: (c["results"][0].update(passed=False, failure="it is"), c.update(passed=False)),
    "verdict",
)
internal("a judgement that contradicts itself", "verdict", lambda c: c["results"][0].update(passed=False), "evidence")
internal("no judgement", "verdict", lambda c: c.update(results=[]), "evidence")
internal("the record of another version", "record", lambda c: c.update(version="0.9.0"), "record")
internal("the record of another protocol", "record", lambda c: c["origin"].update(protocol="0" * 64), "record")
internal("the record of another bound", "record", lambda c: c["origin"].update(guarantee="lip:0.5"), "record")
internal("the record of other columns", "record", lambda c: c["origin"].update(fields=["sex"]), "record")
internal("the record of another spec", "record", lambda c: c["origin"].update(spec="0" * 64), "record")
internal("the record of unshuffled rows", "record", lambda c: c["origin"].update(shuffle=False), "record")
internal("the record of other files", "record", lambda c: c["files"].update({"report.html": "0" * 64}), "record")
internal("the record of fewer rows", "record", lambda c: c.update(rows=2999), "record")
add(
    "internal: the joint distribution written otherwise",
    lambda f: f.folder.joint.write_bytes(f.folder.joint.read_bytes() + b" "),
    "evidence",
    internal=True,
)
add(
    "internal: a spec of another bound",
    lambda f: f.folder.spec.write_text(f.folder.spec.read_text().replace("lip:1.0", "lip:2.0")),
    "record",
    internal=True,
)
add("internal: a spec of no sense", lambda f: f.folder.spec.write_text("name = 1"), "evidence", internal=True)


@mutant("internal: the channel is the identity, and everything public is covered", "leakage", internal=True)
def _(f: Forger) -> None:
    f.edit(
        f.folder.joint,
        lambda c: c.update(
            counts=[[500 if x == s else 0 for x in range(len(c["counts"][0]))] for s in range(len(c["counts"]))]
        ),
    )


__all__ = ["MUTANTS", "UNREADABLE", "Forger", "Mutant", "dump"]
