#!/usr/bin/env bash
# Proves both installs in clean environments: `pip install funnel`, the library, and `pip install 'funnel[pipeline]'`.
#   scripts/check-installs.sh            the library on the oldest and the newest Python found here, from 3.11 to 3.14,
#                                        and the pipeline on the newest: `make test` has it on the other
#   scripts/check-installs.sh 3.11 3.13  both on each of these
# Builds the sdist, and the wheel from it, once. For a Python that is not here it is proven that every wheel exists.
# The versions are those of requirements.lock, so that this fails for what changed here and for nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
bin=$root/${VENV:-.venv}/bin
unset PYTHONPATH PYTHONDONTWRITEBYTECODE
# Nothing is downloaded but packages, and no setting of this machine lets other ones in.
export UV_PYTHON_DOWNLOADS=never UV_NO_CONFIG=1
# Has no wheels at every index: the only package that may be built here. By pip, which keeps what it builds.
built=pycddlib-standalone
wheels=(--only-binary :all:)

say() { echo "check-installs: $*"; }
refuse() {
    say "$*" >&2
    exit 1
}

# The interpreter of a version: on the path, or one of pyenv's, whose names on the path answer for the chosen ones only.
interpreter() {
    local candidate
    for candidate in "$(command -v "python$1" || true)" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1."*"/bin/python$1"; do
        if [[ -x $candidate ]] && "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

wanted=("$@")
everywhere=$#
if [[ ${#wanted[@]} -eq 0 ]]; then
    found=()
    for version in 3.11 3.12 3.13 3.14; do
        [[ -z $(interpreter "$version") ]] || found+=("$version")
    done
    [[ ${#found[@]} -gt 0 ]] || refuse "no Python from 3.11 to 3.14 was found"
    wanted=("${found[0]}")
    [[ ${found[-1]} == "${found[0]}" ]] || wanted+=("${found[-1]}")
    if [[ ${#wanted[@]} -eq 1 ]]; then
        say "only Python ${found[0]} is here, so that every wheel exists is all that is proven for 3.13"
        wanted+=(3.13)
    fi
fi

newest=${wanted[0]}
for version in "${wanted[@]}"; do [[ -z $(interpreter "$version") ]] || newest=$version; done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# From the files of the commit or the working tree, but in a copy: a build leaves folders behind.
mkdir "$work/source" "$work/dist"
git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi; done |
    tar --create --null --files-from=- --file=- | tar --extract --directory "$work/source"
"$root/scripts/locked.sh" requirements.lock "$built" >"$work/built.lock"
say "building the sdist, and the wheel from it"
"$bin/python" -m build --no-isolation --outdir "$work/dist" "$work/source" >"$work/build.log" 2>&1 ||
    { cat "$work/build.log" >&2; refuse "the build failed"; }
wheel=$(echo "$work"/dist/*.whl)
top=$("$bin/python" -c 'import sys, zipfile
print(*sorted({name.partition("/")[0] for name in zipfile.ZipFile(sys.argv[1]).namelist()}))' "$wheel")
[[ $top =~ ^funnel\ funnel-[0-9.]+\.dist-info$ ]] || refuse "the wheel holds more than funnel at its top: $top"

# A folder with somebody's own packages of the names that the pipeline has in this project.
somewhere=$work/somewhere
for name in tasks flows expectations ledger; do
    mkdir -p "$somewhere/$name"
    echo 'raise ImportError("somebody'"'"'s own package was imported")' >"$somewhere/$name/__init__.py"
done
mkdir "$somewhere/data"
cp data/adult.parquet data/adult-education.toml "$somewhere/data/"
# The sample, but with a mechanism that is made at once: the optimum has its own tests.
sed -i 's/^name = "auto"/name = "grr"/' "$somewhere/data/adult-education.toml"

refused="funnel: the pipeline is not installed (prefect is missing): pip install 'funnel[pipeline]'"

check() {
    local version=$1 python=$2 env=$work/env-$1
    "$bin/uv" venv --quiet --python "$python" "$env"
    local install=("$bin/uv" pip install --quiet --python "$env/bin/python" "${wheels[@]}" --constraint "$root/requirements.lock")
    "$bin/python" -m pip --disable-pip-version-check --quiet --python "$env/bin/python" \
        install --no-deps --require-hashes -r "$work/built.lock"
    "${install[@]}" "$wheel"
    (
        cd "$somewhere"
        "$env/bin/python" "$root/scripts/check_library.py" data/adult.parquet
        "$env/bin/funnel" --help >/dev/null
        # The plan is made of the noisy counts that a release would be made of.
        "$env/bin/funnel" plan data/adult-education.toml >said 2>progress || { cat progress; refuse "funnel plan failed"; }
        grep -q '^grr ' said || refuse "funnel plan shows no mechanism"
        if "$env/bin/funnel" release data/adult-education.toml 2>said; then refuse "a library install released something"; fi
        [[ $(<said) == "$refused" ]] || refuse "funnel release says without the pipeline: $(<said)"
    )
    say "Python $version: the library is whole without the pipeline"
    [[ $everywhere -gt 0 || $version == "$newest" ]] || return 0
    "${install[@]}" "funnel[pipeline] @ file://$wheel"
    (
        cd "$somewhere"
        "$env/bin/funnel" release data/adult-education.toml >said 2>progress || { cat progress said; refuse "funnel release failed"; }
        grep -q '^Published version ' said || refuse "funnel release says: $(<said)"
        "$env/bin/funnel" audit releases/adult-education >/dev/null 2>&1 || refuse "the release does not pass its audit"
        rm -rf releases .funnel data/.funnel data/releases
    )
    say "Python $version: the pipeline releases in a folder with other packages tasks, flows, expectations and ledger"
    rm -rf "$env"
}

resolve() {
    "$bin/uv" pip compile --quiet --python-version "$1" "${wheels[@]}" --no-binary "$built" --constraint requirements.lock --output-file "$work/resolved" - \
        <<<"funnel[pipeline] @ file://$wheel" >/dev/null 2>"$work/resolve.log" ||
        { cat "$work/resolve.log" >&2; refuse "for Python $1 not every wheel exists"; }
    say "Python $1 is not here; every wheel of the library and of the pipeline exists for it"
}

for version in "${wanted[@]}"; do
    python=$(interpreter "$version")
    if [[ -n $python ]]; then check "$version" "$python"; else resolve "$version"; fi
done
