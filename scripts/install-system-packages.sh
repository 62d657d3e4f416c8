#!/usr/bin/env bash
# Installs the system packages that the tests need and no Python registry holds:
#   chromium    Debian's browser; a test opens the audit report in it, offline, and reads the page.
#   postgresql  Debian's database server; tests of the ledger start one of their own, in a folder of theirs. The cluster
#               that Debian makes and starts with the package is not made.
#   r-base-core the R language; a test runs what every release tells people who estimate in R.
# The library and the pipeline themselves need no system package.
set -euo pipefail

# The server's programs are not on the path in Debian, since several versions may be installed.
has_chromium() { [[ -x /usr/bin/chromium ]]; }
has_r() { command -v Rscript >/dev/null; }
has_postgresql() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null; }

missing=()
has_chromium || missing+=(chromium)
has_postgresql || missing+=(postgresql)
has_r || missing+=(r-base-core)
if [[ ${#missing[@]} -eq 0 ]]; then
    echo "install-system-packages: chromium, postgresql and R are present, nothing to install."
    exit 0
fi

refuse() {
    echo "install-system-packages: missing here and not installed, because $1: ${missing[*]}; install them so that /usr/bin/chromium, /usr/lib/postgresql/VERSION/bin/initdb and Rscript exist." >&2
    exit 1
}

command -v apt-get >/dev/null || refuse "there is no apt-get"

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || refuse "this user is not root and there is no sudo"
    sudo -n true 2>/dev/null || refuse "this user is not root and sudo asks for a password"
    as_root=(sudo -n)
fi

echo "install-system-packages: installing Debian's ${missing[*]} with apt-get, for the tests of the report, of the ledger and of estimates in R."
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null; }
install() { apt install -y --no-install-recommends "$@" || refuse "apt-get install failed"; }
apt update || refuse "apt-get update failed"

if ! has_chromium; then
    install chromium
    has_chromium || refuse "apt-get installed it but /usr/bin/chromium is not there"
fi

if ! has_r; then
    install r-base-core
    has_r || refuse "apt-get installed it but Rscript is not there"
fi

if ! has_postgresql; then
    # Read by the package when it is configured; what it said before is put back, for whoever installs another version.
    settings=/etc/postgresql-common/createcluster.conf
    install postgresql-common
    kept=$(mktemp)
    cp "$settings" "$kept"
    put_back() { "${as_root[@]}" cp "$kept" "$settings" && rm -f "$kept"; }
    trap put_back EXIT
    echo 'create_main_cluster = false' | "${as_root[@]}" tee -a "$settings" >/dev/null
    install postgresql
    has_postgresql || refuse "apt-get installed it but /usr/lib/postgresql/VERSION/bin/initdb is not there"
fi
echo "install-system-packages: ${missing[*]} installed."
