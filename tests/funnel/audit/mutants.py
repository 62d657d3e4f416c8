"""Mutants of a published release: what is changed, and which check has to notice it, with and without evidence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from funnel.readers.source_files import file_digest
from funnel.release.signature import SignatureDocument
from tests.funnel.audit.forging import Forger
from tests.projects import adult_rows

# What notices it; None with the reason in `why` where nothing in these files can.
Noticed = str | None
Apply = Callable[[Forger], object]
Change = Callable[[Any], object]
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
    apply: Apply
    audit: Noticed
    public: Noticed
    why: str = ""
    covered: bool = True
    internal: bool = False


MUTANTS: list[Mutant] = []
SAME = "the check that notices it with the evidence"


def noticed(audit: Noticed, mutants: Mapping[str, Apply], public: Noticed = SAME, **rest: Any) -> None:
    """Register mutants that the same check notices, with the evidence and on the public copy."""
    told = audit if public == SAME else public
    MUTANTS.extend(Mutant(name, apply, audit, told, **rest) for name, apply in mutants.items())


CHANCE = "one draw more or less is within chance; the key tells"
FREE = "people wrote it, and nothing public says it again; the key tells"
ORDER = "every order is as likely as any other; the key tells"


# Rows, written as funnel writes them.
def rows(change: Change) -> Apply:
    """Other rows."""
    return lambda f: f.rows(change)


def moved(number: int, to: int) -> Apply:
    """Rows of which the first so many say something else."""
    return rows(lambda r: np.concatenate([np.full(number, to), r[number:]]))


def swapped(rows: Any, one: int, other: int) -> Any:
    """Rows with two outputs exchanged."""
    return np.select([rows == one, rows == other], [other, one], rows)


def one_record_less(f: Forger) -> None:
    """A record is gone, and every number says so."""
    f.rows(lambda r: r[1:])
    f.privacy(records=2999)


one_moved = rows(lambda r: np.append((r[0] + 1) % 6, r[1:]))
noticed("counts", {"one record says another output": one_moved}, None, why=CHANCE)
noticed(
    "counts",
    {
        "a tenth of the records say one output": moved(300, 3),
        "all records say the same": moved(3000, 0),
        "two outputs are exchanged": rows(lambda r: swapped(r, 0, 3)),
        "drawn from a uniform distribution": rows(lambda r: np.arange(len(r)) % 6),
    },
    "frequencies",
)
noticed(
    "records",
    {
        "one record is gone": rows(lambda r: r[1:]),
        "half of the records are gone": rows(lambda r: r[::2]),
        "every record is there twice": rows(lambda r: np.repeat(r, 2)),
    },
    "package",
)
noticed("order", {"the rows are sorted by output": rows(np.sort)})
noticed(None, {"the rows are in reverse": rows(lambda r: r[::-1])}, why=ORDER)
noticed("records", {"a record is gone, and every number says so": one_record_less}, "report")


# The table, written as somebody else writes it.
def table(change: Callable[[pa.Table], pa.Table], **settings: Any) -> Apply:
    """Another table."""
    return lambda f: f.table(change, **settings)


def typed(kind: pa.DataType | None, nullable: bool = False, **metadata: str) -> Apply:
    """The same texts in a column of another type; None for the same type."""

    def field(old: pa.Field) -> pa.Field:
        return pa.field("relationship", kind or old.type, nullable=nullable, metadata=metadata or None)

    return table(lambda t: t.cast(pa.schema([field(t.schema.field(0))])))


def content(change: Callable[[bytes], bytes]) -> Apply:
    """Other bytes of the table."""
    return lambda f: f.folder.data.write_bytes(change(f.folder.data.read_bytes()))


def null(t: pa.Table) -> pa.Table:
    """The first value is none."""
    return pa.table({"relationship": [None, *t[0].cast("string").to_pylist()[1:]]})


noticed(
    "values",
    {
        "the true values are published": table(lambda t: adult_rows().select(["relationship"])),
        "a name among the values": table(lambda t: pa.table({t.column_names[0]: ["Jane"] * 3000})),
        "a further column": table(lambda t: t.append_column("id", pa.array(range(3000)))),
        "a column is renamed": table(methodcaller("rename_columns", ["relation"])),
        "a value is null": table(null),
        "the table is empty": table(methodcaller("slice", 0, 0)),
        "the table is cut short": content(lambda c: c[:-20]),
        "the table is a text": content(lambda c: b"PAR1 Jane Doe PAR1"),
    },
)
SETTINGS: tuple[tuple[str, Any], ...] = (
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
)
noticed(
    "parquet",
    {f"parquet written with {key}={value}": table(lambda t: t, **{key: value}) for key, value in SETTINGS},
)


def redictionaried(change: Callable[[list[str]], list[str]]) -> Apply:
    """The same rows, with another dictionary."""

    def apply(f: Forger) -> None:
        table = pq.read_table(f.folder.data)
        known = change(table[0].chunk(0).dictionary.to_pylist())
        codes = pa.array([known.index(text) for text in table[0].cast("string").to_pylist()], pa.int8())
        column = pa.DictionaryArray.from_arrays(codes, pa.array(known))
        made = pa.Table.from_arrays([column], schema=pa.schema([table.schema.field(0)]))
        pq.write_table(made, f.folder.data, compression="zstd", write_batch_size=1 << 16)

    return apply


def spliced(at: Callable[[int, int], int], piece: bytes) -> Apply:
    """Bytes put into the parquet file: at a place made of where the footer begins and the length."""

    def change(whole: bytes) -> bytes:
        place = at(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), len(whole))
        return whole[:place] + piece + whole[place:]

    return content(change)


noticed(
    "parquet",
    {
        "metadata of the file": table(methodcaller("replace_schema_metadata", {"who": "Jane"})),
        "metadata of a field": typed(None, who="Jane"),
        "texts instead of a dictionary": typed(pa.string(), nullable=True),
        "indices of 32 bits": typed(pa.dictionary(pa.int32(), pa.string())),
        "a column that may be null": typed(None, nullable=True),
        "an unused entry in the dictionary": redictionaried(lambda known: [*known, "Jane Doe"]),
        "the dictionary in another order": redictionaried(lambda known: known[::-1]),
        "hidden bytes before the footer": spliced(lambda start, end: start, b"Jane Doe"),
        "hidden bytes after the file": spliced(lambda start, end: end, b"Jane Doe"),
        "hidden bytes after the magic": spliced(lambda start, end: 4, b"Jane"),
        # In the footer, of the same length.
        "another library's name": content(lambda c: c.replace(b"parquet-cpp-arrow", b"Jane Doe lives at")),
    },
)


# The csv.
def csv(change: Callable[[bytes], bytes]) -> Apply:
    """A change of the csv's bytes."""
    return lambda f: f.folder.csv.write_bytes(change(f.folder.csv.read_bytes()))


def other_cell(whole: bytes) -> bytes:
    """The second row says what the first says."""
    lines = whole.splitlines(keepends=True)
    other = next(i for i in range(2, len(lines)) if lines[i] != lines[1])
    return b"".join([*lines[:other], lines[1], *lines[other + 1 :]])


def true_values(_: bytes) -> bytes:
    """The csv of the snapshot."""
    return b'"relationship"\n' + b"".join(f'"{v}"\n'.encode() for v in adult_rows()["relationship"].to_pylist())


noticed(
    "csv",
    {
        "csv: a cell differs": csv(other_cell),
        "csv: of the snapshot": csv(true_values),
        "csv: rows in reverse": csv(lambda c: b"".join([c.splitlines(True)[0], *c.splitlines(True)[:0:-1]])),
        "csv: a byte order mark": csv(lambda c: b"\xef\xbb\xbf" + c),
        "csv: line ends of another system": csv(lambda c: c.replace(b"\n", b"\r\n")),
        "csv: without quotes": csv(lambda c: c.replace(b'"', b"")),
        "csv: a space after every row": csv(lambda c: c.replace(b"\n", b" \n")),
        "csv: one row more": csv(lambda c: c + c.splitlines(True)[1]),
        "csv: one row less": csv(lambda c: b"".join(c.splitlines(True)[:-1])),
        "csv: a further column": csv(lambda c: c.replace(b"\n", b',"1"\n')),
    },
)


def without_csv(f: Forger) -> None:
    """Taken away, and from the data package."""
    f.folder.csv.unlink()
    f.package(lambda c: c["resources"].pop(0))
    f.cover()
    f.edit(f.folder.record, lambda c: c["files"].update({"data/records.csv": "0" * 64}))


noticed("record", {"csv: taken away, and from the data package": without_csv}, "files", covered=False)


# The protocol, with a digest that fits.
def protocol(change: Change) -> Apply:
    """Another protocol."""
    return lambda f: f.protocol(change)


def weights(change: Callable[[list[list[int]]], None]) -> Apply:
    """A change of the weights as integers."""

    def apply(content: Any) -> None:
        rows = [[int(w) for w in row] for row in content["weights"]]
        change(rows)
        content["weights"] = [[str(w) for w in row] for row in rows]

    return protocol(apply)


def shift(rows: list[list[int]], amount: int) -> None:
    """Weight of the first input moved from its likeliest output to the second."""
    rows[0][0], rows[1][0] = rows[0][0] - amount, rows[1][0] + amount


def exchange(rows: list[list[int]]) -> None:
    """Two inputs exchanged."""
    for row in rows:
        row[0], row[1] = row[1], row[0]


def identity(rows: list[list[int]]) -> None:
    """Every input has an output of its own."""
    for y, row in enumerate(rows):
        row[:] = [2**63 if x == y else 0 for x in range(len(row))]


def marginal_moved(content: Any) -> None:
    """An eighth of the marginal moved."""
    first, second, *rest = content["marginal"]
    content["marginal"] = [str(int(first) - 2**60), str(int(second) + 2**60), *rest]


noticed("record", {"weights: one unit moved": weights(lambda r: shift(r, 1))}, "report figures")
noticed("record", {"weights: a twentieth moved": weights(lambda r: shift(r, 2**63 // 20))}, "marginal")
noticed("leakage", {"weights: two inputs exchanged": weights(exchange)}, "marginal")
noticed("leakage", {"weights: the identity": weights(identity)}, "labels")
noticed(
    "marginal",
    {
        "marginal: an eighth moved": protocol(marginal_moved),
        "marginal: in another order": protocol(lambda c: c["marginal"].reverse()),
    },
)


def prior(change: Callable[[list[float]], object]) -> Apply:
    """A change of the prior."""
    return protocol(lambda c: change(c["prior"]["probabilities"]))


def step(shares: list[float], amount: float) -> None:
    """So much moved from the first share to the second."""
    shares[0], shares[1] = round(shares[0] - amount, 6), round(shares[1] + amount, 6)


noticed(
    "distribution",
    {
        "prior: a step moved": prior(lambda p: step(p, 0.005)),
        "prior: in another order": prior(lambda p: p.reverse()),
    },
    "marginal",
)
noticed(
    "prior",
    {
        "prior: exact shares": prior(lambda p: step(p, 0.00033)),
        "prior: adds up to more": prior(lambda p: p.__setitem__(0, p[0] + 0.1)),
    },
)
noticed(
    UNREADABLE,
    {
        "weights: a column too heavy": weights(lambda r: shift([r[0], [0] * 9], 1)),
        "posterior: though it follows": protocol(lambda c: c.update(posterior=[])),
        "protocol.json: a further key": lambda f: f.edit(f.folder.protocol, lambda c: c.update(note="Jane")),
    },
)


def promised(**values: Any) -> Apply:
    """Other words about the guarantee, in the data package too."""

    def apply(f: Forger) -> None:
        f.protocol(lambda c: c["guarantee"].update(values))
        f.privacy(
            guarantee=values.get("declared", "lip:1.0"),
            level=values.get("level", f.read(f.folder.protocol)["guarantee"]["level"]),
            secret=values.get("secret", ["marital-status"]),
        )

    return apply


noticed("leakage", {"a lower level": promised(level=0.5)}, "report figures")
noticed(
    "guarantee",
    {
        "a level above its bound": promised(level=1.2),
        "a level with all its digits": promised(level=0.9998997581962),
        "a stricter bound": promised(declared="lip:0.5"),
        "another title of the guarantee": promised(title="perfect privacy"),
    },
)
LDP = {"declared": "ldp:1.0", "kind": "ldp", "title": "local differential privacy"}
noticed(
    "leakage",
    {
        "a stricter bound and level": promised(declared="lip:0.5", level=0.5),
        "another kind of guarantee": promised(**LDP),
        "another secret": promised(secret=["sex"]),
    },
    "report",
)


def utility(**values: float) -> Apply:
    """Other figures of the utility, in the data package too."""

    def apply(f: Forger) -> None:
        f.protocol(lambda c: c["utility"].update(values))
        f.privacy(utilityShare=f.read(f.folder.protocol)["utility"]["share"])

    return apply


noticed(
    "utility",
    {
        "more information": utility(mutual_information_nats=1.2),
        "a larger share": utility(share=0.8),
        "less entropy": utility(entropy_nats=1.2),
        "more digits of the utility": utility(mutual_information_nats=0.87512),
    },
)
in_proportion = utility(mutual_information_nats=0.7, share=0.47)
noticed("distribution", {"all figures of the utility in proportion": in_proportion}, "utility")
a_step_more = utility(mutual_information_nats=0.88, share=0.59)
noticed("distribution", {"a step more information": a_step_more}, "report figures")


def renamed(**names: str) -> Apply:
    """Outputs, by their numbers, with other names everywhere."""
    new = {LABELS[int(number[1:])]: name for number, name in names.items()}

    def symbols(content: Any) -> None:
        for symbol in content["outputs"]["symbols"]:
            symbol[0] = new.get(symbol[0], symbol[0])

    def categories(content: Any) -> None:
        for resource in content["resources"]:
            field = resource["schema"]["fields"][0]
            field["categories"] = [new.get(v, v) for v in field["categories"]]
            field["constraints"]["enum"] = field["categories"]

    def apply(f: Forger) -> None:
        codes = f.codes()
        f.protocol(symbols)
        f.write(codes)
        f.package(categories)

    return apply


LABELS = ("Husband or Not-in-family or Wife", "", "Own-child or Wife or others")
noticed(
    "labels",
    {
        "labels: a mix called by one value": renamed(_0="Husband"),
        "labels: two exchanged": renamed(_0=LABELS[2], _2=LABELS[0]),
        "labels: in another order": renamed(_0="Wife or Husband or Not-in-family"),
        "labels: one value left out": renamed(_0="Husband or Not-in-family"),
        "labels: a person": renamed(_0="Jane Doe"),
        "the symbols of the input in another order": protocol(lambda c: c["inputs"]["symbols"].reverse()),
    },
)


def another_mechanism(f: Forger) -> None:
    """In the data package too."""
    f.protocol(lambda c: c.update(mechanism="subset-random-response"))
    f.privacy(mechanism="subset-random-response")


noticed("report figures", {"another mechanism": another_mechanism})


def raw(name: str, change: Callable[[bytes], bytes]) -> Apply:
    """A change of the bytes of a document."""

    def apply(f: Forger) -> None:
        f.cover()
        path = f.folder.root / name
        path.write_bytes(change(path.read_bytes()))
        if name == "protocol.json":
            f.package(lambda c: c["funnel:privacy"]["protocol"].update(hash=f"sha256:{file_digest(path)}"))
        f.sign()

    return apply


def key_twice(whole: bytes) -> bytes:
    """A key that is there twice."""
    return whole.replace(b"{\n", b'{\n "name": "Jane",\n "name": "Jane",\n', 1)


for document in ("protocol.json", "datapackage.json"):
    noticed(
        "documents",
        {
            f"{document}: written without line breaks": raw(document, lambda c: json.dumps(json.loads(c)).encode()),
            f"{document}: spaces at its end": raw(document, lambda c: c + b"   \n"),
        },
        covered=False,
    )
    noticed(UNREADABLE, {f"{document}: a key twice": raw(document, key_twice)}, covered=False)
otherwise = raw("protocol.json", lambda c: c.replace(b'"level": 1.0', b'"level": 1.00'))
noticed("documents", {"protocol.json: a number written otherwise": otherwise}, covered=False)


# What is told to people and portals.
def told(name: str, old: str, new: str) -> Apply:
    """Another text in one of these."""
    return lambda f: f.handout(name, old, new)


def without_readme(f: Forger) -> None:
    """The README is gone."""
    f.folder.readme.unlink()
    f.sign()


noticed(
    "handouts",
    {
        "another promise in the README": told("README.md", "is promised.", "is promised. Nothing."),
        "another share in the README": told("README.md", "10,000 records", "20,000 records"),
        "another author in the citation": told("CITATION.cff", "Office", "Jane"),
        "another digest in the catalogue": told("dcat.jsonld", '"xsd:hexBinary",', '"xsd:string",'),
        "another probability in the csv of the protocol": told("protocol.csv", "0.833740234375", "0.933740234375"),
        "another column in the csv of weights": told("estimator.csv", '"weight"', '"share"'),
    },
    covered=False,
)
noticed("files", {"the README is gone": without_readme}, covered=False)
EARLIER = '   "dcat:prev": {\n    "@id": "../0.9.0/"\n   },\n'
VERSION = '   "dcat:version": '
earlier_version = told("dcat.jsonld", VERSION, EARLIER + VERSION)
noticed("report figures", {"another version before in the catalogue": earlier_version}, covered=False)


# The data package.
def package(change: Change) -> Apply:
    """Another data package."""
    return lambda f: f.package(change)


def packaged(**values: Any) -> Apply:
    """Other values of keys."""
    return package(lambda c: c.update(values))


def resource(**values: Any) -> Apply:
    """Other values of the first resource, that of the csv."""
    return package(lambda c: c["resources"][0].update(values))


def schema(change: Change) -> Apply:
    """Another schema of it."""
    return package(lambda c: change(c["resources"][0]["schema"]))


def privacy(**values: Any) -> Apply:
    """Other values in the block on privacy."""
    return lambda f: f.privacy(**values)


def retimed(change: Callable[[str], str]) -> Apply:
    """Another time of publication."""
    return package(lambda c: c.update(created=change(c["created"])))


def contact(**values: str) -> Apply:
    """Other words about the contact."""
    return package(lambda c: c["contributors"][0].update(values))


def labelled(text: Any) -> Apply:
    """Another label of the first column, in all tables."""

    def change(content: dict[str, Any]) -> None:
        for table in content["resources"]:
            table["schema"]["fields"][0]["title"] = text

    return package(change)


noticed(
    "texts",
    {
        "package: another title": packaged(title="People of Jane"),
        "package: a description": packaged(description="All about Jane"),
        "package: another licence": packaged(licenses=[{"name": "CC0-1.0"}]),
        "package: another contact": contact(email="jane@example.org"),
    },
    "report",
)
noticed("texts", {"package: a label": labelled("Jane")}, None, why=FREE)
noticed("package", {"package: a label of two lines": labelled("Jane\nDoe"), "package: no text as label": labelled(5)})
noticed("texts", {"package: keywords": packaged(keywords=["Jane"])}, None, why=FREE)
noticed(
    "texts",
    {"package: a key of the contact": contact(phone="5"), "package: another name": packaged(name="persons")},
    "package",
)
noticed("versions", {"package: another version": packaged(version="2.0.0")}, "report")
noticed(
    "record",
    {
        "package: another time": packaged(created="2020-01-01T00:00:00+00:00"),
        "package: another order": privacy(rowOrder="as in the source"),
    },
    "report figures",
)
noticed(
    "report figures",
    {
        "package: a search that is said to be better": privacy(certificate=None),
        "package: another gap": package(lambda c: c["funnel:privacy"]["certificate"].update(gap=0.25)),
        "package: another radius": privacy(confidence={"alpha": 0.05, "radius": 0.0191}),
    },
)
noticed(
    "package",
    {
        "package: a time with further digits": retimed(lambda now: now.replace("+00:00", ".1234+00:00")),
        "package: a time in another zone": retimed(lambda now: now.replace("+00:00", "+12:34")),
        "package: a time that never was": retimed(lambda now: now[:5] + "02-30" + now[10:]),
        "package: a further key": packaged(comment="Jane"),
        "package: another profile": packaged(**{"$schema": "https://example.org"}),
        "package: other records": privacy(records=4000),
        "package: another share": privacy(utilityShare=0.9),
        "package: another level": privacy(level=0.5),
        "package: another bound": privacy(guarantee="lip:0.5"),
        "package: no such rules": privacy(disclosureControl={"minimumCell": 0}),
        "package: no such order": privacy(rowOrder="sorted"),
        "package: another scope": privacy(scope="for ever"),
        "package: reads the secret": privacy(readsSecret=True),
        "package: other published columns": privacy(published=["sex"]),
        "package: another description of a field": schema(lambda c: c["fields"][0].update(description="Jane")),
        "package: a further category": schema(lambda c: c["fields"][0]["categories"].append("Jane")),
        "package: fields in any order": schema(lambda c: c.update(fieldsMatch="subset")),
        "package: another encoding": resource(encoding="latin-1"),
        "package: another rule of the csv": resource(description="Jane"),
        "package: a path elsewhere": resource(path="../../etc/passwd"),
        "package: a further resource": package(lambda c: c["resources"].append({"path": "https://example.org/x"})),
        "package: no resource": packaged(resources=[]),
    },
)
noticed(
    "package",
    {
        "package: no version": packaged(version="newest"),
        "package: wrong digest": resource(hash="sha256:" + "0" * 64),
        "package: wrong size": resource(bytes=1),
        "package: wrong digest of the channel": privacy(protocolDigest="0" * 64),
    },
    covered=False,
)


# Files.
def there(path: str) -> Apply:
    """A further file."""

    def apply(f: Forger) -> None:
        target = f.folder.root / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(b"Jane Doe")

    return apply


def gone(name: str) -> Apply:
    """A file, by its name in the layout, is gone."""
    return lambda f: getattr(f.folder, name).unlink()


def linked(name: str) -> Apply:
    """A file or folder, by its name in the layout, is a link to where it was moved."""

    def apply(f: Forger) -> None:
        path: Path = getattr(f.folder, name)
        path.symlink_to(path.rename(f.folder.root.parent / name))

    return apply


noticed(
    "files",
    {
        "files: a further table": there("data/more.parquet"),
        "files: a hidden one": there(".hidden"),
        "files: the joint distribution beside the data": lambda f: shutil.copy(
            f.folder.joint, f.folder.root / "joint.json"
        ),
        "files: a folder of another name": lambda f: (f.folder.root / "Jane Doe").mkdir(),
        "files: a link to another place": lambda f: (f.folder.root / "data" / "link").symlink_to("/etc/passwd"),
        "files: a pipe": lambda f: os.mkfifo(f.folder.root / "data" / "pipe"),
        "files: no report": gone("report"),
        "files: no table": gone("data"),
        "files: the table is a link": linked("data"),
        "files: the table is a pipe": lambda f: (f.folder.data.unlink(), os.mkfifo(f.folder.data)),
    },
)
noticed(UNREADABLE, {"files: no protocol": gone("protocol")}, covered=False)


# The report.
def report(old: str, new: str) -> Apply:
    """Another text in its page."""
    return lambda f: f.report(old, new)


noticed(
    "report",
    {
        "report: a script": report("</body>", "<script>1</script></body>"),
        "report: a handler": report("<body", '<body onload="x()"'),
        "report: a picture from elsewhere": report("</body>", '<img src="//example.org/x"></body>'),
        "report: no policy": report("Content-Security-Policy", "X-Policy"),
        "report: another bound": report("lip:1.0", "lip:0.5"),
        "report: another number of records": report("3,000", "4,000"),
        "report: another secret": report("marital-status", "sex"),
    },
)


# The signature.
def resigned(change: Change) -> Apply:
    """A change of the signature's document."""
    return lambda f: f.edit(f.folder.signature, change)


def another_bit(content: Any) -> None:
    """The first digit of the signature is another one."""
    first, rest = content["signature"][0], content["signature"][1:]
    content["signature"] = ("1" if first == "0" else "0") + rest


def fewer(f: Forger) -> None:
    """A manifest that leaves a file out, signed."""
    f.sign()
    other = SignatureDocument.read(f.folder.signature).manifest
    files = tuple(file for file in other.files if file.path != "report.html")
    shorter = other.model_copy(update={"files": files})
    f.folder.signature.write_bytes(SignatureDocument.signed(shorter, f.key).to_bytes())


noticed(
    "signature",
    {
        "signature: a bit of it": resigned(another_bit),
        "signature: another key beside it": resigned(lambda c: c.update(public_key="ab" * 32)),
        "signature: another digest in it": resigned(lambda c: c["manifest"]["files"][0].update(sha256="0" * 64)),
        "signature: of another version": resigned(lambda c: c["manifest"].update(version="0.9.0")),
        "signature: leaves a file out": fewer,
        "signature: taken away": gone("signature"),
        "signature: a file changed after it": report("People", "Persons"),
    },
    covered=False,
)


# The internal evidence.
def inside(audit: str, mutants: Mapping[str, Apply]) -> None:
    """Register mutants of the internal evidence."""
    noticed(audit, {f"internal: {name}": apply for name, apply in mutants.items()}, None, internal=True)


def part(name: str, change: Change) -> Apply:
    """A change of one of its documents."""
    return lambda f: f.edit(getattr(f.folder, name), change)


def origin(**values: Any) -> Apply:
    """Other values of what a record says that its version was made of."""
    return part("record", lambda c: c["origin"].update(values))


def spec_text(change: Callable[[str], str]) -> Apply:
    """Another text of the spec."""
    return lambda f: f.folder.spec.write_text(change(f.folder.spec.read_text()))


PARTS = ("joint", "draws", "findings", "verdict", "record", "spec")
inside(
    "evidence",
    {
        **{f"no {name}": gone(name) for name in PARTS},
        **{f"{name} is a link": linked(name) for name in PARTS},
        "open to others": lambda f: f.folder.internal.chmod(0o755),
        "is a link": linked("internal"),
    },
)


def one_count(content: Any) -> None:
    """One record of another secret."""
    counts = content["counts"]
    x = next(x for x in range(len(counts[0])) if counts[0][x] > 1)
    counts[0][x] -= 1
    counts[1][x] += 1


def counts(number: Callable[[int, int, int], int]) -> Apply:
    """Other counts of the joint distribution, of each by its secret, its input and the count."""

    def change(content: Any) -> None:
        content["counts"] = [[number(s, x, n) for x, n in enumerate(row)] for s, row in enumerate(content["counts"])]

    return part("joint", change)


def of_another_input(c: dict[str, Any]) -> None:
    """A record of the first input with one output, as one of the second input with this output."""
    cells = dict(zip(c["cells"], c["records"], strict=True))
    first = min(cells)
    cells[first] -= 1
    cells[first + c["shape"][1]] = cells.get(first + c["shape"][1], 0) + 1
    c["cells"], c["records"] = map(list, zip(*sorted((k, n) for k, n in cells.items() if n), strict=True))


def failed(content: Any) -> None:
    """A judgement that failed."""
    content["results"][0].update(passed=False, failure="it is")
    content.update(passed=False)


inside(
    "leakage",
    {
        "every count of the joint distribution squared": counts(lambda s, x, n: n * n),
        "the joint distribution of a column": part("joint", lambda c: [row.reverse() for row in c["counts"]]),
        "another secret in the joint distribution": part("joint", lambda c: c["secret"].update(columns=["sex"])),
        "the channel is the identity, and everything public is covered": counts(lambda s, x, n: 500 if x == s else 0),
    },
)
inside(
    "draws",
    {
        "a record of the draw with another input": part("draws", of_another_input),
        "a record of the draw less": part("draws", lambda c: c["records"].__setitem__(0, c["records"][0] - 1)),
    },
)
inside(
    "findings",
    {
        "one record of the joint distribution has another secret": part("joint", one_count),
        "a lower level found": part("findings", lambda c: c.update(level=0.5)),
        "found not to hold": part("findings", lambda c: c.update(holds=False)),
        "found for another bound": part("findings", lambda c: c.update(guarantee="lip:2.0")),
    },
)
inside(
    "internal report",
    {
        "who sees a record guesses worse": part(
            "internal_numbers", lambda c: c["alone"].update(after=c["alone"]["before"])
        ),
        "nothing of the secret told": part("internal_numbers", lambda c: c["figures"].update(secret_information=0.0)),
    },
)
inside("verdict", {"a failed judgement": part("verdict", failed)})
inside(
    "record",
    {
        "the record of another version": part("record", lambda c: c.update(version="0.9.0")),
        "the record of another protocol": origin(protocol="0" * 64),
        "the record of another bound": origin(guarantee="lip:0.5"),
        "the record of other columns": origin(fields=["sex"]),
        "the record of another spec": origin(spec="0" * 64),
        "the record of unshuffled rows": origin(shuffle=False),
        "the record of other files": part("record", lambda c: c["files"].update({"report.html": "0" * 64})),
        "the record of fewer rows": part("record", lambda c: c.update(rows=2999)),
        "a spec of another bound": spec_text(lambda text: text.replace("lip:1.0", "lip:2.0")),
    },
)
inside(
    "evidence",
    {
        "a draw counted twice": part("draws", lambda c: c["cells"].__setitem__(1, c["cells"][0])),
        "a judgement that contradicts itself": part("verdict", lambda c: c["results"][0].update(passed=False)),
        "no judgement": part("verdict", lambda c: c.update(results=[])),
        "the joint distribution written otherwise": lambda f: f.folder.joint.write_bytes(
            f.folder.joint.read_bytes() + b" "
        ),
        "a spec of no sense": spec_text(lambda _: "name = 1"),
    },
)
