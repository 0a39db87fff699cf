/* util.c - messages, memory, whole reads and writes, numbers for people. */
#include "util.h"
#include "printable.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static char *PRINTF_LIKE(1, 0) vformat(const char *fmt, va_list args)
{
	char *text = NULL;
	if (vasprintf(&text, fmt, args) < 0) {
		static const char no_memory[] = "weightfs: out of memory\n";
		(void)!write(STDERR_FILENO, no_memory, sizeof(no_memory) - 1);
		exit(EXIT_FAILED);
	}
	return text;
}

void msg(const char *fmt, ...)
{
	va_list args;
	char *text;
	va_start(args, fmt);
	text = vformat(fmt, args);
	va_end(args);
	wfs_mask_controls(text, strlen(text), false);
	fprintf(stderr, "weightfs: %s\n", text);
	free(text);
}

void out_line(const char *fmt, ...)
{
	va_list args;
	char *text;
	va_start(args, fmt);
	text = vformat(fmt, args);
	va_end(args);
	wfs_mask_controls(text, strlen(text), false);
	printf("%s\n", text);
	free(text);
}

static void *checked(void *p)
{
	if (!p) {
		msg("out of memory");
		exit(EXIT_FAILED);
	}
	return p;
}

void *xcalloc(size_t nr, size_t size)
{
	return checked(calloc(nr ? nr : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t nr, size_t size)
{
	return checked(reallocarray(p, nr ? nr : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xasprintf(const char *fmt, ...)
{
	va_list args;
	char *text;
	va_start(args, fmt);
	text = vformat(fmt, args);
	va_end(args);
	return text;
}

int write_full(int fd, const void *buf, size_t len, off_t off)
{
	size_t done = 0;
	while (done < len) {
		const char *from = (const char *)buf + done;
		ssize_t n = off < 0 ? write(fd, from, len - done) : pwrite(fd, from, len - done, off + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO;
		done += (size_t)n;
	}
	return 0;
}

ssize_t pread_full(int fd, void *buf, size_t len, off_t off)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, off + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

const char *size_text(char buf[SIZE_TEXT_BYTES], uint64_t bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes / 1000;
	size_t unit = 0;
	if (bytes < 1000) {
		snprintf(buf, SIZE_TEXT_BYTES, "%u B", (unsigned)bytes);
		return buf;
	}
	/* 999.5 would print as "1000 kB". */
	while (value >= 999.5 && unit + 1 < ARRAY_LEN(units)) {
		value /= 1000;
		unit++;
	}
	snprintf(buf, SIZE_TEXT_BYTES, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit]);
	return buf;
}

const char *rate_text(char buf[RATE_TEXT_BYTES], uint64_t bytes, double seconds)
{
	/* Below the first two it is start and end that are measured. No machine reads bytes faster than the third: they
	 * were holes or constants, which nobody has to look at. */
	static const uint64_t least_bytes = 1000000;
	static const double least_seconds = 0.05, highest_rate = 1e12;
	char size[SIZE_TEXT_BYTES];
	buf[0] = '\0';
	if (bytes >= least_bytes && seconds >= least_seconds && (double)bytes / seconds <= highest_rate)
		snprintf(buf, RATE_TEXT_BYTES, ", %s/s", size_text(size, (uint64_t)((double)bytes / seconds)));
	return buf;
}

double saved_percent(uint64_t raw_bytes, uint64_t stored_bytes)
{
	if (!raw_bytes)
		return 0;
	return 100 * ((double)raw_bytes - (double)stored_bytes) / (double)raw_bytes;
}

const char *saved_text(char buf[SAVED_TEXT_BYTES], uint64_t raw_bytes, uint64_t stored_bytes, int decimals)
{
	char more[SIZE_TEXT_BYTES];
	if (stored_bytes <= raw_bytes)
		snprintf(buf, SAVED_TEXT_BYTES, "%.*f %% saved", decimals, saved_percent(raw_bytes, stored_bytes));
	else
		snprintf(buf, SAVED_TEXT_BYTES, "%s more than the original", size_text(more, stored_bytes - raw_bytes));
	return buf;
}

const char *plural(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

const char *plural_es(uint64_t nr)
{
	return nr == 1 ? "" : "es";
}

const char *is_or_are(uint64_t nr)
{
	return nr == 1 ? "is" : "are";
}

bool parse_number(const char *text, uint64_t low, uint64_t high, bool units, uint64_t *value_ret)
{
	static const char suffixes[] = "kMGT";
	const char *suffix;
	unsigned long long value;
	char *end;
	/* strtoull skips blanks and takes signs: neither is a number here. */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (units && *end && (suffix = strchr(suffixes, *end == 'K' ? 'k' : *end))) {
		unsigned shift = 10 * (unsigned)(suffix - suffixes + 1);
		if (value > UINT64_MAX >> shift)
			return false;
		value <<= shift;
		end++;
	}
	if (*end || value < low || value > high)
		return false;
	*value_ret = value;
	return true;
}

bool parse_percent(const char *text, double *value_ret)
{
	char *end;
	double value;
	if (*text < '0' || *text > '9')
		return false;
	value = strtod(text, &end);
	if (*end == '%')
		end++;
	if (*end || !(value >= 0 && value <= 100))
		return false;
	*value_ret = value;
	return true;
}

bool parse_cpu(const char *command, const char *text, enum wfs_cpu *cpu_ret)
{
	int cpu = wfs_cpu_from_name(text);
	if (cpu < 0) {
		msg("%s: no CPU variant is called '%s': use auto, scalar, ssse3, avx2, avx512vbmi or neon", command,
		    text);
		return false;
	}
	if (!wfs_cpu_supported((enum wfs_cpu)cpu)) {
		msg("%s: this machine cannot run the CPU variant '%s'", command, text);
		return false;
	}
	*cpu_ret = (enum wfs_cpu)cpu;
	return true;
}

bool parse_level(const char *command, const char *text, enum wfs_level *level_ret)
{
	int level = wfs_level_from_name(text);
	if (level < 0) {
		msg("%s: '%s' is not a level: use fast, default or max", command, text);
		return false;
	}
	*level_ret = (enum wfs_level)level;
	return true;
}

bool parse_threads(const char *command, const char *text, unsigned *nr_ret)
{
	uint64_t value;
	if (!parse_number(text, 1, 1024, false, &value)) {
		msg("%s: '%s' is not a number of threads (1 to 1024)", command, text);
		return false;
	}
	*nr_ret = (unsigned)value;
	return true;
}

unsigned nr_processors(void)
{
	cpu_set_t set;
	if (!sched_getaffinity(0, sizeof(set), &set))
		return (unsigned)MAX(CPU_COUNT(&set), 1);
	long nr = sysconf(_SC_NPROCESSORS_ONLN);
	return nr > 0 ? (unsigned)nr : 1;
}

double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void wfs_reason(char buf[REASON_BYTES], const struct wfs_reader *reader, const struct wfs_error *err)
{
	char place[96] = "";
	if (err->block != WFS_NO_BLOCK && reader) {
		struct wfs_block block;
		wfs_reader_block(reader, err->block, &block);
		snprintf(place, sizeof(place), "block %llu (bytes %llu to %llu): ", (unsigned long long)block.index,
			 (unsigned long long)block.raw_off, (unsigned long long)(block.raw_off + block.raw_len - 1));
	}
	if (err->status == WFS_IO && err->sys_errno)
		snprintf(buf, REASON_BYTES, "%s%s: %s", place, err->reason, strerror(err->sys_errno));
	else if (err->status == WFS_UNSUPPORTED)
		snprintf(buf, REASON_BYTES, "%s%s: update weightfs to read it", place, err->reason);
	else
		snprintf(buf, REASON_BYTES, "%s%s", place, err->reason);
}

bool close_stdout(void)
{
	bool failed = ferror(stdout);
	int sys_errno = 0;
	/* EBADF: the caller closed stdout on purpose; that matters only when there was something to say. */
	errno = 0;
	if (fflush(stdout))
		sys_errno = errno;
	if (!sys_errno && fclose(stdout) && errno != EBADF)
		sys_errno = errno;
	if (!failed && !sys_errno)
		return true;
	/* Nobody reads on: not worth a message. */
	if (sys_errno != EPIPE)
		msg("cannot write the output: %s", sys_errno ? strerror(sys_errno) : "write error");
	return false;
}

struct parallel {
	atomic_size_t next;
	size_t nr;
	void (*fn)(void *ctx, size_t i);
	void *ctx;
};

static void *parallel_worker(void *arg)
{
	struct parallel *p = arg;
	size_t i;
	while ((i = atomic_fetch_add(&p->next, 1)) < p->nr)
		p->fn(p->ctx, i);
	return NULL;
}

void parallel_for(size_t nr, unsigned nr_workers, void (*fn)(void *ctx, size_t i), void *ctx)
{
	struct parallel p = {.nr = nr, .fn = fn, .ctx = ctx};
	unsigned nr_started = 0, wanted = (unsigned)MIN((size_t)nr_workers, nr);
	pthread_t *thread = xcalloc(wanted, sizeof(*thread));
	/* The caller is one of the workers, so a machine without a thread to spare still does the work. */
	while (nr_started + 1 < wanted && !pthread_create(&thread[nr_started], NULL, parallel_worker, &p))
		nr_started++;
	parallel_worker(&p);
	for (unsigned i = 0; i < nr_started; i++)
		pthread_join(thread[i], NULL);
	free(thread);
}

bool container_name(const char *name, char *original_ret)
{
	static const char suffix[] = ".wfs";
	size_t len = strlen(name), stem = len - (sizeof(suffix) - 1);
	if (len < sizeof(suffix) || len > NAME_MAX || strcmp(name + stem, suffix) != 0)
		return false;
	/* "..wfs" and "...wfs" would be "." and "..". */
	if (name[0] == '.' && (stem == 1 || (stem == 2 && name[1] == '.')))
		return false;
	if (original_ret) {
		memcpy(original_ret, name, stem);
		original_ret[stem] = '\0';
	}
	return true;
}

bool container_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	return container_name(slash ? slash + 1 : path, NULL);
}

enum wfs_status named_head_read(const char *path, int fd, struct wfs_head *head_ret, struct wfs_error *err)
{
	return container_path(path) ? wfs_head_read_suffixed(fd, head_ret, err) : wfs_head_read(fd, head_ret, err);
}

static size_t trimmed_len(const char *path)
{
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	return len;
}

char *path_basename(const char *path)
{
	size_t end = trimmed_len(path), start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	if (start == end && end > 0)
		return xstrdup("/");
	return xasprintf("%.*s", (int)(end - start), path + start);
}

char *path_dirname(const char *path)
{
	size_t end = trimmed_len(path);
	while (end > 0 && path[end - 1] != '/')
		end--;
	if (end == 0)
		return xstrdup(".");
	while (end > 1 && path[end - 1] == '/')
		end--;
	return xasprintf("%.*s", (int)end, path);
}
