#!/bin/sh
# Installs the newest release of Satchel on Linux or macOS:
#
#   sh install.sh [FOLDER]     into FOLDER, by default /usr/local/bin or ~/.local/bin
#
# It downloads the archive of this machine and checksums.txt from the page of
# releases, and installs nothing whose SHA-256 differs. SATCHEL_VERSION picks a
# release, SATCHEL_RELEASES another page.
set -eu

releases=${SATCHEL_RELEASES:-@RELEASES@}
version=${SATCHEL_VERSION:-latest}
case $releases in
  @*) echo "install.sh: set SATCHEL_RELEASES to the address of the page of releases" >&2; exit 1 ;;
esac
case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) echo "install.sh: $(uname -s) is not supported; on Windows unpack the zip of the release" >&2; exit 1 ;;
esac
case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) echo "install.sh: there is no build for $(uname -m)" >&2; exit 1 ;;
esac
if [ "$version" = latest ]; then from=$releases/latest/download; else from=$releases/download/$version; fi
archive=satchel_${os}_${arch}.tar.gz

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fetch() {
  if command -v curl >/dev/null; then curl -fsSL --retry 3 -o "$dir/$1" "$from/$1"; else wget -q -O "$dir/$1" "$from/$1"; fi ||
    { echo "install.sh: $from/$1 cannot be downloaded" >&2; exit 1; }
}
fetch "$archive"
fetch checksums.txt
want=$(awk -v name="$archive" '$2 == name { print $1 }' "$dir/checksums.txt")
if command -v sha256sum >/dev/null; then got=$(sha256sum "$dir/$archive"); else got=$(shasum -a 256 "$dir/$archive"); fi
got=${got%% *}
if [ -z "$want" ] || [ "$got" != "$want" ]; then
  echo "install.sh: $archive has the SHA-256 $got, and checksums.txt says ${want:-nothing}; nothing was installed" >&2
  exit 1
fi
tar -xzf "$dir/$archive" -C "$dir" satchel

to=${1:-/usr/local/bin}
if [ $# -eq 0 ] && [ ! -w "$to" ]; then to=$HOME/.local/bin; fi
mkdir -p "$to"
install -m 0755 "$dir/satchel" "$to/satchel"
echo "Installed $("$to/satchel" version) as $to/satchel."
echo "Start it with: $to/satchel"
