#!/usr/bin/env bash
# Installs the system packages that the tests need and no Python registry holds:
#   chromium   Debian's browser; a test opens the audit report in it, offline, and reads the page.
# The library and the pipeline themselves need no system package.
set -euo pipefail

if [[ -x /usr/bin/chromium ]]; then
    echo "install-system-packages: chromium is present, nothing to install."
    exit 0
fi

refuse() {
    echo "install-system-packages: the package 'chromium' is missing and cannot be installed here, because $1; install it so that /usr/bin/chromium exists." >&2
    exit 1
}

command -v apt-get >/dev/null || refuse "there is no apt-get"

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || refuse "this user is not root and there is no sudo"
    sudo -n true 2>/dev/null || refuse "this user is not root and sudo asks for a password"
    as_root=(sudo -n)
fi

echo "install-system-packages: installing Debian's chromium with apt-get, for the browser test of the report."
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null; }
apt update || refuse "apt-get update failed"
apt install -y --no-install-recommends chromium || refuse "apt-get install failed"
[[ -x /usr/bin/chromium ]] || refuse "apt-get installed it but /usr/bin/chromium is not there"
echo "install-system-packages: chromium is installed."
