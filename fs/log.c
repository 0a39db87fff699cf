/* log.c - see log.h. */
#include "log.h"
#include "printable.h"

#include <fuse_lowlevel.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

int wfsd_level_from_name(const char *name)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	for (int i = WFSD_ERROR; i <= WFSD_DEBUG; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -1;
}

/* "2026-12-01T13:05:00Z ": UTC, since the zone of the machine is a file that the daemon may not be able to read by now.
 * Returns its length; 0 when there is no room or no time. */
static size_t put_time(char *buf, size_t room)
{
	struct tm tm;
	time_t now = time(NULL);
	return gmtime_r(&now, &tm) ? strftime(buf, room, "%Y-%m-%dT%H:%M:%SZ ", &tm) : 0;
}

static void __attribute__((format(printf, 3, 0)))
log_line(const struct wfsd_log *log, enum wfsd_level level, const char *fmt, va_list args)
{
	static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
	static const char prefix[] = "weightfsd: ";
	char line[2048];
	size_t len = 0;

	if (level > log->max_level)
		return;
	const enum wfsd_log_target target = atomic_load_explicit(&log->target, memory_order_relaxed);
	if (target == WFSD_TO_FILE)
		len = put_time(line, sizeof(line));
	if (target != WFSD_TO_SYSLOG) { /* which has the name by itself */
		memcpy(line + len, prefix, sizeof(prefix) - 1);
		len += sizeof(prefix) - 1;
	}
	int n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, args);
	if (n > 0)
		len += (size_t)n < sizeof(line) - len - 1 ? (size_t)n : sizeof(line) - len - 2;
	while (len && line[len - 1] == '\n')
		len--;
	wfs_mask_controls(line, len, false);
	line[len] = '\0';
	if (target == WFSD_TO_SYSLOG) {
		syslog(LOG_DAEMON | priorities[level], "%s", line);
		return;
	}
	line[len] = '\n';
	ssize_t written = write(STDERR_FILENO, line, len + 1);
	(void)written; /* nobody is left to be told */
}

void wfsd_log(const struct wfsd_log *log, enum wfsd_level level, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	log_line(log, level, fmt, args);
	va_end(args);
}

/* The daemon's only global. libfuse has one callback a process for its messages and hands it no context, so there is no
 * other way to tell it where they go. Set once, before there are threads. */
static const struct wfsd_log *fuse_log_target;

static void __attribute__((format(printf, 2, 0))) fuse_line(enum fuse_log_level level, const char *fmt, va_list args)
{
	enum wfsd_level ours = level <= FUSE_LOG_ERR	   ? WFSD_ERROR
			       : level == FUSE_LOG_WARNING ? WFSD_WARNING
			       : level <= FUSE_LOG_INFO	   ? WFSD_INFO
							   : WFSD_DEBUG;
	log_line(fuse_log_target, ours, fmt, args);
}

void wfsd_log_take_fuse(const struct wfsd_log *log)
{
	fuse_log_target = log;
	fuse_set_log_func(fuse_line);
}
