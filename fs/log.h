/* log.h - one line a message, to stderr or to syslog.
 *
 * In the foreground and while starting lines go to stderr; a daemon that serves sends them to syslog, or with log=FILE,
 * which becomes descriptor 2, there. Any thread may log; a line is one write. Only those of a file carry the time: a
 * terminal shows it, and syslog and the journal write their own.
 */
#ifndef WFSD_LOG_H
#define WFSD_LOG_H

#include <stdatomic.h>

enum wfsd_level { WFSD_ERROR, WFSD_WARNING, WFSD_INFO, WFSD_DEBUG };

enum wfsd_log_target { WFSD_TO_STDERR, WFSD_TO_FILE, WFSD_TO_SYSLOG };

struct wfsd_log {
	enum wfsd_level max_level;	      /* lines above it are dropped; constant after start */
	_Atomic(enum wfsd_log_target) target; /* set once, when the daemon lets go of the terminal */
};

/* The level of that name ("error", "warning", "info", "debug"), or -1. */
int wfsd_level_from_name(const char *name);

/* fmt: a clause without a newline. Control characters, which file names may hold, are written as '?'. */
void wfsd_log(const struct wfsd_log *log, enum wfsd_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* From now on libfuse's own messages go through log, which must live as long as the process. */
void wfsd_log_take_fuse(const struct wfsd_log *log);

#endif
