#!/bin/bash
# deps.sh build|lint|fuzz|demo|check|vm: see to it that what this target of the Makefile needs is installed.
#
# Missing Debian packages are installed when root, otherwise the line to run is printed and the status is 1. Nothing
# is asked of the network when nothing is missing. The Python environment is made by tests/venv.sh, by those who use it.
set -u

# PROBE:PACKAGE. A probe is a command, a header, or (with a !) one of the cases below.
build='cc:gcc stdio.h:libc6-dev make:make pkg-config:pkg-config fuse3/fuse_lowlevel.h:libfuse3-dev fusermount3:fuse3
	lz4.h:liblz4-dev xxhash.h:libxxhash-dev openssl/evp.h:libssl-dev'
python='python3:python3 python3-venv!:python3-venv'
# One version of the formatter everywhere, since each formats a little differently.
lint='clang-format-14:clang-format-14 clang-tidy-14:clang-tidy-14 shellcheck:shellcheck
	git:git nm:binutils'
fuzz='clang-14:clang-14 libFuzzer!:libclang-rt-14-dev'
# For the tests of the NEON kernels, which an AArch64 machine needs no emulator for (tests/arm64.sh gets the libraries),
# and of older x86 processors.
emulated='aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu arm64-libc!:libc6-dev-arm64-cross qemu-aarch64:qemu-user'
[ "$(uname -m)" != aarch64 ] || emulated=
# For tests/vm: the emulator, what its kernel's packages and initramfs are made with, and what is run in it.
vm='qemu-system-x86_64:qemu-system-x86 depmod:kmod busybox:busybox-static exportfs:nfs-kernel-server mount.nfs:nfs-common
	rpcbind:rpcbind dmsetup:dmsetup mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs ip:iproute2 openssl:openssl'
check="$lint $fuzz $emulated man:man-db groff:groff-base valgrind:valgrind getfattr:attr openssl:openssl"

missing()
{
	local name=$1 dir
	case $name in
	python3-venv!) ! python3 -c 'import ensurepip, venv' 2>/dev/null ;;
	libFuzzer!) ! compgen -G '/usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a' >/dev/null ;;
	arm64-libc!) [ ! -e /usr/aarch64-linux-gnu/include/stdio.h ] ;;
	*.h)
		for dir in /usr/include /usr/include/"$(uname -m)"-linux-gnu /usr/local/include; do
			[ -e "$dir/$name" ] && return 1
		done
		return 0
		;;
	*) ! command -v "$name" >/dev/null && [ ! -x "/usr/sbin/$name" ] && [ ! -x "/sbin/$name" ] ;;
	esac
}

case ${1-} in
build) wanted=$build ;;
lint) wanted="$build $lint" ;;
fuzz) wanted="$build $fuzz" ;;
demo) wanted="$build $python" ;;
check) wanted="$build $python $check" ;;
vm) wanted="$build $python $vm" ;;
*)
	echo "usage: deps.sh build|lint|fuzz|demo|check|vm" >&2
	exit 2
	;;
esac

# Sets $packages to what is missing.
look()
{
	local item
	packages=
	for item in $wanted; do
		if missing "${item%%:*}"; then
			packages="$packages ${item##*:}"
		fi
	done
}

look
[ -n "$packages" ] || exit 0

install="apt-get install -y --no-install-recommends$packages"
if ! command -v apt-get >/dev/null; then
	echo "Missing, by their Debian names:$packages" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	printf 'Missing packages. Run this, then try again:\n  sudo %s\n' "$install" >&2
	exit 1
fi
echo "Installing$packages"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null && $install -q >/dev/null || exit 1
look
if [ -n "$packages" ]; then
	echo "Still missing after the installation:$packages" >&2
	exit 1
fi
