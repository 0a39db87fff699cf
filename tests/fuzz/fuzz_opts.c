/* fuzz_opts.c - any bytes as the command line of weightfsd: refused with one line and status 2, or options within the
 * limits that weightfsd(8) names, and a mount that is read-only, without set-user-ID and device files whatever was
 * said.
 *
 * Input: the arguments, each ended by a zero byte.
 */
#include "fuzz.h"
#include "opts.h"

#include <string.h>

enum { MAX_ARGS = 256 };

/* What a mount has in any case, and the words that may follow: those that only take rights away, let others in as the
 * kernel's own rules allow, or label files. */
static void check_mount_opts(char *opts)
{
	static const char fixed[] =
		"ro,nosuid,nodev,default_permissions,fsname=weightfs,subtype=weightfs,max_read=1048576";
	static const char *const more[] = {"allow_other", "allow_root", "noexec",      "noatime",
					   "context=",	  "fscontext=", "defcontext=", "rootcontext="};
	const size_t fixed_len = sizeof(fixed) - 1;

	FUZZ_CHECK(!strncmp(opts, fixed, fixed_len) && (!opts[fixed_len] || opts[fixed_len] == ','));
	for (char *save = NULL, *word = strtok_r(opts + fixed_len, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		bool found = false;

		for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
			size_t len = strlen(more[i]);

			found |= more[i][len - 1] == '=' ? !strncmp(word, more[i], len) : !strcmp(word, more[i]);
		}
		FUZZ_CHECK(found);
	}
}

static void check(struct wfsd_opts *o)
{
	FUZZ_CHECK(o->command <= WFSD_VERSION);
	if (o->command == WFSD_MOUNT)
		FUZZ_CHECK(o->store && o->mountpoint && !o->json);
	if (o->command == WFSD_STATS)
		FUZZ_CHECK(!o->store && o->mountpoint);
	FUZZ_CHECK(o->cache_bytes >= 16 << 20 && o->cache_bytes <= (uint64_t)1 << 40);
	FUZZ_CHECK(o->nr_threads >= 1 && o->nr_threads <= 1024);
	FUZZ_CHECK(o->cpu < WFS_NR_CPUS && wfs_cpu_supported(o->cpu));
	FUZZ_CHECK(o->entry_timeout >= 0 && o->entry_timeout <= 1e8); /* no NaN either */
	FUZZ_CHECK(o->io_timeout <= 86400);
	FUZZ_CHECK(o->read_ahead_kb == 0 || (o->read_ahead_kb >= 4 && o->read_ahead_kb <= 1 << 20));
	FUZZ_CHECK(o->log_level <= WFSD_DEBUG);
	FUZZ_CHECK(!o->log_file || o->log_file[0] == '/');
	check_mount_opts(o->mount_opts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[] = "weightfsd", *copy = (char *)fuzz_alloc(size + 1), *argv[MAX_ARGS + 2] = {name};
	struct wfsd_opts opts;
	int argc = 1, ret;

	if (size)
		memcpy(copy, data, size);
	copy[size] = '\0';
	for (size_t at = 0; at < size && argc <= MAX_ARGS; at += strlen(copy + at) + 1)
		argv[argc++] = copy + at;
	ret = wfsd_opts_parse(argc, argv, &opts);
	FUZZ_CHECK(ret == 0 || ret == 2);
	if (ret)
		FUZZ_CHECK(!opts.mount_opts && !opts.log_file);
	else
		check(&opts);
	if (!ret)
		wfsd_opts_free(&opts);
	free(copy);
	return 0;
}
