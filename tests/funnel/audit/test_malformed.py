"""Malformed releases and specs: each ends in one sentence, with its exit status and no row of the source."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from funnel.audit import files as audit_files
from funnel.audit.check import State, error_of, overall
from funnel.audit.evidence import read_evidence
from funnel.audit.recheck import Told
from funnel.errors import DataError, FunnelError, SpecError
from funnel.progress import quiet
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder, find_release
from funnel.release.protocol_document import ProtocolDocument
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.funnel.audit.forging import Forger
from tests.projects import SPEC, make_project
from tests.releases import make_release

# Stands in every malformed file where a row of the source would; no message may repeat it.
SECRET = "Jane-Doe-has-it"
Change = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("malformed")))


def one_sentence(error: FunnelError | None) -> str:
    """The message of an error, after making sure that it is one line, printable and about no row."""
    assert error is not None
    said = str(error)
    assert said
    assert said.isprintable()
    assert SECRET not in said
    assert "Traceback" not in said
    return said


def first_key(content: bytes) -> str:
    return next(iter(json.loads(content)))


# Bytes that are no document at all.
BYTES: dict[str, Change] = {
    "nothing": lambda c: b"",
    "one byte": lambda c: b"{",
    "zeros": lambda c: bytes(1000),
    "half of it": lambda c: c[: len(c) // 2],
    "without its last byte": lambda c: c[:-2],
    "something after it": lambda c: c + SECRET.encode(),
    "twice": lambda c: c + c,
    "a byte order mark": lambda c: b"\xef\xbb\xbf" + c,
    "UTF-16": lambda c: c.decode().encode("utf-16"),
    "UTF-32": lambda c: c.decode().encode("utf-32"),
    "Latin-1": lambda c: c.replace(b'"', b'"\xe4', 1),
    "a lone surrogate": lambda c: c.replace(b"{", b'{"\\ud800": 1,', 1),
    "a text": lambda c: json.dumps(SECRET).encode(),
    "a number": lambda c: b"7",
    "null": lambda c: b"null",
    "a list": lambda c: b"[]",
    "an empty object": lambda c: b"{}",
    "a deep list": lambda c: b"[" * 100_000,
    "deep objects": lambda c: b'{"a":' * 100_000,
    "a deep list inside": lambda c: c.replace(b"{", b'{"x":' + b"[" * 50_000 + b"]" * 50_000 + b",", 1),
    "a key twice": lambda c: c.replace(b"{", b'{"%s": 1,' % first_key(c).encode(), 1),
    "NaN": lambda c: c.replace(b"{", b'{"x": NaN,', 1),
    "infinity": lambda c: c.replace(b"{", b'{"x": -Infinity,', 1),
    "a number with 5,000 digits": lambda c: c.replace(b"{", b'{"x": ' + b"9" * 5000 + b",", 1),
    "a number beyond floats": lambda c: c.replace(b"{", b'{"x": 1e999,', 1),
    "a comment": lambda c: b"// " + SECRET.encode() + b"\n" + c,
    "single quotes": lambda c: c.replace(b'"', b"'"),
    "a trailing comma": lambda c: c.rstrip().removesuffix(b"}") + b",}",
    "a control character": lambda c: c.replace(b'"', b'"\x01', 1),
    "a further key": lambda c: c.replace(b"{", b'{"further": "' + SECRET.encode() + b'",', 1),
}


def public_failure(folder: ReleaseFolder) -> tuple[State, str]:
    """What an audit of the public files ends in, where nothing else was copied."""
    shutil.rmtree(folder.internal, ignore_errors=True)
    try:
        checks = recheck(folder, Told(public=True))
    except DataError as error:
        return State.FAILED, one_sentence(error)
    for check in checks:
        assert check.detail.isprintable()
        assert SECRET not in check.detail
    return overall(checks), one_sentence(error_of("here", checks))


@pytest.mark.parametrize("name", ["protocol.json", "datapackage.json", "signature.json"])
def test_bytes_that_are_no_public_document(copy: ReleaseFolder, name: str) -> None:
    path = copy.root / name
    content = path.read_bytes()
    for kind, change in BYTES.items():
        path.write_bytes(change(content))
        assert public_failure(copy)[0] is State.FAILED, kind


@pytest.mark.parametrize("name", ["joint", "draws", "findings", "verdict", "record"])
def test_bytes_that_are_no_internal_document(copy: ReleaseFolder, name: str) -> None:
    path: Path = getattr(copy, name)
    content, protocol = path.read_bytes(), ProtocolDocument.read(copy.protocol)
    for kind, change in BYTES.items():
        path.write_bytes(change(content))
        check, evidence = read_evidence(copy, protocol)
        assert check.failed, kind
        assert evidence is None, kind
        assert check.detail.isprintable(), kind
        assert SECRET not in check.detail, kind


VALUES = (None, True, -1, 0.5, 10**30, SECRET, [], {}, [[]], [SECRET], {"a": SECRET})


def keys_of(kind: str) -> list[str]:
    return {
        "protocol": ["schema", "digest", "denominator", "inputs", "weights", "marginal", "guarantee", "posterior"],
        "package": ["name", "version", "created", "resources", "funnel:privacy", "licenses"],
        "signature": ["schema", "manifest", "public_key", "signature"],
    }[kind]


@pytest.mark.parametrize("kind", ["protocol", "package", "signature"])
def test_any_value_in_the_place_of_another(copy: ReleaseFolder, kind: str) -> None:
    path: Path = getattr(copy, kind)
    content = json.loads(path.read_bytes())
    for key in keys_of(kind):
        for value in VALUES:
            # What is null where it follows from other keys.
            if value is not None or content[key] is not None:
                path.write_bytes(dump({**content, key: value}))
                assert public_failure(copy)[0] is State.FAILED, (key, value)
        path.write_bytes(dump({name: one for name, one in content.items() if name != key}))
        assert public_failure(copy)[0] is State.FAILED, key


def test_a_prior_of_values_that_do_not_fit_its_columns(honest: ReleaseFolder, tmp_path: Path) -> None:
    folder = ReleaseFolder(tmp_path / "1.0.0")
    shutil.copytree(honest.root, folder.root)
    content = json.loads(folder.protocol.read_bytes())
    content["prior"]["symbols"][0] = []
    folder.protocol.write_bytes(dump(content))
    assert "do not fit its columns" in public_failure(folder)[1]


TABLES: dict[str, Change] = {
    "nothing": lambda c: b"",
    "the magic alone": lambda c: b"PAR1",
    "two magics": lambda c: b"PAR1PAR1",
    "no footer": lambda c: b"PAR1" + bytes(4) + b"PAR1",
    "a footer longer than the file": lambda c: c[:-8] + b"\xff\xff\xff\x7fPAR1",
    "a footer of another length": lambda c: (
        c[:-8] + (int.from_bytes(c[-8:-4], "little") - 3).to_bytes(4, "little") + b"PAR1"
    ),
    "another magic": lambda c: c[:-4] + b"PARE",
    "zeros in the pages": lambda c: c[:4] + bytes(60) + c[64:],
    "ones in the pages": lambda c: c[:30] + b"\xff" * 60 + c[90:],
    "zeros in the footer": lambda c: c[:-200] + bytes(100) + c[-100:],
    "ones in the footer": lambda c: c[:-200] + b"\xff" * 100 + c[-100:],
    "nested structures in the footer": lambda c: c[:4] + b"\x1c" * 300_000 + (300_000).to_bytes(4, "little") + b"PAR1",
    "a list of 2^60 in the footer": lambda c: (
        c[:4] + b"\x19\xfc" + b"\xff" * 8 + b"\x0f" + (11).to_bytes(4, "little") + b"PAR1"
    ),
    "without its first half": lambda c: b"PAR1" + c[len(c) // 2 :],
    "csv": lambda c: f"relationship\n{SECRET}\n".encode(),
    "arrow": lambda c: b"ARROW1\0\0" + c,
}


def test_bytes_that_are_no_table(copy: ReleaseFolder) -> None:
    content = copy.data.read_bytes()
    for kind, change in TABLES.items():
        copy.data.write_bytes(change(content))
        checks = {check.name: check for check in recheck(copy, Told(public=True))}
        assert checks["values"].failed, kind
        assert all(check.detail.isprintable() and SECRET not in check.detail for check in checks.values()), kind


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_byte_of_the_table(honest: ReleaseFolder, tmp_path: Path, data: st.DataObject) -> None:
    """One byte more, less or other, anywhere: it is not what funnel writes, unless it is so for other rows."""
    from funnel.audit.encoding import check_table
    from funnel.audit.released_columns import ReleasedColumns

    content = honest.data.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    piece = data.draw(st.binary(max_size=2))
    changed = content[:place] + piece + content[place + 1 :]
    path = tmp_path / "t.parquet"
    path.write_bytes(changed)
    columns = ReleasedColumns.of_outputs(ProtocolDocument.read(honest.protocol).outputs.alphabet())
    values, parquet, _ = check_table(path, columns)
    if changed == content:
        assert parquet.passed
    elif parquet.passed:
        # A byte of the positions of values: another release, which the digests tell apart.
        assert pq.read_table(path)[0].to_pylist() != pq.read_table(honest.data)[0].to_pylist()
    assert values.detail.isprintable()


def test_a_page_that_grows_without_limit_is_not_decompressed(copy: ReleaseFolder) -> None:
    """Megabytes of the same letter are a few kilobytes of parquet."""
    bomb = pa.table({"relationship": pa.array(["x" * (1 << 25)])})
    pq.write_table(bomb, copy.data, compression="zstd", use_dictionary=False, data_page_size=1 << 30)
    assert copy.data.stat().st_size < 1 << 20
    checks = {check.name: check for check in recheck(copy, Told(public=True))}
    assert checks["values"].detail == "records.parquet: a page is larger than any that funnel writes"


def test_documents_larger_than_any_are_not_read(copy: ReleaseFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_files, "LARGEST_DOCUMENT", 1000)
    with pytest.raises(DataError, match="is larger than any document of a release"):
        recheck(copy)


def test_more_files_than_any_release_has(copy: ReleaseFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_files, "_MOST_ENTRIES", 20)
    for number in range(20):
        (copy.root / f"{number}").touch()
    with pytest.raises(DataError, match="holds more than 20 files"):
        recheck(copy)
    deep = copy.root / "/".join("abcdefghijkl")
    deep.mkdir(parents=True)
    monkeypatch.setattr(audit_files, "_MOST_ENTRIES", 200)
    with pytest.raises(DataError, match="is deeper than any folder of a release"):
        recheck(copy)


def to_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


NO_FILES: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a loop": lambda path: path.symlink_to(path),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": to_socket,
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file(copy: ReleaseFolder, kind: str) -> None:
    for name in ("protocol", "package", "signature", "report", "data", "joint", "record"):
        path: Path = getattr(copy, name)
        kept = path.rename(copy.root.parent / "kept")
        NO_FILES[kind](path)
        try:
            checks = recheck(copy)
        except DataError as error:
            one_sentence(error)
        else:
            assert overall(checks) is State.FAILED, name
            one_sentence(error_of("here", checks))
        path.rmdir() if kind == "a folder" else path.unlink()
        kept.rename(path)


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_release(tmp_path: Path, kind: str) -> None:
    NO_FILES[kind](tmp_path / "latest")
    for place in (tmp_path, tmp_path / "latest", tmp_path / "none"):
        with pytest.raises(DataError) as caught:
            find_release(place)
        one_sentence(caught.value)


def test_a_link_to_the_newest_version_does_not_lead_out_of_the_series(copy: ReleaseFolder, tmp_path: Path) -> None:
    series = tmp_path / "series"
    series.mkdir()
    (series / "latest").symlink_to(copy.root)
    with pytest.raises(DataError, match="leads out of its series, and is not followed"):
        find_release(series)
    copy.root.rename(series / "1.0.0")
    (series / "latest").unlink()
    (series / "latest").symlink_to("1.0.0")
    assert find_release(series).root == series / "1.0.0"


# Specs: the text, whatever is wrong with it.
SPECS: dict[str, str | bytes] = {
    "nothing": "",
    "no TOML": "{]",
    "a text": SECRET,
    "not UTF-8": b"\xff\xfe",
    "a zero byte": SPEC + "\0",
    "a key twice": SPEC + '\n[metadata]\nlicence = "x"\n',
    "no source": SPEC.replace('[source]\npath = "people.parquet"\n', ""),
    "no licence": SPEC.replace('[metadata]\nlicence = "CC-BY-4.0"\n', ""),
    "an unknown key": f"{SECRET.lower()} = 1\n{SPEC}",
    "an unknown table": f"{SPEC}\n[{SECRET}]\n",
    "deep tables": "[" + ".".join("a" * 2000) + "]\n" + SPEC,
    "a deep list": SPEC.replace('["marital-status"]', "[" * 500 + "]" * 500),
    **{
        f"{key} = {value}": SPEC.replace(f"{key} = {old}", f"{key} = {value}", 1)
        for key, old, values in (
            ("name", '"people"', ('""', '"../people"', '"."', "5", "[]", '"a/b"', '"\\u0000"', "nan")),
            ("title", '"People of a test"', ("5", "[]", "{}", "true", '"a\\nb"')),
            ("secret", '["marital-status"]', ("[]", '""', "[5]", '["a", "a"]', "{}", "5", '["relationship"]')),
            ("publish", '["relationship"]', ("[]", "[[]]", "[5]", '["a", "a"]', "{}", "false")),
            (
                "guarantee",
                '"lip:1.0"',
                (
                    '""',
                    '"lip"',
                    '"lip:"',
                    '"lip:-1"',
                    '"lip:nan"',
                    '"lip:inf"',
                    '"lip:1_0"',
                    '"lop:1"',
                    "1.0",
                    '"lip:1,2,3"',
                ),
            ),
            ("path", '"people.parquet"', ('""', "5", '"s3://user:pw@host/x"', '"nope://x"', '"a::b"', '"people.docx"')),
            ("licence", '"CC-BY-4.0"', ('""', "5", "[]", '"a\\nb"')),
        )
        for value in values
    },
}


@pytest.mark.parametrize("kind", SPECS)
def test_a_malformed_spec(tmp_path: Path, kind: str) -> None:
    text = SPECS[kind]
    path = make_project(tmp_path)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FunnelError) as caught:
        count_joint(ReleaseSpec.load(path), progress=quiet)
    assert isinstance(caught.value, SpecError | DataError)
    one_sentence(caught.value) if SECRET not in str(text) else None
    assert "\n" not in str(caught.value)


def test_a_forger_of_a_forger(copy: ReleaseFolder) -> None:
    """The helper of these tests writes what funnel writes: covering an honest release changes the signature alone."""
    paths = [path for folder in (copy.root, copy.internal) for path in folder.rglob("*.*") if path.is_file()]
    before = {path: path.read_bytes() for path in paths}
    Forger(copy).cover()
    changed = {path.name for path, content in before.items() if path.read_bytes() != content}
    assert changed == {"signature.json", "release.json"}
