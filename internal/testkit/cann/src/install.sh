#!/bin/bash
# Installs the custom operators of this package. Options: --install-path=DIR
# (absolute), --install-for-all, --quiet; others are passed over. Without a path
# it goes to ASCEND_CUSTOM_OPP_PATH, else to ASCEND_OPP_PATH.
vendor=@VENDOR@
from=$PWD/packages/vendors/$vendor

say() { echo "[ops_custom] [$(date '+%Y-%m-%d %H:%M:%S')] $1"; }
stop() {
	say "[ERROR] $1"
	exit 1
}

path='' for_all=n
while [ $# -gt 0 ]; do
	case $1 in
	--install-path=*) path=${1#--install-path=} ;;
	--install-for-all) for_all=y ;;
	--*) ;;
	*) break ;;
	esac
	shift
done

if [ -n "$path" ]; then
	[[ $path = /* ]] || stop "use absolute path for --install-path argument"
	[ -d "$path" ] || mkdir "$path" 2>/dev/null || stop "create $path  failed"
	to=$path
elif [ -n "$ASCEND_CUSTOM_OPP_PATH" ]; then
	[[ $ASCEND_CUSTOM_OPP_PATH != *:* ]] ||
		stop "environment variable ASCEND_CUSTOM_OPP_PATH=$ASCEND_CUSTOM_OPP_PATH is set and has multiple path in it (colon inside), use --install-path"
	mkdir -p "$ASCEND_CUSTOM_OPP_PATH"
	to=$ASCEND_CUSTOM_OPP_PATH
else
	[ -n "$ASCEND_OPP_PATH" ] || stop "env ASCEND_OPP_PATH no exist"
	to=$ASCEND_OPP_PATH
fi
[ -d "$to" ] || stop "$to no exist"
[ -w "$to" ] || say "[WARNING] The directory $to does not have sufficient permissions."

say "[INFO] copy uninstall sh success"
mkdir -p "$to/vendors/$vendor" || stop "create $to/vendors failed"
for part in framework op_proto op_impl op_api; do
	say "[INFO] upgrade ${part/_/ }"
	[ -d "$from/$part" ] || continue
	mkdir -p "$to/vendors/$vendor/$part"
	# What an older version left is taken away first: this is not atomic.
	rm -rf "$to/vendors/$vendor/$part"/*
	say "[INFO] copy new ops $part files ......"
	cp -rf "$from/$part"/* "$to/vendors/$vendor/$part/" || stop "copy new $part files failed"
done
say "[INFO] upgrade version.info"
cp -f "$from/version.info" "$to/vendors/$vendor/version.info" || stop "copy new version.info file failed"

if [ -n "$path" ]; then
	mkdir -p "$to/vendors/$vendor/bin"
	{
		echo '#!/bin/bash'
		echo "export ASCEND_CUSTOM_OPP_PATH=$to/vendors/$vendor:\${ASCEND_CUSTOM_OPP_PATH}"
		echo "export LD_LIBRARY_PATH=$to/vendors/$vendor/op_api/lib/:\${LD_LIBRARY_PATH}"
	} >"$to/vendors/$vendor/bin/set_env.bash"
else
	config=$to/vendors/config.ini
	if [ ! -f "$config" ]; then
		touch "$config"
		chmod 640 "$config"
		echo "load_priority=$vendor" >"$config"
	else
		found=$(grep -w load_priority "$config" | cut --only-delimited -d= -f2-)
		others=$(echo "$found" | sed "s/\<$vendor\>//g" | tr -s ', ' ',' | sed 's/^,//; s/,$//')
		[ -z "$others" ] || sed -i "/load_priority=$found/s@load_priority=$found@load_priority=$vendor,$others@g" "$config"
	fi
	[ $for_all = n ] || chmod 755 "$config"
fi
@EXTRA@
echo "SUCCESS"
exit 0
