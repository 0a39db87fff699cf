#!/bin/bash
# sign, and verify --pubkey: a signed store is proven; whatever somebody changes in it without the key is found; nothing
# is lost when sign is killed, and it does not sign what others are writing.
# shellcheck source=tests/cli/lib.sh disable=SC2015 # "a && b || fail" is meant for either
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || skip "there is no openssl command to make keys"

cd "$dir"
kills=${WFS_SIGN_KILLS:-8} # of each kind
manifest=.weightfs-manifest
openssl genpkey -algorithm ed25519 -out key.pem 2>/dev/null
openssl pkey -in key.pem -pubout -out pub.pem
openssl genpkey -algorithm ed25519 -out other.pem 2>/dev/null
openssl pkey -in other.pem -pubout -out other-pub.pem

# A store with all there is: packed, copied, linked, odd names.
mkdir -p src/sub/empty
weights src/model.safetensors 2
weights src/sub/second.safetensors 9 1
head -c 900000 /dev/urandom >src/noise.bin
head -c 262144 /dev/urandom >src/piece.bin
: >src/empty
echo '{"a": 1}' >src/config.json
echo text >src/notes.wfs
ln src/model.safetensors src/sub/same.safetensors
ln src/noise.bin src/sub/same.bin
ln -s sub/second.safetensors src/link
ln -s nowhere src/dangling
echo odd >"src/a b%"$'\n\xff'
touch -d '2001-02-03 04:05:06.123456789Z' src/model.safetensors
chmod 640 src/model.safetensors
ok weightfs pack src -o store
for name in one two; do # stored blocks
	head -c 700000 /dev/urandom >$name
	ok weightfs pack $name -o store/$name.wfs
done
cp -a store before

# ---- signing ----

expect 2 "with which key" weightfs sign store
expect 2 "missing argument" weightfs sign --key key.pem
expect 1 "none.pem: No such file" weightfs sign --key none.pem store
expect 1 "pub.pem: not a private key" weightfs sign --key pub.pem store
expect 1 "config.json: not a private key" weightfs sign --key src/config.json store
expect 1 "none: No such file" weightfs sign --key key.pem none
expect 1 "Not a directory" weightfs sign --key key.pem store/one.wfs
openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256 -out ec.pem 2>/dev/null
expect 1 "ec.pem: not a private key of Ed25519" weightfs sign --key ec.pem store
openssl pkey -in key.pem -aes128 -passout pass:secret -out locked.pem
expect 1 "locked.pem: the key needs a passphrase" weightfs sign --key locked.pem store
[ ! -e store/$manifest ] || fail "signed all the same"
same_tree before store

ok weightfs sign store --key key.pem --json
json 'd["rewritten"] == 4 and d["containers"] == 5 and d["files"] == 7 and d["symlinks"] == 2 and d["directories"] == 2'
sum=$(sha256sum <store/$manifest | cut -c-64)
json "d['manifest_sha256'] == '$sum'"
no_temporaries store
# Rewritten containers keep mode, owner, times and links; each holds what it held.
[ "$(stat -c '%a %Y %y' store/model.safetensors.wfs)" = "$(stat -c '%a %Y %y' before/model.safetensors.wfs)" ] ||
	fail "attributes: $(stat store/model.safetensors.wfs)"
[ store/model.safetensors.wfs -ef store/sub/same.safetensors.wfs ] || fail "a hard link is gone"
for name in model.safetensors sub/second.safetensors; do
	weightfs cat "store/$name.wfs" | cmp -s - "src/$name" || fail "$name is another"
done
ok weightfs unpack store -o back
rm back/$manifest back/one back/two
# files DIR: all but the directories, whose times signing changes.
files()
{
	manifest "$1" | grep -v "^b.* 0o4"
}
diff <(files src) <(files back) || fail "unpacked, the store is another"
# The signature is one that others understand too.
head -n -1 store/$manifest >signed
tail -n 1 store/$manifest | cut -d ' ' -f 2 | base64 -d >signature
openssl pkeyutl -verify -pubin -inkey pub.pem -rawin -in signed -sigfile signature >"$out" || fail "$(cat "$out")"
# Signing again changes nothing; pack --signable makes the same containers.
cp -a store again
ok weightfs sign again --key key.pem
says "5 containers (0 written anew) and 7 other files"
says "$sum"
diff <(files store | grep -v $manifest) <(files again | grep -v $manifest) || fail "signing again changed something"
cmp store/$manifest again/$manifest || fail "another manifest of the same store"
ok weightfs pack --signable src -o packed
ok weightfs sign packed --key key.pem --json
json 'd["rewritten"] == 0'
diff <(grep '^container.*safetensors' store/$manifest) <(grep '^container' packed/$manifest) || fail "other metadata"

# ---- verifying ----

for fast in "" --fast; do
	# shellcheck disable=SC2086 # an option or none
	ok weightfs verify store --pubkey pub.pem $fast
	says "store/model.safetensors.wfs: ok"
	says "12 of 12 files are as signed"
	says "$sum"
	# shellcheck disable=SC2086
	ok weightfs verify --pubkey pub.pem $fast --json store
	json 'd["totals"]["ok"] == 12 and len(d["files"]) == 12 and sum(d["totals"][x] for x in ("damaged", "changed", "missing", "unsigned", "error")) == 0'
done
ok weightfs verify store
expect 2 "exclude each other" weightfs verify --pubkey pub.pem --repair store
expect 2 "too many arguments" weightfs verify --pubkey pub.pem store packed
expect 1 "key.pem: not a public key" weightfs verify --pubkey key.pem store
openssl pkey -in ec.pem -pubout -out ec-pub.pem
expect 1 "ec-pub.pem: not a public key of Ed25519" weightfs verify --pubkey ec-pub.pem store
expect 1 "signed with another key" weightfs verify --pubkey other-pub.pem store
expect 1 "before/$manifest: error: there is no manifest: sign the store" weightfs verify --pubkey pub.pem before
grep -q 'with weightfs sign$' "$err" || fail "$(cat "$err")"

# ---- attacks ----

# fresh: a signed store to break, w.
fresh()
{
	rm -rf w
	cp -a store w
}
# found STATUS PATH [NR]: verify --pubkey, fast or not, finds this file, and NR files in all.
found()
{
	local fast status
	for fast in "" --fast; do
		status=0
		# shellcheck disable=SC2086
		weightfs verify --pubkey pub.pem $fast --json w >"$out" 2>"$err" || status=$?
		[ $status -eq 1 ] || fail "$1 $2: status $status: $(cat "$err")"
		json "[f['path'] for f in d['files'] if f['status'] == '$1' and f['reason']] == ['w/$2']"
		json "sum(f['status'] != 'ok' for f in d['files']) == ${3:-1}"
	done
}
# attack: attack.py on files of w.
attack()
{
	"$WFS_PYTHON" "$tests/cli/attack.py" "$@" || fail "attack.py $*"
}

# The manifest: bits, cuts, another store's, a link, another signer's. (All bits and cuts: tests/unit/test_manifest.c.)
fresh
attack bits w/$manifest "$WFS_BIN/weightfs" verify --fast --pubkey pub.pem w
cmp -s w/$manifest store/$manifest || fail "attack.py bits"
for lines in 0 1 3 -1; do
	fresh
	chmod u+w w/$manifest
	head -n $lines store/$manifest >w/$manifest
	expect 1 "w/$manifest: changed: " weightfs verify --pubkey pub.pem w
done
fresh
sed -i 3p w/$manifest
expect 1 "signature is not right" weightfs verify --pubkey pub.pem w
fresh
sed -i '3{h;d};4G' w/$manifest
expect 1 "signature is not right" weightfs verify --pubkey pub.pem w
fresh
rm w/$manifest
ln -s ../store/$manifest w/$manifest
expect 1 "cannot open the manifest" weightfs verify --pubkey pub.pem w
fresh
ok weightfs sign w --key other.pem
expect 1 "signed with another key" weightfs verify --pubkey pub.pem w
fresh
cp packed/$manifest w/$manifest
weightfs verify --pubkey pub.pem w --json >"$out" 2>"$err" && fail "the manifest of another store"
json 'd["totals"]["unsigned"] == 2 and d["totals"]["ok"] == 10' # of what both stores hold, the content is the same

# Names: something more, less, elsewhere, of another kind.
fresh
echo more >w/more
found unsigned more
fresh
cp store/one.wfs w/sub/three.wfs
found unsigned sub/three.wfs
fresh
mkdir w/sub/more
found unsigned sub/more
fresh
rm w/config.json
found missing config.json
fresh
rm w/sub/second.safetensors.wfs
found missing sub/second.safetensors.wfs
fresh
ln -sfn ../../etc/passwd w/link
found changed link
fresh
rm w/config.json
ln -s notes.wfs w/config.json
found changed config.json
fresh
rm w/one.wfs
mkfifo w/one.wfs
found changed one.wfs
fresh
rm -r w/sub/empty
: >w/sub/empty
found changed sub/empty
fresh
mkdir elsewhere
rm w/dangling
mkdir w/dangling
found changed dangling

# Names like those of temporaries: only a file that a live run holds is passed over.
hidden=.x.weightfs-aaaaaa.tmp
fresh
mkdir w/$hidden
found unsigned $hidden
fresh
mkdir w/sub/empty/$hidden
cp store/one.wfs w/sub/empty/$hidden
weightfs verify --pubkey pub.pem --json w >"$out" 2>"$err" && fail "what lies in $hidden is not found"
json "[f['path'] for f in d['files'] if f['status'] == 'unsigned'] == ['w/sub/empty/$hidden', 'w/sub/empty/$hidden/one.wfs']"
ok weightfs sign w --key key.pem
ok weightfs verify --pubkey pub.pem w
ok weightfs unpack w -o unhidden
cmp unhidden/sub/empty/$hidden/one one || fail "not unpacked: what lies in $hidden"
fresh
echo more >w/sub/$hidden
found unsigned sub/$hidden
fresh
ln -s /etc/passwd w/$hidden
found unsigned $hidden
# Dead ones go when the store is signed.
ok weightfs sign w --key key.pem
no_temporaries w
ok weightfs verify --pubkey pub.pem w
"$WFS_PYTHON" - w/$hidden "$WFS_BIN/weightfs" verify --pubkey pub.pem w <<-'END' || fail "a live temporary is reported"
	import fcntl, struct, subprocess, sys
	held = open(sys.argv[1], "w")
	fcntl.fcntl(held, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)) # F_OFD_SETLK
	sys.exit(subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL).returncode)
END

# Links of the manifest itself are files like others.
fresh
ln w/$manifest w/old
ln w/$manifest w/sub/old.wfs
ln w/$manifest w/sub/older
weightfs verify --pubkey pub.pem --json w >"$out" 2>"$err" && fail "more names of the manifest are not found"
json "[f['path'] for f in d['files'] if f['status'] == 'unsigned'] == ['w/old', 'w/sub/old.wfs', 'w/sub/older']"
ok weightfs sign w --key key.pem
ok weightfs verify --pubkey pub.pem w
for name in old sub/old.wfs sub/older; do
	cmp store/$manifest w/$name || fail "w/$name is another"
done

# A file that has no name before the suffix is no container, wherever it lies.
fresh
mkdir w/dir
cp store/one.wfs w/dir/.wfs
ok weightfs sign w --key key.pem
ok weightfs verify --pubkey pub.pem w

# Ordinary files: bytes, size, a container in their place.
fresh
"$WFS_PYTHON" "$tests/cli/flip.py" w/config.json 3
found changed config.json
fresh
cp --remove-destination store/noise.bin w/noise.bin
"$WFS_PYTHON" "$tests/cli/flip.py" w/noise.bin 600000
found changed noise.bin
expect 1 "bytes from 524288 on are not the signed ones" weightfs verify --pubkey pub.pem w
fresh
echo >>w/piece.bin
found changed piece.bin
fresh
cp store/one.wfs w/notes.wfs
found changed notes.wfs

# Containers. A whole older one, one of another file, one without section 7, one that was made of two with all checksums
# right: each is a good container, and not the signed one.
good_but_changed()
{
	ok weightfs verify w
	found changed "$1" "${2-1}"
}
fresh
weights older 2 7
ok weightfs pack older --signable -o older.wfs
cp older.wfs w/sub/second.safetensors.wfs
good_but_changed sub/second.safetensors.wfs
fresh
cp store/two.wfs w/one.wfs
good_but_changed one.wfs
fresh
cp before/one.wfs w/one.wfs
good_but_changed one.wfs
expect 1 "has no SHA-256 of its blocks" weightfs verify --pubkey pub.pem w
fresh
rm w/one.wfs
ok weightfs pack one --signable --block-size 64k -o w/one.wfs
good_but_changed one.wfs
expect 1 "metadata is not the signed one" weightfs verify --pubkey pub.pem w
fresh
attack swap w/one.wfs w/two.wfs
ok weightfs verify w
weightfs verify --pubkey pub.pem w --json >"$out" 2>"$err" && fail "swapped blocks"
json 'sorted(f["path"] for f in d["files"] if f["status"] == "changed") == ["w/one.wfs", "w/two.wfs"]'
fresh
attack table w/one.wfs
good_but_changed one.wfs
# A head that tells another time is none of the signed bytes.
fresh
attack nanos w/one.wfs
ok weightfs verify --pubkey pub.pem w
# The signed metadata over other payload.
fresh
"$WFS_PYTHON" "$tests/cli/flip.py" w/one.wfs 300000
found damaged one.wfs
expect 1 "w/one.wfs: damaged: block " weightfs verify --pubkey pub.pem w
fresh
truncate -s 300000 w/one.wfs
found damaged one.wfs
fresh
echo no container >w/one.wfs
found changed one.wfs
# Damage is not signed over, and one of both copies is enough.
fresh
"$WFS_PYTHON" "$tests/cli/flip.py" w/one.wfs 300000
cp w/$manifest kept
expect 1 "w/one.wfs: block " weightfs sign w --key key.pem
cmp -s kept w/$manifest || fail "a damaged store has a new manifest"
fresh
"$WFS_PYTHON" "$tests/cli/flip.py" w/one.wfs 50 4200
ok weightfs verify --pubkey pub.pem w
# What can only be read by one who may not.
mkfifo w/pipe
expect 1 "w/pipe: is neither file" weightfs sign w --key key.pem
rm w/pipe

# A new container that does not fit leaves the old one and no manifest.
mkdir small
cp -p before/one.wfs small
# shellcheck disable=SC2016 # for the inner shell
expect 1 "small/one.wfs: cannot write the container: File too large" \
	bash -c 'ulimit -f 100; exec "$0" sign small --key key.pem' "$WFS_BIN/weightfs"
cmp small/one.wfs before/one.wfs && [ "$(ls -A small)" = one.wfs ] || fail "no room: $(ls -A small)"

# Hard links that stay with the old file, and owners that cannot be kept, are told.
mkdir outside
cp -p before/one.wfs outside
ln outside/one.wfs one-outside.wfs
expect 0 "outside/one.wfs: written anew, but it has other hard links" weightfs sign outside --key key.pem
cmp before/one.wfs one-outside.wfs || fail "the link outside is another"
ok weightfs verify --pubkey pub.pem outside
if [ "$(id -u)" -eq 0 ]; then
	mkdir owned
	cp before/one.wfs owned
	chown 1234:65534 owned/one.wfs
	caps=+dac_override,+fowner
	expect 0 "owned/one.wfs: written anew, but its owner or group could not be kept" \
		setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps $caps --ambient-caps $caps \
		"$WFS_BIN/weightfs" sign owned --key key.pem
	ok weightfs verify --pubkey pub.pem owned
fi

# ---- others at work ----

# while_packing: sign while a pack that is at work stands still.
"$WFS_PYTHON" - "$dir" "$WFS_BIN/weightfs" <<-'END' || fail "sign while a pack runs"
	import glob, os, shutil, signal, subprocess, sys
	where, weightfs = sys.argv[1:]
	sign = [weightfs, "sign", where + "/p", "--key", where + "/key.pem"]
	for _ in range(5):
	    shutil.rmtree(where + "/p", ignore_errors=True)
	    shutil.copytree(where + "/src/sub", where + "/p", symlinks=True)
	    pack = subprocess.Popen([weightfs, "pack", where + "/p", "--in-place", "-j", "1", "--cpu", "scalar"], stdout=subprocess.DEVNULL)
	    while pack.poll() is None and not glob.glob(where + "/p/.second*.tmp"):
	        pass
	    pack.send_signal(signal.SIGSTOP)
	    at_work = glob.glob(where + "/p/.second*.tmp")
	    done = subprocess.run(sign, capture_output=True)
	    pack.send_signal(signal.SIGCONT)
	    if pack.wait():
	        sys.exit("pack failed")
	    if at_work:
	        break
	else:
	    sys.exit("pack was never seen at work")
	if done.returncode != 1 or b"another weightfs is writing" not in done.stderr:
	    sys.exit(f"{done.returncode}: {done.stderr.decode()}")
	if os.path.exists(where + "/p/.weightfs-manifest"):
	    sys.exit("signed")
	sys.exit(subprocess.run(sign, stdout=subprocess.DEVNULL).returncode)
END
ok weightfs verify --pubkey pub.pem p
# A file that comes while sign is at work: not signed, or the manifest does not have it, which verify tells.
"$WFS_PYTHON" - "$dir" "$WFS_BIN/weightfs" <<-'END' || fail "a store that changes while it is signed"
	import glob, os, signal, subprocess, sys
	where, weightfs = sys.argv[1:]
	for _ in range(9):
	    sign = subprocess.Popen([weightfs, "sign", where + "/p", "--key", where + "/key.pem", "-j", "1", "--cpu", "scalar"],
	                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
	    while sign.poll() is None and not glob.glob(where + "/p/..weightfs-manifest*.tmp"):
	        pass
	    sign.send_signal(signal.SIGSTOP)
	    open(where + "/p/new", "w").close()
	    sign.send_signal(signal.SIGCONT)
	    errors = sign.communicate()[1]
	    os.unlink(where + "/p/new")
	    if sign.returncode == 1 and b"changed while it was signed" in errors:
	        break
	    if sign.returncode:
	        sys.exit(errors.decode())
	else:
	    sys.exit("never noticed")
END
ok weightfs verify --pubkey pub.pem p

# While a container with two names is written anew, somebody else replaces one of them, or is at work on it.
weights linked 16 3
ok weightfs pack linked -o linked.wfs
ok weightfs pack one -o other.wfs
"$WFS_PYTHON" "$tests/cli/sign_races.py" "$dir" "$WFS_BIN/weightfs" || fail "others at work on names of a container"

# A plain file that is cut short while it is read: it changed, and that is no fault of the disk.
cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -shared -o faults.so "$tests/cli/faults.c"
mkdir -p cut/sub
head -c 1M /dev/urandom >cut/sub/plain
cut_short()
{
	LD_PRELOAD=$dir/faults.so FAULT_ROOT=$dir/cut/sub FAULT_CALLS=,pread, FAULT_AT=1 FAULT_ACTION=run \
		FAULT_COMMAND="truncate -s 500k $dir/cut/sub/plain" "$@"
}
expect 1 "cut/sub/plain: cannot read: changed or was replaced meanwhile" cut_short "$WFS_BIN/weightfs" sign --key key.pem cut
[ ! -e "cut/$manifest" ] || fail "a file that was cut short is signed"
head -c 1M /dev/urandom >cut/sub/plain
ok weightfs sign --key key.pem cut
expect 1 "cut/sub/plain: changed: it changed while it was read" cut_short "$WFS_BIN/weightfs" verify --pubkey pub.pem cut

# ---- killed ----

rm -rf w
cp -a before w
started=$EPOCHREALTIME
ok weightfs sign w --key key.pem -j 1 --cpu scalar
took=$("$WFS_PYTHON" -c "print($EPOCHREALTIME - $started)")
# The first signing: no manifest or the new one. Another one after a file came: the old manifest or the new one.
nr=0 nr_new=0
for kind in first later; do
	for ((i = 0; i < kills; i++)); do
		rm -rf w
		if [ $kind = first ]; then
			cp -a before w
		else
			cp -a store w
			cp before/one.wfs w/three.wfs
		fi
		moment=$("$WFS_PYTHON" -c "print($took * $i / $kills)")
		"$WFS_PYTHON" "$tests/cli/kill_after.py" "$moment" "$WFS_BIN/weightfs" sign w --key key.pem -j 1 --cpu scalar
		nr=$((nr + 1))
		weightfs verify --pubkey pub.pem w --json >"$out" 2>"$err" && nr_new=$((nr_new + 1))
		if [ -e w/$manifest ]; then
			# What the killed run left is unsigned, too.
			json "d['totals']['ok'] == 12 + ('$kind' == 'later') * ('w/three.wfs' not in [f['path'] for f in d['files'] if f['status'] == 'unsigned'])"
			json "d['totals']['changed'] == d['totals']['damaged'] == d['totals']['missing'] == d['totals']['error'] == 0"
			json "[f['path'] for f in d['files'] if f['status'] == 'unsigned' and '.weightfs-' not in f['path']] in ([], ['w/three.wfs'])"
		elif [ $kind = later ]; then
			fail "the old manifest is gone"
		fi
		for name in model.safetensors sub/second.safetensors sub/same.safetensors; do
			weightfs cat "w/$name.wfs" | cmp -s - "src/$name" || fail "killed: w/$name.wfs"
		done
		ok weightfs sign w --key key.pem
		ok weightfs verify --pubkey pub.pem w
		no_temporaries w
	done
done
[ -z "${WFS_SIGN_KILLS-}" ] || echo "$nr kills, $nr_new of them after the new manifest was there"

# More pieces than a manifest can hold are refused at once, whatever the disk says the size is.
mkdir "$dir/vast"
truncate -s 8T "$dir/vast/sparse"
expect 1 "a manifest cannot hold" weightfs sign --key "$dir/key.pem" "$dir/vast"

# Nor what lies deeper than the tools walk: a message, and in bounded time.
"$WFS_PYTHON" - "$dir/deep" <<-'END'
	import os, sys
	os.mkdir(sys.argv[1])
	fd = os.open(sys.argv[1], os.O_RDONLY)
	for _ in range(2100):
	    os.mkdir("d", dir_fd=fd)
	    fd, old = os.open("d", os.O_RDONLY, dir_fd=fd), fd
	    os.close(old)
END
expect 1 "File name too long" weightfs sign --key "$dir/key.pem" "$dir/deep"
