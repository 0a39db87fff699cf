/* tune.c - see tune.h.
 *
 * FUSE's INIT reply can only lower read-ahead, so it takes sysfs, and root, to raise it above 128 KiB: with that
 * default requests are 128 KiB and two or three are in flight, a few times slower than the daemon is. The other two
 * are granted by INIT, but the kernel caps them for users other than root.
 */
#include "tune.h"
#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FIRST_MINOR_WITH_MAX_PAGES = 28, /* before it a request has at most 32 pages */
	OLD_MAX_PAGES = 32,
	CONGESTION_THRESHOLD = WFSD_MAX_BACKGROUND / 4 * 3,
};

/* ---- settings as files ----------------------------------------------------------------------------------------- */

/* The number in a file of the kernel, or 0. */
static unsigned read_number(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 ? (unsigned)strtoul(text, NULL, 10) : 0;
}

/* 0 or the errno. */
static int write_number(const char *path, unsigned value)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%u\n", value);
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0 || write(fd, text, (size_t)len) != len)
		err = errno;
	if (fd >= 0)
		close(fd);
	return err;
}

static const struct setting {
	size_t place; /* in struct wfsd_kernel */
	bool exact;   /* more than we wish for is not welcome either */
	const char *file;
} settings[] = {
	{offsetof(struct wfsd_kernel, read_ahead_kb), true, "read_ahead_kb"},
	{offsetof(struct wfsd_kernel, max_background), false, "max_background"},
	{offsetof(struct wfsd_kernel, congestion_threshold), false, "congestion_threshold"},
};
enum { NR_SETTINGS = sizeof(settings) / sizeof(settings[0]), PATH_ROOM = 96 };

static void setting_path(const struct wfsd *d, const struct setting *s, char path[PATH_ROOM])
{
	if (s->place == offsetof(struct wfsd_kernel, read_ahead_kb))
		snprintf(path, PATH_ROOM, "/sys/class/bdi/%u:%u/%s", d->major, d->minor, s->file);
	else
		snprintf(path, PATH_ROOM, "/sys/fs/fuse/connections/%u/%s", d->minor, s->file);
}

static unsigned *field(struct wfsd_kernel *k, const struct setting *s)
{
	return (unsigned *)((char *)k + s->place);
}

static bool falls_short(const struct setting *s, unsigned now, unsigned wanted)
{
	return now && wanted && (s->exact ? now != wanted : now < wanted);
}

/* ---- what the daemon does --------------------------------------------------------------------------------------- */

void wfsd_tune_init(struct wfsd *d, struct fuse_conn_info *conn)
{
	unsigned limit = read_number("/proc/sys/fs/fuse/max_pages_limit"), wanted_kb = d->opts->read_ahead_kb;
	unsigned pages = (WFSD_MAX_READ - 1) / (unsigned)sysconf(_SC_PAGESIZE) + 1;

	conn->max_read = WFSD_MAX_READ;	 /* as in the mount options */
	conn->max_write = WFSD_MAX_READ; /* decides max_pages, the size of any request */
	conn->max_background = WFSD_MAX_BACKGROUND;
	conn->congestion_threshold = CONGESTION_THRESHOLD;
	if (wanted_kb && wanted_kb < conn->max_readahead / 1024) /* less takes no rights */
		conn->max_readahead = wanted_kb * 1024;
	/* Measured: for replies of 1 MiB a plain writev is faster than splice. */
	conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);

	if (conn->proto_minor < FIRST_MINOR_WITH_MAX_PAGES)
		limit = OLD_MAX_PAGES;
	atomic_store(&d->init.protocol_minor, conn->proto_minor);
	atomic_store(&d->init.max_read_bytes, conn->max_read);
	atomic_store(&d->init.max_pages, limit && limit < pages ? limit : pages);
	atomic_store(&d->init.max_readahead_bytes, conn->max_readahead);
}

struct wfsd_kernel wfsd_tune_wanted(const struct wfsd *d)
{
	unsigned page_kb = (unsigned)sysconf(_SC_PAGESIZE) / 1024, kb = d->opts->read_ahead_kb;
	return (struct wfsd_kernel){kb - kb % page_kb, WFSD_MAX_BACKGROUND, CONGESTION_THRESHOLD};
}

struct wfsd_kernel wfsd_tune_now(const struct wfsd *d)
{
	struct wfsd_kernel now = {0};
	char path[PATH_ROOM];

	for (unsigned i = 0; i < NR_SETTINGS; i++) {
		setting_path(d, &settings[i], path);
		*field(&now, &settings[i]) = read_number(path);
	}
	return now;
}

void wfsd_tune(const struct wfsd *d)
{
	struct wfsd_kernel now = wfsd_tune_now(d), wanted = wfsd_tune_wanted(d);
	char path[PATH_ROOM], commands[NR_SETTINGS * (PATH_ROOM + 32)] = "";
	size_t len = 0;
	int first_err = 0;

	for (unsigned i = 0; i < NR_SETTINGS; i++) {
		const struct setting *s = &settings[i];
		unsigned value = *field(&wanted, s);
		int err;

		if (!falls_short(s, *field(&now, s), value))
			continue;
		setting_path(d, s, path);
		err = write_number(path, value);
		if (!err && falls_short(s, read_number(path), value))
			err = ERANGE; /* taken, and capped */
		if (!err)
			continue;
		first_err = first_err ? first_err : err;
		len += (size_t)snprintf(commands + len, sizeof(commands) - len, "%secho %u > %s", len ? "; " : "",
					value, path);
	}
	if (first_err)
		wfsd_log(&d->log, WFSD_WARNING,
			 "%s: the kernel is not tuned for this mount (%s), which makes reads slower; "
			 "for full speed run as root: %s",
			 d->mount_path, strerror(first_err), commands);
}
