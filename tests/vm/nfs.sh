# shellcheck shell=bash
# nfs.sh - a server and two clients in one machine: the server's network is the machine's, each client has a network and
# a host name of its own, so that the server takes them for two machines. What they mount is seen by all.
served=/mnt/served

# serve FSTYPE [EXPORT_OPTION]: /dev/vda, as the root of all that is exported.
serve()
{
	local options=rw,async,no_subtree_check,fsid=0,${2-no_root_squash}
	modprobe nfsd
	mkdir -p "$served" /run/rpcbind
	"mkfs.$1" -q /dev/vda
	mount /dev/vda "$served"
	mount -t tmpfs tmpfs /var/lib/nfs
	mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs /var/lib/nfs/sm /var/lib/nfs/sm.bak
	touch /var/lib/nfs/etab /var/lib/nfs/rmtab /var/lib/nfs/state
	mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
	mount -t nfsd nfsd /proc/fs/nfsd
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	rpcbind -w
	exportfs -o "$options" "*:$served"
	rpc.statd
	rpc.mountd
	rpc.nfsd 8
	# There was nobody before this start who could want locks back.
	echo Y >/proc/fs/nfsd/v4_end_grace
	echo Y >/proc/fs/lockd/nlm_end_grace
}

# client NR: its process holds the network; 10.0.NR.1 is the server there.
declare -A client_pid
client()
{
	local n=$1
	unshare --net --uts sh -c "hostname client$n; exec sleep 100000" &
	client_pid[$n]=$!
	until [ "$(nsenter -t "${client_pid[$n]}" -u hostname)" = "client$n" ]; do :; done
	ip link add "to$n" type veth peer name eth0 netns "${client_pid[$n]}"
	ip addr add "10.0.$n.1/24" dev "to$n"
	ip link set "to$n" up
	on_client "$n" sh -c "ip link set lo up; ip addr add 10.0.$n.2/24 dev eth0; ip link set eth0 up"
}
on_client()
{
	nsenter -t "${client_pid[$1]}" -n -u "${@:2}"
}
# attach NR MNT OPTIONS
attach()
{
	mkdir -p "$2"
	on_client "$1" mount -i -t nfs4 -o "addr=10.0.$1.1,clientaddr=10.0.$1.2,$3" "10.0.$1.1:/" "$2"
}
