/* stats_socket.h - the daemon's private UNIX socket, and its client.
 *
 * The socket lies in a directory that only its owner can enter and is named by the mount's device number, so that a
 * client finds it from the mount point alone: /run/weightfs/0-57.sock for root, else $XDG_RUNTIME_DIR/weightfs/...,
 * else /tmp/weightfs-UID/.... The client sends "json\n" or "text\n" and reads to the end;
 * or "store\n", and gets a descriptor of the store's root, which the mount may cover, with one byte (unix(7),
 * SCM_RIGHTS).
 */
#ifndef WFSD_STATS_SOCKET_H
#define WFSD_STATS_SOCKET_H

#include <sys/types.h>

struct wfsd;
struct wfsd_mount;
struct wfsd_stats_server;

/* The socket of a mount that is made, before the daemon gives up the right to make one; clients wait. Removes sockets
 * that killed daemons have left. NULL: not possible, and logged why; the mount works without. */
struct wfsd_stats_server *wfsd_stats_server_new(struct wfsd *d);
/* Where it lies, for the caller to free. NULL: there is no server, or no memory. */
char *wfsd_stats_server_dir(const struct wfsd_stats_server *server);
/* Starts the thread that answers. server may be NULL. */
void wfsd_stats_server_start(struct wfsd_stats_server *server);
/* Stops it and removes the socket. server may be NULL. */
void wfsd_stats_server_free(struct wfsd_stats_server *server);
/* Only removes the socket: for an exit that cannot wait for threads. */
void wfsd_stats_server_unlink(struct wfsd_stats_server *server);

/* The process that serves a mount, also one that does not answer. 0: unknown. */
pid_t wfsd_stats_server_pid(const struct wfsd_mount *mount);
/* weightfsd --stats: prints to stdout. The exit status; after a failure with one line on stderr. */
int wfsd_stats_client(const char *mountpoint, int json);
/* weightfsd --store: passes a descriptor of the store's root over the UNIX socket that stdout is. */
int wfsd_store_client(const char *mountpoint);

#endif
