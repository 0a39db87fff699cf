/* verify_manifest.h - weightfs verify --pubkey: a store against its signed manifest. */
#ifndef VERIFY_MANIFEST_H
#define VERIFY_MANIFEST_H

#include "util.h"

struct verify_manifest_opts {
	const char *command; /* for messages */
	const char *key_path;
	bool fast, json, quiet;
	unsigned nr_threads;
	enum wfs_cpu cpu;
};

/* Prove the store against its manifest and print the report. Returns the exit status. */
int verify_manifest(const char *store, const struct verify_manifest_opts *opts);

#endif
