#!/bin/bash
# symbols.sh BUILD: what the libraries export, and that the codec has no state of its own.
#
#  - every global of libwfs.a carries the prefix wfs_;
#  - libwfs.so exports exactly the functions that wfs.h marks WFS_API;
#  - no codec object has writable data (pointer tables are read-only after relocation and allowed);
#  - libwfs.so needs no library beyond those of the README.
set -u
build=$1
cd "$(dirname "$0")/../.." || exit 1
status=0
fail()
{
	echo "$1"
	status=1
}

names=$(nm --defined-only -g "$build/libwfs.a" | awk 'NF == 3 {print $3}' | sort -u)
[ -n "$names" ] || fail "libwfs.a defines nothing"
bad=$(grep -v '^wfs_' <<<"$names") && fail "libwfs.a: globals without the prefix wfs_: $(tr '\n' ' ' <<<"$bad")"

exported=$(nm -D --defined-only "$build/libwfs.so" | awk '{print $3}' | sort -u)
declared=$(${CC:-cc} -E -P codec/wfs.h | tr '\n' ' ' | tr ';' '\n' | grep 'visibility("default")' |
	grep -o 'wfs_[a-z0-9_]*[[:space:]]*(' | tr -d '( ' | sort -u)
[ -n "$declared" ] || fail "wfs.h declares nothing"
if [ "$exported" != "$declared" ]; then
	fail "libwfs.so and wfs.h differ (< exported, > declared):"
	diff <(echo "$exported") <(echo "$declared")
fi

while read -r file section size; do
	case $section in
	.data | .bss | .data.rel | .data.rel.local | .tdata | .tbss)
		[ "$size" -eq 0 ] || fail "$file: $size bytes of changeable data in $section" ;;
	esac
done < <(for o in "$build"/codec/*.o; do size -A "$o" | awk -v f="${o##*/}" '/^\./ {print f, $1, $2}'; done)

for lib in $(readelf -d "$build/libwfs.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
	case $lib in
	libc.so.* | libcrypto.so.* | liblz4.so.* | libpthread.so.* | libm.so.*) ;;
	*) fail "libwfs.so needs $lib" ;;
	esac
done
exit $status
