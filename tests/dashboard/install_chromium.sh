#!/usr/bin/env bash
# Sees to it that there is a chromium for the tests of the dashboard; as root it is installed from Debian.
#
# Playwright drives the system's browser: nothing is downloaded from anywhere else. Exit code 3: there is none
# and this machine cannot install it, and the one line printed says why.
set -u
cannot() { echo "Browser tests not available: $1"; exit 3; }

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
command -v apt-get >/dev/null || cannot "no chromium and no apt-get (install chromium)"
[ "$(id -u)" = 0 ] || cannot "chromium is missing (as root: apt-get install chromium)"
{ apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 \
  || cannot "chromium could not be installed"
