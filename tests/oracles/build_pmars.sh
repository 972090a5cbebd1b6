#!/usr/bin/env bash
# Builds pMARS, the reference simulator of the Core War community, from Debian's source package.
#
#   build_pmars.sh FOLDER     leaves FOLDER/pmars (server variant), FOLDER/pmars-debug (with its
#                             debugger) and FOLDER/warriors (the package's own programs)
#
# It is an outside program to compare with: nothing of it enters this repository. Nothing of the
# system changes (a private source list, no root needed) except that dpkg-dev and a compiler have
# to be there. Exit code 3: this machine cannot build it, and the one line printed says why.
set -u
folder=${1:?usage: build_pmars.sh FOLDER}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
cannot() { echo "pMARS oracle not available: $1"; exit 3; }

[ -x "$folder/pmars" ] && [ -x "$folder/pmars-debug" ] && [ -d "$folder/warriors" ] && exit 0
command -v apt-get >/dev/null || cannot "no apt-get (its source comes from Debian's archive)"
command -v cc >/dev/null || cannot "no C compiler (install gcc)"
if ! command -v dpkg-source >/dev/null; then
  [ "$(id -u)" = 0 ] || cannot "dpkg-dev is missing (as root: apt-get install dpkg-dev)"
  { apt-get update && apt-get install -y --no-install-recommends dpkg-dev; } >/dev/null 2>&1 \
    || cannot "dpkg-dev could not be installed"
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/sources" "$work/lists/partial" "$work/source"
for list in /etc/apt/sources.list.d/*.sources; do
  [ -e "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" > "$work/sources/$(basename "$list")"
done
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [ -e "$list" ] && sed -n 's/^deb\(-src\)\{0,1\} /deb-src /p' "$list" > "$work/sources/$(basename "$list" .list)-src.list"
done
apt=(apt-get -qq -o "Dir::Etc::SourceParts=$work/sources" -o Dir::Etc::SourceList=/dev/null
     -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work" -o APT::Sandbox::User=root)
"${apt[@]}" update >"$work/log" 2>&1 || cannot "the source index could not be read ($(tail -n 1 "$work/log"))"
(cd "$work/source" && "${apt[@]}" source pmars) >"$work/log" 2>&1 \
  || cannot "its source could not be fetched ($(tail -n 1 "$work/log"))"

tree=$(find "$work/source" -mindepth 1 -maxdepth 1 -type d | head -n 1)
mkdir -p "$folder"
cd "$tree/src" || exit 1
files="asm.c cdb.c clparse.c disasm.c eval.c global.c pmars.c pos.c sim.c str_eng.c token.c"
# shellcheck disable=SC2086
cc -O2 -w -DEXT94 -DSERVER -DPERMUTATE -o "$work/pmars" $files >"$work/log" 2>&1 || cannot "it did not compile ($(tail -n 1 "$work/log"))"
# shellcheck disable=SC2086
cc -O2 -w -DEXT94 -DPERMUTATE -o "$work/pmars-debug" $files >"$work/log" 2>&1 || cannot "its debugger did not compile ($(tail -n 1 "$work/log"))"
rm -rf "$folder/warriors"
cp -r "$tree/warriors" "$folder/warriors" && mv "$work/pmars" "$work/pmars-debug" "$folder/"
