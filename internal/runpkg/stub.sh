#!/bin/sh
# An invar run package: a POSIX shell installer, a manifest, then a compressed tar.
# The variables have the names that makeself archives use, so that tools which
# read such archives without running them can read this one too; some are only
# for them.
# shellcheck disable=SC2034
true
# begin variables
invar_format="1"
name="unset"
version="0"
platform="linux.unset"
label="unset"
codec="gzip"
script=""
targetdir="unset"
CRCsum="0"
MD5="00000000000000000000000000000000"
SHA="unset"
filesizes="0"
totalsize="0"
unpacked="0"
header_size="0"
skip="0"
# end variables

self=$0
quiet=n
action=install
install_path=
target=
for_all=n
upgrade=n
tmp=
link=
lock=
status=0
LC_ALL=C
export LC_ALL

say() {
	[ "$quiet" = y ] || printf '%s: %s\n' "$name" "$1"
}

# die CODE TEXT [HINT]
die() {
	printf '%s: error: %s\n' "$name" "$2" >&2
	[ $# -lt 3 ] || printf '%s: hint: %s\n' "$name" "$3" >&2
	exit "$1"
}

warn() {
	printf '%s: warning: %s\n' "$name" "$1" >&2
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# The EXIT trap calls this.
# shellcheck disable=SC2317
cleanup() {
	[ -z "$tmp" ] || rm -rf "$tmp"
	[ -z "$link" ] || rm -f "$link"
	[ -z "$lock" ] || rmdir "$lock" 2>/dev/null
}

usage() {
	cat <<USAGE
$label

Usage: $self [options]

  --help               print this text
  --info               print what this package is, and its manifest
  --list               list the files in it
  --check              check the sizes and digests, install nothing
  --noexec             only extract; goes with --target
  --target DIR         extract into DIR (new or empty), install nothing
  --install-path=DIR   install as DIR/$name (also --install-path DIR)
                       default: /opt for root or with --install-for-all,
                       else \$XDG_DATA_HOME or \$HOME/.local/share
  --install-for-all    let every user of the machine read what is installed
  --upgrade            replace another version that is installed there
  --uninstall          remove exactly the files that were installed
  --full               the default: install everything
  --quiet              print errors and warnings only
  --                   ends the options of a wrapper; what follows is read as above

Exit codes: 0 done, 1 failed, 2 wrong option, 3 this machine cannot use the
package, 130 and 143 interrupted.
USAGE
}

# need_value OPTION COUNT
need_value() {
	[ "$2" -ge 2 ] || die 2 "$1 needs a folder" "$1 DIR"
}

parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) action=help ;;
		--info) action=info ;;
		--list) action=list ;;
		--check) action=check ;;
		--uninstall) action=uninstall ;;
		--noexec) [ "$action" != install ] || action=extract ;;
		--target)
			need_value "$1" $#
			target=$2
			[ -n "$target" ] || die 2 "--target is empty" "--target DIR"
			shift
			;;
		--target=*)
			target=${1#*=}
			[ -n "$target" ] || die 2 "--target is empty" "--target DIR"
			;;
		--install-path)
			need_value "$1" $#
			install_path=$2
			[ -n "$install_path" ] || die 2 "--install-path is empty" "--install-path=DIR"
			shift
			;;
		--install-path=*)
			install_path=${1#*=}
			[ -n "$install_path" ] || die 2 "--install-path is empty" "--install-path=DIR"
			;;
		--install-for-all) for_all=y ;;
		--upgrade) upgrade=y ;;
		--full) ;;
		--quiet | -q) quiet=y ;;
		--) ;;
		*) die 2 "unknown option or argument: $1" "run with --help for the list" ;;
		esac
		shift
	done
	[ "$action" != install ] || [ -z "$target" ] || action=extract
	if [ "$action" = extract ] && [ -n "$install_path" ]; then
		die 2 "--target and --noexec extract only, --install-path installs" "use one of them"
	fi
}

# section NAME prints one part of the header that follows the script.
section() {
	dd if="$self" bs="$header_size" count=1 2>/dev/null |
		sed -n "/^#--$1\$/,/^#--/{/^#--/!p;}"
}

payload() {
	tail -c "+$((header_size + 1))" "$self"
}

decompress() {
	case $codec in
	gzip) gzip -dc ;;
	zstd) zstd -dcq ;;
	none) cat ;;
	*) false ;;
	esac
}

# need_tools stops before anything is written when a program is missing.
need_tools() {
	have tar || die 3 "tar is not installed" "install tar"
	[ "$codec" = none ] || have "$codec" ||
		die 3 "this package is compressed with $codec, which is not installed" "install $codec"
}

sha_tool=
find_sha() {
	[ -z "$sha_tool" ] || return 0
	if have sha256sum; then
		sha_tool=sha256sum
	elif have busybox && busybox sha256sum </dev/null >/dev/null 2>&1; then
		sha_tool="busybox sha256sum"
	elif have shasum; then
		sha_tool="shasum -a 256"
	elif have openssl; then
		sha_tool="openssl dgst -sha256 -r"
	else
		sha_tool=none
	fi
}

# sha256 prints the digest of stdin. sha_tool holds a command and its options.
sha256() {
	# shellcheck disable=SC2086
	$sha_tool | cut -c 1-64
}

check_self() {
	if [ ! -f "$self" ] || [ ! -r "$self" ]; then
		die 1 "cannot read myself as $self" "run the file by its path: sh ./FILE.run"
	fi
	want=$((header_size + totalsize))
	got=$(wc -c <"$self") || die 1 "cannot read $self"
	got=$((got))
	if [ "$got" -lt "$want" ]; then
		die 1 "$self is truncated: $got bytes, expected $want" "download it again"
	fi
	if [ "$got" -gt "$want" ]; then
		die 1 "$self is damaged: $got bytes, expected $want" "download it again"
	fi
	find_sha
	if [ "$sha_tool" != none ]; then
		got=$(payload | sha256)
		[ "$got" = "$SHA" ] ||
			die 1 "$self is damaged: SHA-256 of the payload is $got, expected $SHA" "download it again"
		say "payload: $totalsize bytes, SHA-256 ok ($sha_tool)"
		return 0
	fi
	warn "no sha256sum, shasum or openssl here: the SHA-256 is not checked"
	have cksum || die 3 "no cksum either: nothing can check the payload" "install coreutils or busybox"
	got=$(payload | cksum | cut -d ' ' -f 1)
	[ "$got" = "$CRCsum" ] ||
		die 1 "$self is damaged: cksum of the payload is $got, expected $CRCsum" "download it again"
	say "payload: $totalsize bytes, CRC ok (cksum)"
}

# space_for DIR stops when the file system of DIR is too small.
space_for() {
	have df || return 0
	free=$(df -Pk "$1" 2>/dev/null | tail -n 1 | sed -n 's/^.* \([0-9][0-9]*\)  *[0-9]*%.*$/\1/p')
	[ -n "$free" ] || return 0
	need=$((unpacked / 1024 + 1))
	[ "$free" -ge "$need" ] ||
		die 1 "not enough space in $1: $need KiB needed, $free KiB free" "free some, or choose another folder"
}

# unpack DIR extracts the payload. Each stage of the pipe reports by itself:
# a shell knows the status of the last one only.
unpack() {
	bad=$({
		{ payload || echo "reading $self" >&3; } |
			{ decompress || echo "decompressing ($codec)" >&3; } |
			{ tar -xmof - -C "$1" >&2 || echo "extracting (tar)" >&3; }
	} 3>&1)
	[ -z "$bad" ] || die 1 "$bad: not completed in $1" "is there enough space, and may $1 be written?"
	verify_tree "$1"
}

# sums prints the files of a list on stdin in the form that sha256sum -c reads.
sums() {
	sed -n 's/^f [0-9]* [0-9]* \([0-9a-f]*\) /\1  /p'
}

# sums_hold DIR checks a list on stdin against the files below DIR.
sums_hold() {
	case $sha_tool in
	openssl*)
		sums | while IFS= read -r line; do
			[ "$(sha256 2>/dev/null <"$1/${line#*  }")" = "${line%%  *}" ] || {
				echo "${line#*  }"
				exit 1
			}
		done
		;;
	*)
		# shellcheck disable=SC2086
		(cd "$1" && sums | $sha_tool -c - >/dev/null 2>&1)
		;;
	esac
}

verify_tree() {
	find_sha
	section files | grep -q '^f ' || return 0
	if [ "$sha_tool" = none ]; then
		section files | while IFS= read -r line; do
			case $line in f\ *) ;; *) continue ;; esac
			path=${line#f * * * }
			size=${line#f * }
			size=${size%% *}
			got=$(wc -c <"$1/$path") || exit 1
			[ "$((got))" = "$size" ] || exit 1
		done || die 1 "a file in $1 has not the size that the manifest says" "is the disk full?"
		return 0
	fi
	section files | sums_hold "$1" ||
		die 1 "a file in $1 has not the SHA-256 that the manifest says" "is the disk full or failing?"
}

check_host() {
	os=$(uname -s | tr '[:upper:]' '[:lower:]')
	arch=$(uname -m)
	[ "$arch" != arm64 ] || arch=aarch64
	[ "$os.$arch" = "$platform" ] ||
		die 3 "this package is for $platform, this machine is $os.$arch" "get the package for $os.$arch"
}

# absolute PATH: cd does not matter to what follows, and neither does a leading -.
absolute() {
	case $1 in
	/*) printf '%s\n' "$1" ;;
	*) printf '%s\n' "$PWD/$1" ;;
	esac
}

do_extract() {
	dir=$(absolute "${target:-$targetdir}")
	need_tools
	made=n
	if [ -e "$dir" ] || [ -L "$dir" ]; then
		[ -d "$dir" ] || die 1 "$dir is not a folder" "choose a new or empty folder"
		[ -z "$(ls -A "$dir")" ] || die 1 "$dir is not empty" "choose a new or empty folder"
	else
		mkdir -p "$dir" || die 1 "cannot make $dir" "choose a folder that you may write"
		made=y
	fi
	check_self
	space_for "$dir"
	tmp=$(mktemp -d "$dir/.$name.XXXXXX") || {
		tmp=
		[ "$made" = n ] || rmdir "$dir"
		die 1 "cannot write in $dir" "choose a folder that you may write"
	}
	unpack "$tmp"
	# The tree is whole: move its top entries out. Same file system, no copy.
	trap '' INT TERM HUP
	for entry in "$tmp"/* "$tmp"/.[!.]* "$tmp"/..?*; do
		if [ -e "$entry" ] || [ -L "$entry" ]; then
			mv "$entry" "$dir/" || die 1 "cannot move $entry to $dir"
		fi
	done
	[ "$for_all" = n ] || chmod -R a+rX "$dir"
	say "extracted to $dir"
}

choose_dest() {
	if [ -z "$install_path" ]; then
		if [ "$for_all" = y ] || [ "$(id -u)" = 0 ]; then
			install_path=/opt
		elif [ -n "$XDG_DATA_HOME" ]; then
			install_path=$XDG_DATA_HOME
		elif [ -n "$HOME" ]; then
			install_path=$HOME/.local/share
		else
			die 2 "HOME is not set: where to?" "--install-path=DIR"
		fi
	fi
	dir=$(absolute "$install_path")
	dest=$dir/$name
	record=$dest/.invar-installed
}

take_lock() {
	mkdir "$dir/.$name.lock" 2>/dev/null || {
		[ -d "$dir/.$name.lock" ] || die 1 "cannot write in $dir" "choose a folder that you may write: --install-path=DIR"
		die 1 "another installation of $name works in $dir" "when none does: rmdir '$dir/.$name.lock'"
	}
	lock=$dir/.$name.lock
}

# field NAME of the record of what is installed
field() {
	sed -n "s/^$1: //p" "$record" | head -n 1
}

# remove_listed FOLDER removes the files that its own record lists, then the
# folders that this empties; what somebody else put there stays and is named.
remove_listed() {
	sort -r "$1/.invar-installed" >"$1/.invar-removing" || return 1
	sed -n 's/^[fl] [0-9]* [0-9]* [0-9a-f-]* //p' "$1/.invar-removing" |
		while IFS= read -r path; do rm -f "$1/$path" || exit 1; done || return 1
	sed -n 's/^d [0-9]* [0-9]* [0-9a-f-]* //p' "$1/.invar-removing" |
		while IFS= read -r path; do rmdir "$1/$path" 2>/dev/null; done
	rm -f "$1/.invar-removing" "$1/.invar-installed" || return 1
	rmdir "$1" 2>/dev/null || warn "kept $1: it holds files that this package did not install"
}

do_install() {
	check_host
	need_tools
	choose_dest
	mkdir -p "$dir" || die 1 "cannot make $dir" "choose a folder that you may write: --install-path=DIR"
	check_self
	take_lock
	old=
	if [ -e "$dest" ] || [ -L "$dest" ]; then
		[ -f "$record" ] || die 1 "$dest exists and was not installed by a run package" "move it away, or choose another --install-path"
		old=$(field folder)
		case $old in
		."$name".??????) ;;
		*) die 1 "$record is damaged: folder is '$old'" "move $dest away" ;;
		esac
		if [ "$(field sha256)" = "$SHA" ] && sums_hold "$dest" <"$record"; then
			say "$version is already installed in $dest, nothing to do"
			return 0
		fi
		if [ "$(field sha256)" != "$SHA" ] && [ "$upgrade" = n ]; then
			die 1 "version $(field version) is installed in $dest" "pass --upgrade to replace it by $version"
		fi
	fi
	# The lock is ours, so a folder that is not in use was left by a killed installation.
	for stale in "$dir/.$name".??????; do
		if [ -d "$stale" ] && [ "${stale##*/}" != "$old" ]; then
			rm -rf "$stale"
		fi
	done
	space_for "$dir"
	tmp=$(mktemp -d "$dir/.$name.XXXXXX") || {
		tmp=
		die 1 "cannot write in $dir" "choose a folder that you may write: --install-path=DIR"
	}
	unpack "$tmp"
	folder=${tmp##*/}
	{
		printf 'name: %s\nversion: %s\nsha256: %s\nfolder: %s\n' "$name" "$version" "$SHA" "$folder" &&
			section files
	} >"$tmp/.invar-installed" || die 1 "cannot write in $tmp" "is the disk full?"
	chmod 755 "$tmp" || die 1 "cannot change the mode of $tmp"
	[ "$for_all" = n ] || chmod -R a+rX "$tmp" || die 1 "cannot change modes in $tmp"
	sync 2>/dev/null
	link=$dir/.$name.link.$$
	ln -s "$folder" "$link" || die 1 "cannot make a link in $dir"
	trap '' INT TERM HUP
	# One rename switches from the old tree to the new one.
	mv -fT "$link" "$dest" 2>/dev/null || { rm -f "$dest" && mv "$link" "$dest"; } ||
		die 1 "cannot put $dest in place"
	link=
	tmp=
	[ -z "$old" ] || remove_listed "$dir/$old" || warn "could not remove all of the old version in $dir/$old"
	say "installed $version in $dest"
}

do_uninstall() {
	choose_dest
	[ -f "$record" ] || die 1 "$name is not installed in $dir" "say where: --install-path=DIR"
	take_lock
	old=$(field folder)
	case $old in
	."$name".??????) ;;
	*) die 1 "$record is damaged: folder is '$old'" "remove $dest by hand" ;;
	esac
	was=$(field version)
	trap '' INT TERM HUP
	rm -f "$dest" || die 1 "cannot remove $dest" "are you allowed to write in $dir?"
	remove_listed "$dir/$old" || die 1 "could not remove all of $dir/$old" "are you allowed to write there?"
	say "removed $was from $dir"
}

do_list() {
	section files | while IFS= read -r line; do
		kind=${line%% *}
		rest=${line#* }
		mode=${rest%% *}
		rest=${rest#* }
		size=${rest%% *}
		path=${rest#* * }
		[ "$kind" != d ] || path=$path/
		printf '%s %s %12s %s\n' "$kind" "$mode" "$size" "$path"
	done
}

main() {
	parse "$@"
	[ "$for_all" = n ] || umask 022
	case $action in
	help) usage && return 0 ;;
	info | list)
		[ -r "$self" ] || die 1 "cannot read myself as $self" "run the file by its path: sh ./FILE.run"
		;;
	esac
	trap 'status=$?; trap "" INT TERM HUP; cleanup; exit $status' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	case $action in
	info) section info && section manifest ;;
	list) do_list ;;
	check) check_self ;;
	extract) do_extract ;;
	install) do_install ;;
	uninstall) do_uninstall ;;
	esac
}

main "$@"
exit $?
