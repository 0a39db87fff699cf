#!/bin/bash
# init.sh WHAT - the second program of the virtual machine: run what the file says, tell its status, switch off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DM_DISABLE_UDEV=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for memory in /dev/shm /run /mnt; do
	mount -t tmpfs tmpfs "$memory"
done
mkdir -p /run/lock
ln -sfn /proc/self/fd /dev/fd
ln -sfn /proc/self/mounts /etc/mtab
hostname vm
ip link set lo up
modules=
# shellcheck disable=SC1090 # written by machine.sh
. "$1"
mount --bind "$modules/lib/modules" "/lib/modules"
export WFS_TMP=/mnt/tmp
mkdir -p "$WFS_TMP"
status=0
setsid "$@" </dev/null || status=$?
echo "VM-STATUS $status"
echo o >/proc/sysrq-trigger
while :; do :; done
