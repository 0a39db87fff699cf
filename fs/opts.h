/* opts.h - the command line of weightfsd. */
#ifndef WFSD_OPTS_H
#define WFSD_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"
#include "wfs.h"

enum wfsd_command { WFSD_MOUNT, WFSD_STATS, WFSD_STORE, WFSD_HELP, WFSD_VERSION };

struct wfsd_opts {
	enum wfsd_command command;
	const char *store; /* as given; owned by argv */
	const char *mountpoint;
	bool foreground;
	bool json; /* --stats */
	bool allow_other;
	uint64_t cache_bytes;
	unsigned nr_threads; /* decode workers, at least 1 */
	enum wfs_cpu cpu;
	double entry_timeout;	/* seconds the kernel may trust a name */
	unsigned io_timeout;	/* seconds until an unanswered request fails; 0: never */
	unsigned read_ahead_kb; /* 0: leave the kernel's value */
	enum wfsd_level log_level;
	char *pubkey;	  /* show only what the holder of this key has signed; NULL: all; owned */
	char *log_file;	  /* absolute; NULL: syslog; owned */
	char *mount_opts; /* for libfuse; owned */
};

/* Parses argv. 0, or the exit status 2 with one line written to stderr. */
int wfsd_opts_parse(int argc, char **argv, struct wfsd_opts *opts_ret);
void wfsd_opts_free(struct wfsd_opts *opts);
void wfsd_opts_help(void);

/* Processors that this process may use; as many as threads= may say at most, and at least 1. */
unsigned wfsd_nr_processors(void);

#endif
