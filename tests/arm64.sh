#!/bin/bash
# arm64.sh: make the folder $BUILD/arm64 with Debian's AArch64 libraries that the cross build needs and print its path.
#
# The packages are unpacked there and not installed, with an apt state of their own, so that nothing of the system
# changes and foreign architectures need not be switched on. Their static libraries are linked: the C library is that of
# the cross compiler's packages. Status 1 when they cannot be had.
set -eu
cd "$(dirname "$0")/.."
root=$(realpath -m "${BUILD:-build}/arm64")
packages='libssl-dev liblz4-dev libxxhash-dev libfuse3-dev'

if [ ! -e "$root/.complete" ]; then
	mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial"
	touch "$root/apt/status"
	apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$root/apt"
		-o "Dir::State::status=$root/apt/status" -o "Dir::Cache=$root/apt" -o APT::Sandbox::User=root)
	{
		"${apt[@]}" update
		# shellcheck disable=SC2086 # a list of words
		(cd "$root/apt/archives" && "${apt[@]}" download $packages)
		for package in "$root"/apt/archives/*.deb; do
			dpkg-deb -x "$package" "$root"
		done
		rm -rf "$root/apt"
		touch "$root/.complete"
	} >&2
fi
echo "$root"
