#!/bin/sh
# Installs the newest release of Satchel on Linux or macOS:
#
#   sh install.sh [FOLDER]     into FOLDER, by default /usr/local/bin or ~/.local/bin
#
# It downloads the archive of this machine and checksums.txt from the page of
# releases, and installs nothing whose SHA-256 differs. A program that is there is
# replaced at once, or stays as it was. SATCHEL_VERSION picks a release,
# SATCHEL_RELEASES another page.
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }

fetch() {
  if command -v curl >/dev/null; then curl -fsSL --retry 3 --connect-timeout 30 --speed-limit 1000 --speed-time 30 -o "$dir/$1" "$from/$1"
  elif command -v wget >/dev/null; then wget -q -T 30 -O "$dir/$1" "$from/$1"
  else fail "needs curl or wget"; fi || fail "$from/$1 cannot be downloaded; nothing was installed"
}

sum() { if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi; }

# All is in a function, so that nothing runs of a script that arrives only in part.
main() {
  releases=${SATCHEL_RELEASES:-@RELEASES@}
  version=${SATCHEL_VERSION:-latest}
  case $releases in @*) fail "set SATCHEL_RELEASES to the address of the page of releases" ;; esac
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "$(uname -s) is not supported; on Windows unpack the zip of the release" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no build for $(uname -m)" ;;
  esac
  if [ "$version" = latest ]; then from=$releases/latest/download; else from=$releases/download/v${version#v}; fi
  archive=satchel_${os}_${arch}.tar.gz

  to=${1:-/usr/local/bin}
  if [ $# -eq 0 ] && [ ! -w "$to" ]; then to=${HOME:?is not set: name a folder to install into}/.local/bin; fi
  mkdir -p "$to" && [ -w "$to" ] || fail "$to cannot be written to: run this as root, or name another folder; nothing was installed"

  dir=$(mktemp -d) new=
  trap 'rm -rf "$dir" ${new:+"$new"}' EXIT
  trap 'exit 1' HUP INT TERM # some shells leave without EXIT
  fetch "$archive"
  fetch checksums.txt
  want=$(awk -v name="$archive" '$2 == name { print $1 }' "$dir/checksums.txt")
  got=$(sum "$dir/$archive")
  got=${got%% *}
  [ -n "$want" ] && [ "$got" = "$want" ] ||
    fail "$archive has the SHA-256 $got, and checksums.txt says ${want:-nothing}; nothing was installed"
  tar -xzf "$dir/$archive" -C "$dir" satchel

  new=$to/.satchel.$$
  cp "$dir/satchel" "$new"
  chmod 0755 "$new"
  said=$("$new" version) || fail "the program does not run on this machine; nothing was installed"
  mv -f "$new" "$to/satchel"
  echo "Installed $said as $to/satchel."
  case :$PATH: in
    *:"$to":*) echo "Start it with: satchel" ;;
    *) echo "Start it with: $to/satchel" ;;
  esac
}

main "$@"
