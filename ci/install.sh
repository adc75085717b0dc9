#!/bin/sh
# Installs a released invar: one static binary, checked against the SHA256SUMS
# of the release and, where INVAR_SHA256 is given, against that. What does not
# fit is not installed. The templates beside this file hold the same lines.
#
#   INVAR_VERSION  release, as 1.0.0
#   INVAR_BIN      folder for the binary
#   INVAR_SHA256   digests of the binary that are accepted, one an architecture
#   INVAR_URL      folder of the release's files, for a mirror
set -eu
fail() {
	echo "invar: error: $1" >&2
	exit 1
}
INVAR_VERSION=${INVAR_VERSION:-}
version=${INVAR_VERSION#v}
case $version in
'' | *[!0-9A-Za-z.-]*) fail "INVAR_VERSION is ${INVAR_VERSION:-empty}; want a release, as 1.0.0" ;;
esac
case $(uname -s)-$(uname -m) in
Linux-x86_64) arch=amd64 ;;
Linux-aarch64) arch=arm64 ;;
*) fail "no release for $(uname -s) on $(uname -m); want Linux on x86_64 or aarch64" ;;
esac
url=${INVAR_URL:-https://github.com/invar-ops/invar/releases/download/v$version}
case $url in
https://* | http://127.0.0.1[:/]* | http://localhost[:/]*) ;;
http://*) [ -n "${INVAR_SHA256:-}" ] || fail "$url is not encrypted; want https, or INVAR_SHA256 to know the binary by" ;;
*) fail "INVAR_URL is $url; want https://..." ;;
esac
get() {
	if command -v curl >/dev/null; then
		curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
	elif command -v wget >/dev/null; then
		wget -q -O "$2" "$1"
	else
		fail "neither curl nor wget is here; install one of them"
	fi || fail "$1 was not fetched; check INVAR_VERSION, or the proxy"
}
mkdir -p "$INVAR_BIN"
part=$(mktemp -d "$INVAR_BIN/.part.XXXXXX")
trap 'rm -rf "$part"' EXIT
get "$url/SHA256SUMS" "$part/sums"
line=$(grep -E "^[0-9a-f]{64}  invar_[0-9A-Za-z.+-]+_linux_$arch$" "$part/sums" || true)
[ "$(printf %s "$line" | grep -c .)" = 1 ] || fail "SHA256SUMS names no invar for linux on $arch, or two"
want=${line%% *}
name=${line##* }
get "$url/$(printf %s "$name" | sed 's/+/%2B/g')" "$part/invar"
got=$(sha256sum "$part/invar" | cut -d ' ' -f 1)
[ "$got" = "$want" ] || fail "$name has the digest $got; want $want, as SHA256SUMS says"
if [ -n "${INVAR_SHA256:-}" ]; then
	case " $(printf %s "$INVAR_SHA256" | tr ',[:space:]' ' ') " in
	*" $got "*) ;;
	*) fail "$name has the digest $got; want $INVAR_SHA256, as INVAR_SHA256 says" ;;
	esac
fi
chmod 755 "$part/invar"
says=$("$part/invar" version)
case $says in
"invar $version "* | "invar $version+"*) ;;
*) fail "the binary says it is $says; want invar $version" ;;
esac
mv "$part/invar" "$INVAR_BIN/invar"
echo "$says, sha256 $got"
