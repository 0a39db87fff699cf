/* cmd_cat.c - weightfs cat: the original bytes of containers, and plain files as they are, to standard output. */
#include "commands.h"
#include "lost.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_CPU = 256 };

static const struct option options[] = {
	{"threads", required_argument, NULL, 'j'},
	{"cpu", required_argument, NULL, OPT_CPU},
	COMMON_OPTIONS,
};

/* Writes to stdout; a reader that went away is no news. Returns whether to go on. */
static bool write_out(const void *buf, size_t len)
{
	int ret = write_full(STDOUT_FILENO, buf, len, -1);
	if (ret && ret != EPIPE)
		msg("cannot write the output: %s", strerror(ret));
	return !ret;
}

static int write_piece(void *ctx, const void *raw, size_t len)
{
	(void)ctx;
	return !write_out(raw, len);
}

static bool cat_plain(const char *path, int fd)
{
	enum { STEP = 1 << 20 };
	char *buf = xcalloc(1, STEP);
	off_t off = 0;
	ssize_t n;
	bool ok = true;
	while (ok && (n = pread_full(fd, buf, STEP, off)) != 0) {
		if (n < 0) {
			msg("cat: %s: %s", path, strerror(errno));
			ok = false;
		} else {
			ok = write_out(buf, (size_t)n);
			off += n;
		}
	}
	free(buf);
	return ok;
}

static bool cat_container(const char *path, const struct wfs_reader *reader, unsigned nr_threads)
{
	struct wfs_error err = {0};
	struct wfs_info info;
	char reason[REASON_BYTES];
	wfs_reader_info(reader, &info);
	if (wfs_reader_stream(reader, 0, info.head.raw_len, nr_threads, write_piece, NULL, &err) == WFS_OK)
		return true;
	if (err.status != WFS_CANCELLED) {
		wfs_reason(reason, reader, &err);
		msg("cat: %s: %s%s", path, reason,
		    err.block == WFS_NO_BLOCK
			    ? ""
			    : "; stopped before it: weightfs unpack --keep-going saves the other blocks");
	}
	return false;
}

static bool cat_path(const char *path, enum wfs_cpu cpu, unsigned nr_threads)
{
	const struct wfs_reader_opts opts = {.cpu = cpu, .suffixed = container_path(path)};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	char reason[REASON_BYTES], advice[ADVICE_BYTES];
	enum wfs_status status;
	struct stat st;
	bool ok = false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st)) {
		msg("cat: %s: %s", path, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		msg("cat: %s: %s", path, S_ISDIR(st.st_mode) ? strerror(EISDIR) : "is not a regular file");
		goto out;
	}
	status = wfs_reader_open(fd, &opts, &reader, &err);
	if (status == WFS_NOT_CONTAINER) {
		ok = cat_plain(path, fd);
	} else if (status == WFS_OK) {
		ok = cat_container(path, reader, nr_threads);
	} else {
		wfs_reason(reason, NULL, &err);
		msg("cat: %s: %s%s", path, reason, damage_advice(fd, NULL, &err, advice));
	}
	wfs_reader_free(reader);
out:
	if (fd >= 0)
		close(fd);
	return ok;
}

int cmd_cat(const struct command *self, int argc, char **argv)
{
	enum wfs_cpu cpu = WFS_CPU_AUTO;
	unsigned nr_threads = nr_processors();
	bool ok = true;
	int c;
	while ((c = getopt_long(argc, argv, "j:hV", options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (c == 'j' ? !parse_threads("cat", optarg, &nr_threads) : !parse_cpu("cat", optarg, &cpu))
			return EXIT_USAGE;
	}
	if (!check_arguments(self, argc - optind, argv + optind, 1, -1))
		return EXIT_USAGE;
	for (int i = optind; i < argc; i++)
		ok = cat_path(argv[i], cpu, nr_threads) && ok;
	/* close() tells of a write that failed late, on NFS for one. */
	if (close(STDOUT_FILENO) && errno != EBADF) {
		msg("cannot write the output: %s", strerror(errno));
		ok = false;
	}
	return ok ? EXIT_OK : EXIT_FAILED;
}
