#!/bin/sh
# Installs Plumb from this folder: the program, manual pages, completions and the units of agent and survey. It
# needs no network.
#
#   ./install.sh [--prefix DIR]               default: /usr/local
#   ./install.sh --uninstall [--prefix DIR]   removes the same files
#
# DESTDIR is put before the prefix, as packages need it.
set -eu
# Users run the program and read the pages.
umask 022

prefix=/usr/local
action=install
usage() {
  echo "usage: install.sh [--prefix DIR] [--uninstall]; found '$1'" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ $# -ge 2 ] || usage "$1"; prefix=$2; shift 2 ;;
    --prefix=*) prefix=${1#--prefix=}; shift ;;
    --uninstall) action=uninstall; shift ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) usage "$1" ;;
  esac
done
# A slash at the end means the same folder.
while [ "${prefix%/}" != "$prefix" ] && [ "$prefix" != / ]; do prefix=${prefix%/}; done
case $prefix in
  /*) ;;
  *) echo "install.sh: found prefix '$prefix', expected an absolute path" >&2; exit 2 ;;
esac

source=$(cd "$(dirname "$0")" && pwd)
root=${DESTDIR:-}$prefix
cd "$source"
@REMOVAL@
@UNITS@
if [ "$action" = uninstall ]; then
  prepare_removal "$prefix"
  find bin lib share -type f | while IFS= read -r file; do
    rm -f "$root/$file"
  done
  [ -n "${DESTDIR:-}" ] || reload_units
  echo "removed plumb from $root"
  exit 0
fi
find bin lib share -type f | while IFS= read -r file; do
  mkdir -p "$root/$(dirname "$file")"
  # A running program keeps its old file.
  case $file in
    lib/systemd/*) print_unit "$prefix" "$file" >"$root/$file.new" ;;
    *) cp "$file" "$root/$file.new" ;;
  esac
  case $file in
    bin/*) chmod 755 "$root/$file.new" ;;
    *) chmod 644 "$root/$file.new" ;;
  esac
  mv -f "$root/$file.new" "$root/$file"
done
[ -n "${DESTDIR:-}" ] || reload_units
echo "installed $root/bin/plumb with its manual pages, completions and units"
