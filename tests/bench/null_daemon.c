/* null_daemon.c STORE MNT - a measuring stick: what the FUSE transport itself allows. It serves WRONG BYTES on purpose.
 *
 * It shows a store as weightfsd does, with the same mount options, INIT values and loop. A read of len bytes becomes
 * one pread of the stretch of the stored file that holds about as many compressed bytes, and one writev of len bytes
 * from a huge page. There is no decoding, no cache, no bookkeeping: what is left is the disk and the kernel. Only the
 * header of a safetensors file is right, or no loader would go on.
 *
 * The process that is started prints the daemon's id and exits when the mount serves. The kernel's read-ahead is set by
 * whoever measures. Never installed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fuse_lowlevel.h>

#include "fs/fs.h"
#include "null_tree.h"

enum { HUGE_BYTES = 2 << 20 };
_Static_assert((int)WFSD_MAX_READ <= (int)HUGE_BYTES, "any reply lies in one huge page");

struct null_daemon {
	struct null_tree tree;
	pthread_key_t buffer; /* WFSD_MAX_READ bytes a thread */
	unsigned char *reply; /* HUGE_BYTES, never changed */
	const char *mnt;
	int ready_fd;
};

static struct null_node *node_of(struct null_daemon *d, fuse_ino_t ino)
{
	return &d->tree.node[ino - FUSE_ROOT_ID];
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	conn->max_read = WFSD_MAX_READ;
	conn->max_write = WFSD_MAX_READ;
	conn->max_background = WFSD_MAX_BACKGROUND;
	conn->congestion_threshold = WFSD_MAX_BACKGROUND / 4 * 3;
	conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct null_daemon *d = fuse_req_userdata(req);

	for (size_t i = 1; i < d->tree.nr; i++) {
		const struct null_node *node = &d->tree.node[i];
		if (node->parent != parent - FUSE_ROOT_ID || strcmp(node->name, name) != 0)
			continue;
		const struct fuse_entry_param entry = {
			.ino = i + FUSE_ROOT_ID, .attr = node->st, .attr_timeout = 3e8, .entry_timeout = 1};
		fuse_reply_entry(req, &entry);
		return;
	}
	fuse_reply_err(req, ENOENT);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	fuse_reply_attr(req, &node_of(fuse_req_userdata(req), ino)->st, 3e8);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fi->keep_cache = 1;
	fuse_reply_open(req, fi);
}

static void *thread_buffer(struct null_daemon *d)
{
	void *buffer = pthread_getspecific(d->buffer);
	if (!buffer) {
		buffer = aligned_alloc(HUGE_BYTES, HUGE_BYTES);
		if (buffer)
			madvise(buffer, HUGE_BYTES, MADV_HUGEPAGE);
		pthread_setspecific(d->buffer, buffer);
	}
	return buffer;
}

/* The stored bytes in proportion: offset x stored length / shown length. */
static off_t stored_offset(const struct null_node *node, uint64_t off)
{
	return (off_t)((double)off * (double)node->stored_len / (double)node->st.st_size);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct null_daemon *d = fuse_req_userdata(req);
	const struct null_node *node = node_of(d, ino);
	uint64_t left = off < node->st.st_size ? (uint64_t)(node->st.st_size - off) : 0;
	size_t len = size < left ? size : (size_t)left;
	unsigned char *buffer = thread_buffer(d);

	(void)fi;
	if (!len || !buffer || len > WFSD_MAX_READ) {
		fuse_reply_err(req, len ? EIO : 0);
		return;
	}
	off_t at = stored_offset(node, (uint64_t)off), end = stored_offset(node, (uint64_t)off + len);
	if (pread(node->fd, buffer, (size_t)(end - at), at) != end - at) {
		fuse_reply_err(req, EIO);
		return;
	}
	size_t true_len = (uint64_t)off < node->head_len ? node->head_len - (size_t)off : 0;
	if (true_len > len)
		true_len = len;
	const struct iovec iov[] = {{.iov_base = node->head + (true_len ? off : 0), .iov_len = true_len},
				    {.iov_base = d->reply, .iov_len = len - true_len}};
	fuse_reply_iov(req, iov + !true_len, true_len && true_len < len ? 2 : 1);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct null_daemon *d = fuse_req_userdata(req);
	char *buf = malloc(size);
	size_t used = 0;

	(void)fi;
	for (size_t i = (size_t)off + 1; buf && i < d->tree.nr; i++) {
		const struct null_node *node = &d->tree.node[i];
		if (node->parent != ino - FUSE_ROOT_ID)
			continue;
		size_t len = fuse_add_direntry(req, buf + used, size - used, node->name, &node->st, (off_t)i);
		if (len > size - used)
			break;
		used += len;
	}
	fuse_reply_buf(req, buf, used);
	free(buf);
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.open = op_open,
	.read = op_read,
	.readdir = op_readdir,
};

/* ---- process --------------------------------------------------------------------------------------------------- */

/* Runs beside the loop. Once the mount point answers, INIT is done, which would set the read-ahead back. */
static void *say_ready(void *arg)
{
	struct null_daemon *d = arg;
	struct stat st;
	char line[32];

	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
		perror("null_daemon");
	if (!stat(d->mnt, &st)) {
		int len = snprintf(line, sizeof(line), "%ld\n", (long)getpid());
		ssize_t n = write(d->ready_fd, line, (size_t)len);
		(void)n; /* the parent was killed */
	}
	close(d->ready_fd);
	return NULL;
}

static int serve(struct null_daemon *d)
{
	char name[] = "null_daemon", flag[] = "-o",
	     opts[] = "ro,nosuid,nodev,default_permissions,fsname=null,subtype=null,max_read=1048576";
	char *argv[] = {name, flag, opts, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct fuse_session *session = fuse_session_new(&args, &ops, sizeof(ops), d);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	pthread_t ready;
	int ret = 1;

	if (session && config && !fuse_set_signal_handlers(session) && !fuse_session_mount(session, d->mnt)) {
		fuse_loop_cfg_set_clone_fd(config, 1);
		fuse_loop_cfg_set_max_threads(config, WFSD_MAX_THREADS);
		if (!pthread_create(&ready, NULL, say_ready, d)) {
			ret = fuse_session_loop_mt(session, config) ? 1 : 0;
			pthread_join(ready, NULL);
		}
		fuse_session_unmount(session);
	}
	if (config)
		fuse_loop_cfg_destroy(config);
	if (session)
		fuse_session_destroy(session);
	fuse_opt_free_args(&args);
	return ret;
}

static bool prepare(struct null_daemon *d, const char *store)
{
	d->reply = aligned_alloc(HUGE_BYTES, HUGE_BYTES);
	if (!d->reply || pthread_key_create(&d->buffer, free)) {
		fputs("null_daemon: out of memory\n", stderr);
		return false;
	}
	madvise(d->reply, HUGE_BYTES, MADV_HUGEPAGE);
	memset(d->reply, 0x5a, HUGE_BYTES);
	return null_tree_load(&d->tree, store);
}

/* Prints the daemon's id when it comes; without one the daemon has ended. */
static int wait_until_ready(int fd)
{
	char line[32];
	ssize_t n = read(fd, line, sizeof(line));
	if (n <= 0)
		return 1;
	return fwrite(line, 1, (size_t)n, stdout) == (size_t)n ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct null_daemon d = {.mnt = argv[2], .ready_fd = -1};
	int ready[2];

	if (argc != 3) {
		fputs("usage: null_daemon STORE MNT\n", stderr);
		return 2;
	}
	if (!prepare(&d, argv[1]))
		return 1;
	if (pipe2(ready, O_CLOEXEC)) {
		perror("null_daemon");
		return 1;
	}
	pid_t child = fork();
	if (child < 0) {
		perror("null_daemon");
		return 1;
	}
	if (child) {
		close(ready[1]);
		return wait_until_ready(ready[0]);
	}
	close(ready[0]);
	d.ready_fd = ready[1];
	setsid();
	return serve(&d);
}
