/* doctor.c - see doctor.h. Each check looks at one thing and adds at most a few lines of advice. */
#include "doctor.h"
#include "commands.h"
#include "json_in.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LEAST_READ_AHEAD_KB = 1024, /* below it requests are small and few */
	GOOD_READ_AHEAD_KB = 2048,
	LARGEST_READ = 1 << 20,
	WASTE_PERCENT = 10, /* of the blocks decoded ahead */
	MIN_AHEAD_BLOCKS = 1000,
};

const char *mount_state_name(enum mount_state state)
{
	static const char *const names[] = {
		[MOUNT_SERVES] = "serves", [MOUNT_DEAD] = "dead", [MOUNT_SILENT] = "silent", [MOUNT_CLOSED] = "closed"};
	return names[state];
}

double doctor_number(const struct doctor *d, const char *name)
{
	return json_number_or(json_member(d->stats, name), -1);
}

/* What follows a noun of which a count of the document says how many there are. */
static const char *s_of(double nr)
{
	return plural(nr == 1 ? 1 : 2);
}

/* what and run are from now on ours. */
static void advise(struct doctor *d, char *what, char *run)
{
	d->advice = xrealloc(d->advice, d->nr_advice + 1, sizeof(*d->advice));
	d->advice[d->nr_advice++] = (struct advice){what, run};
}

/* A path as one word of a command line. The caller frees it. */
static char *quoted(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+,:=@%-";
	char *word, *out;
	if (*path && *path != '-' && strspn(path, plain) == strlen(path))
		return xstrdup(path);
	out = word = xcalloc(4 * strlen(path) + 3, 1);
	*out++ = '\'';
	for (; *path; path++) {
		const char *piece = *path == '\'' ? "'\\''" : (const char[]){*path, '\0'};
		memcpy(out, piece, strlen(piece));
		out += strlen(piece);
	}
	*out = '\'';
	return word;
}

/* ---- a mount that serves --------------------------------------------------------------------------------------- */

/* before and one or more, which stand for a single one and for others, are around the number that is in force. */
static void check_setting(struct doctor *d, const char *name, const char *path, const char *before, const char *one,
			  const char *more)
{
	char *wanted_name = xasprintf("%s_wanted", name);
	double now = doctor_number(d, name), wanted = doctor_number(d, wanted_name);
	if (now >= 0 && now < wanted)
		advise(d,
		       xasprintf("%s %.0f %s, and %.0f %s wanted", before, now, now == 1 ? one : more, wanted,
				 wanted == 1 ? "is" : "are"),
		       xasprintf("as root: echo %.0f > %s", wanted, path));
	free(wanted_name);
}

static void check_kernel(struct doctor *d)
{
	char *ahead = xasprintf("/sys/class/bdi/%u:%u/read_ahead_kb", d->mount->major_nr, d->mount->minor_nr);
	char *control = xasprintf("/sys/fs/fuse/connections/%u", d->mount->minor_nr);
	char *background = xasprintf("%s/max_background", control);
	char *congestion = xasprintf("%s/congestion_threshold", control);
	double now = doctor_number(d, "read_ahead_kb");
	check_setting(d, "read_ahead_kb", ahead, "requests are small and few: the kernel reads ahead", "KiB", "KiB");
	if (doctor_number(d, "read_ahead_kb_wanted") == 0 && now > 0 && now < LEAST_READ_AHEAD_KB)
		advise(d,
		       xasprintf("requests are small and few: the kernel reads ahead %.0f KiB, and the mount was made "
				 "with "
				 "read_ahead_kb=0",
				 now),
		       xasprintf("as root: echo %d > %s", GOOD_READ_AHEAD_KB, ahead));
	check_setting(d, "max_background", background, "the kernel sends", "request at once", "requests at once");
	check_setting(d, "congestion_threshold", congestion, "the kernel reads ahead no further when", "request is out",
		      "requests are out");
	free(ahead);
	free(control);
	free(background);
	free(congestion);
}

static void check_request_size(struct doctor *d)
{
	double pages = doctor_number(d, "max_pages"), page_bytes = (double)sysconf(_SC_PAGESIZE);
	if (pages < 0 || pages * page_bytes >= LARGEST_READ)
		return;
	char *what = xasprintf("requests are of at most %.0f KiB, and 1024 are wanted", pages * page_bytes / 1024);
	if (access("/proc/sys/fs/fuse/max_pages_limit", F_OK) == 0)
		advise(d, what,
		       xasprintf("as root: sysctl -w fs.fuse.max_pages_limit=%.0f, and mount again",
				 LARGEST_READ / page_bytes));
	else
		advise(d, what, xstrdup("update the kernel: Linux 4.20 is the first with larger ones"));
}

static void check_decoder(struct doctor *d)
{
	char *cpu = json_text(json_member(d->stats, "cpu")), *best = json_text(json_member(d->stats, "cpu_best"));
	double threads = doctor_number(d, "threads"), processors = doctor_number(d, "processors");
	if (*best && strcmp(cpu, best) != 0)
		advise(d, xasprintf("it decodes with %s, and this machine can run %s", cpu, best),
		       xstrdup("mount again without -o cpu=, or with -o cpu=auto"));
	if (threads >= 0 && threads < processors)
		advise(d,
		       xasprintf("%.0f thread%s decode%s, and there are %.0f processors", threads, s_of(threads),
				 threads == 1 ? "s" : "", processors),
		       xasprintf("mount again with -o threads=%.0f", processors));
	free(cpu);
	free(best);
}

/* Without huge pages each MiB of a reply is 256 page faults and as many entries of the TLB. */
static void check_huge_pages(struct doctor *d)
{
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	char text[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (pread_full(fd, text, sizeof(text) - 1, 0) > 0 && strstr(text, "[never]"))
		advise(d, xstrdup("the kernel gives no huge pages, in which the daemon's memory would be faster"),
		       xasprintf("as root: echo madvise > %s, and mount again", path));
	close(fd);
}

/* "cache=512M": twice what it is. The caller frees it. */
static char *larger_cache(const struct doctor *d)
{
	return xasprintf("mount again with -o cache=%.0fM", 2 * doctor_number(d, "cache_cap_bytes") / (1 << 20));
}

static void check_cache(struct doctor *d)
{
	double cap = doctor_number(d, "cache_cap_bytes"), used = doctor_number(d, "cache_bytes");
	double decoded = doctor_number(d, "bytes_decoded");
	double served = doctor_number(d, "bytes_served") - doctor_number(d, "plain_bytes");
	double ahead = doctor_number(d, "ahead_blocks"), wasted = doctor_number(d, "ahead_wasted");
	if (cap <= 0)
		return;
	if (doctor_number(d, "cache_overflow_bytes") > 0)
		advise(d, xstrdup("the requests at work need more memory than the cache may take"), larger_cache(d));
	else if (ahead >= MIN_AHEAD_BLOCKS && wasted * 100 > ahead * WASTE_PERCENT)
		advise(d,
		       xasprintf("%.0f of %.0f blocks decoded ahead were dropped before anybody read them", wasted,
				 ahead),
		       larger_cache(d));
	/* Full of blocks that small reads may come back to, and far more decoded than was read: they do come back. */
	else if (used > 0.9 * cap && decoded > 4 * cap && decoded > 2 * served)
		advise(d,
		       xasprintf("small reads have blocks decoded again and again: %.0f MB for the %.0f MB that were "
				 "read, with a full cache",
				 decoded / 1e6, served / 1e6),
		       larger_cache(d));
}

static void check_trouble(struct doctor *d)
{
	char *store = json_text(json_member(d->stats, "store")), *word = quoted(store);
	double blocks = doctor_number(d, "bad_blocks"), files = doctor_number(d, "bad_files");
	double timeouts = doctor_number(d, "timeouts");
	if (blocks > 0 || files > 0)
		advise(d,
		       xasprintf("damage was found: %.0f block%s, and %.0f file%s as a whole, cannot be read", blocks,
				 s_of(blocks), files, s_of(files)),
		       xasprintf("weightfs verify %s", word));
	if (timeouts > 0)
		advise(d,
		       xasprintf("%.0f request%s failed because the store did not answer in time", timeouts,
				 s_of(timeouts)),
		       xstrdup("look after the disk or the server of the store; where it is only slow, mount again "
			       "with a "
			       "larger -o io_timeout="));
	free(store);
	free(word);
}

static void check_version(struct doctor *d)
{
	char *version = json_text(json_member(d->stats, "version"));
	if (strcmp(version, wfs_version()) != 0)
		advise(d, xasprintf("the daemon is weightfs %s, and %s is installed", version, wfs_version()),
		       xstrdup("mount again"));
	free(version);
}

/* ---- a mount that does not ------------------------------------------------------------------------------------- */

static void advise_dead(struct doctor *d, const char *point)
{
	advise(d, xstrdup("its daemon is gone: every access fails"),
	       xasprintf("weightfs mount STORE %s, which takes the dead mount away; or weightfs umount %s", point,
			 point));
}

/* The daemon's words name the process, where it is known. */
static void advise_silent(struct doctor *d, const char *point)
{
	const char *named = strstr(d->reason, "process ");
	long pid = named ? strtol(named + strlen("process "), NULL, 10) : 0;
	advise(d, xstrdup("its daemon does not answer: it is stopped or hangs"),
	       pid > 0 ? xasprintf("kill -CONT %ld, or kill -KILL %ld and mount again", pid, pid)
		       : xasprintf("weightfs umount --lazy %s, and mount again", point));
}

static void advise_closed(struct doctor *d, const char *point)
{
	if (geteuid())
		advise(d, xstrdup("only the user who mounted it and root may ask its daemon"),
		       xasprintf("sudo weightfs doctor %s", point));
	else
		advise(d, xasprintf("its daemon tells nothing of itself: %s", d->reason), xstrdup("mount again"));
}

static void find_state(struct doctor *d, const char *point)
{
	int answer = mounted_ask(d->mount);
	if (answer == ENOTCONN || answer == ECONNABORTED) {
		d->state = MOUNT_DEAD;
		advise_dead(d, point);
	} else if (answer == ETIMEDOUT) {
		d->state = MOUNT_SILENT;
		advise_silent(d, point);
	} else {
		d->state = MOUNT_CLOSED;
		advise_closed(d, point);
	}
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

/* "weightfsd: MNT: what is the matter\n": what is the matter. */
static void keep_reason(struct doctor *d, const char *said)
{
	const char *colon = strstr(said, d->mount->point);
	if (colon && !strncmp(colon + strlen(d->mount->point), ": ", 2))
		said = colon + strlen(d->mount->point) + 2;
	d->reason = xasprintf("%.*s", (int)strcspn(said, "\n"), said);
}

void doctor_examine(struct doctor *d, const struct mounted *mount)
{
	static void (*const checks[])(struct doctor *) = {check_kernel,	    check_request_size, check_decoder,
							  check_huge_pages, check_cache,	check_trouble,
							  check_version};
	const char *argv[] = {NULL, "--stats", "--json", "--", mount->point, NULL};
	char *said, *point = quoted(mount->point);
	*d = (struct doctor){.mount = mount};
	int status = run_daemon(argv, &d->stats, &said);
	if (status || !json_valid(d->stats)) {
		free(d->stats);
		d->stats = NULL;
		keep_reason(d, status ? said : "its answer makes no sense to this version");
		find_state(d, point);
	}
	for (unsigned i = 0; d->stats && i < ARRAY_LEN(checks); i++)
		checks[i](d);
	free(said);
	free(point);
}

void doctor_free(struct doctor *d)
{
	for (size_t i = 0; i < d->nr_advice; i++) {
		free(d->advice[i].what);
		free(d->advice[i].run);
	}
	free(d->advice);
	free(d->stats);
	free(d->reason);
}
