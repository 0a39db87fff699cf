#!/bin/busybox sh
# initramfs.sh - the first program of the virtual machine: the root is the host's, read-only, under one that forgets.
# shellcheck shell=dash
/bin/busybox mkdir -p /proc /sys /lower /upper /root
/bin/busybox mount -t proc proc /proc
while read -r module; do
	/bin/busybox insmod "/$module" || echo "cannot load $module"
done </modules
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose root /lower
/bin/busybox mount -t tmpfs -o size=2g tmpfs /upper
/bin/busybox mkdir /upper/files /upper/work
/bin/busybox mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /root
what=$(/bin/busybox sed -n 's/.* what=\([^ ]*\).*/\1/p' /proc/cmdline)
/bin/busybox umount /proc
# shellcheck disable=SC2093 # there is nothing to come back to
exec /bin/busybox switch_root /root /bin/bash -c ". $what; exec bash tests/vm/init.sh '$what'"
