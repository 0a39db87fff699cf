# shellcheck shell=bash
# disk.sh - a disk of the device mapper, /dev/mapper/disk over /dev/vda, that can be made to fail while it is mounted.
disk=/mnt/disk nr_sectors=$((640 * 2048))
modprobe -a dm-mod dm-flakey xfs

good="0 $nr_sectors linear /dev/vda 0"
# For good, at once: an up time of none, a down time of an hour.
# shellcheck disable=SC2034 # for the tests
lying="0 $nr_sectors flakey /dev/vda 0 0 3600 1 drop_writes"

# disk_becomes TABLE: without waiting for what is to be written.
disk_becomes()
{
	dmsetup suspend --noflush --nolockfs disk && dmsetup load disk --table "$1" && dmsetup resume disk
}
# bad_sectors FIRST NR...: all is good but these.
bad_sectors()
{
	local at=0
	{
		while [ $# -gt 0 ]; do
			echo "$at $(($1 - at)) linear /dev/vda $at"
			echo "$1 $2 error"
			at=$(($1 + $2))
			shift 2
		done
		echo "$at $((nr_sectors - at)) linear /dev/vda $at"
	} >/run/table
	dmsetup suspend disk && dmsetup load disk /run/table && dmsetup resume disk
}
# fresh_disk FSTYPE: mounted.
fresh_disk()
{
	mkdir -p "$disk"
	dmsetup create disk --table "$good"
	wipefs -qa /dev/mapper/disk
	"mkfs.$1" -q /dev/mapper/disk
	mount /dev/mapper/disk "$disk"
}
remove_disk()
{
	umount "$disk"
	dmsetup remove --retry disk
}
# sector FILE OFFSET: where that byte lies on the disk.
sector()
{
	filefrag -b512 -e "$1" | awk -v at="$(($2 / 512))" '
		/^ *[0-9]+:/ {gsub(/[.:]/, " "); if (at >= $2 && at <= $3) {print $4 + at - $2; exit}}'
}
