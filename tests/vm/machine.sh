#!/bin/bash
# machine.sh SCRIPT [ARG...]: run a script as root in a virtual machine with a kernel of Debian's; the exit status is its.
#
# For what a container's kernel lacks: the device mapper, NFS, a kernel to be killed. The machine sees this one's files,
# read-only, through 9P; what it writes goes to its memory and to two empty disks, /dev/vda and /dev/vdb. It has no
# network. The kernel's package is unpacked below $BUILD/vm and not installed. It is emulated, some ten times slower than
# this machine; VM_ACCEL=kvm is faster where /dev/kvm works.
#
# In the environment: BUILD, WFS_*, which go in, too, and LIMIT_SECONDS (of the whole run; the machine is killed then).
set -eu
cd "$(dirname "$0")/../.."
vm=$(realpath -m "${BUILD:-build}/vm")
memory_mib=3000 disk_mib=1024

# The kernel and an initramfs that finds the files of this machine.
unpack_kernel()
{
	local package version module
	rm -rf "$vm/kernel"
	mkdir -p "$vm/kernel/root"
	package=$(apt-cache depends --important linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9]\)/\1/p' | head -n 1)
	(
		cd "$vm/kernel"
		apt-get download -q -o APT::Sandbox::User=root "$package" >/dev/null
		dpkg-deb -x "$package"_*.deb root
		rm -- *.deb
	)
	version=${package#linux-image-}
	depmod -b "$vm/kernel/root" "$version"
	mkdir -p "$vm/kernel/initramfs/bin"
	install -m 755 tests/vm/initramfs.sh "$vm/kernel/initramfs/init"
	cp "$(command -v busybox)" "$vm/kernel/initramfs/bin/busybox"
	# In the order in which they are to be loaded.
	for module in virtio_pci virtio_blk 9pnet_virtio 9p overlay; do
		modprobe -d "$vm/kernel/root" -S "$version" --show-depends "$module"
	done | sed -n 's/^insmod *//p' | awk '!seen[$1]++ {print $1}' | while read -r module; do
		cp "$module" "$vm/kernel/initramfs/"
		basename "$module" >>"$vm/kernel/initramfs/modules"
	done
	(cd "$vm/kernel/initramfs" && find . | busybox cpio -o -H newc 2>/dev/null) >"$vm/kernel/initramfs.cpio"
	cp "$vm"/kernel/root/boot/vmlinuz-* "$vm/kernel/vmlinuz"
	touch "$vm/kernel/.complete"
}

[ -e "$vm/kernel/.complete" ] && [ "$vm/kernel/.complete" -nt tests/vm/initramfs.sh ] || unpack_kernel
run=$(mktemp -d "$vm/run.XXXXXX")
trap 'rm -rf "$run"' EXIT
truncate -s "${disk_mib}M" "$run/vda" "$run/vdb"
# What is to run there: the kernel's command line is no place for quoting.
{
	declare -p BUILD "${!WFS_@}"
	printf 'cd %q\n' "$PWD"
	printf 'modules=%q\n' "$vm/kernel/root"
	printf 'set --'
	printf ' %q' "$@"
	echo
} >"$run/what"
read -ra accel <<<"-accel tcg,thread=multi -cpu max"
[ "${VM_ACCEL-}" != kvm ] || accel=(-accel kvm -cpu host)
status=0
timeout --foreground -k 5 "${LIMIT_SECONDS:-900}" qemu-system-x86_64 "${accel[@]}" -M q35 -m "$memory_mib" -smp 2 \
	-nodefaults -no-user-config -display none -no-reboot -serial stdio \
	-kernel "$vm/kernel/vmlinuz" -initrd "$vm/kernel/initramfs.cpio" \
	-append "console=ttyS0 quiet loglevel=1 panic=-1 what=$run/what" \
	-fsdev "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap" \
	-device virtio-9p-pci,fsdev=root,mount_tag=root \
	-drive "file=$run/vda,format=raw,if=virtio,cache=unsafe" -drive "file=$run/vdb,format=raw,if=virtio,cache=unsafe" \
	</dev/null | sed -u 's/\r$//' | tee "$run/console" | sed -u '/^VM-STATUS /d' || status=$?
ended=$(sed -n 's/^VM-STATUS //p' "$run/console" | tail -n 1)
[ -n "$ended" ] || { echo "FAIL the machine did not come to its end (status $status)" >&2; exit 1; }
exit "$ended"
