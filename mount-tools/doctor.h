/* doctor.h - looks at a mount and knows what to improve. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "mounted.h"

#include <stddef.h>

enum mount_state {
	MOUNT_SERVES,
	MOUNT_DEAD,   /* its daemon is gone */
	MOUNT_SILENT, /* its daemon is stopped or hangs */
	MOUNT_CLOSED, /* it serves, but does not tell us of itself */
};

struct advice {
	char *what;
	char *run; /* the command, or the option of the mount */
};

struct doctor {
	const struct mounted *mount;
	enum mount_state state;
	char *stats;  /* the daemon's document, valid JSON; NULL: not MOUNT_SERVES */
	char *reason; /* of that, in the daemon's words */
	struct advice *advice;
	size_t nr_advice;
};

/* mount: a weightfs, which the caller keeps until doctor_free. */
void doctor_examine(struct doctor *d, const struct mounted *mount);
void doctor_free(struct doctor *d);

const char *mount_state_name(enum mount_state state);
/* A number of the daemon's document; -1: it is not there, or unknown to the daemon. */
double doctor_number(const struct doctor *d, const char *name);

#endif
