/* verify_file.c - prove one container, say exactly what is wrong with a damaged one, and heal what can be healed. */
#include "verify_file.h"
#include "page_cache.h"
#include "spares.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[NR_VERDICTS] = {"ok",	      "repaired", "degraded", "damaged",
						       "unsupported", "error",	  "none"};
	return names[verdict];
}

static enum verdict verdict_of(enum wfs_status status)
{
	switch (status) {
	case WFS_BAD_DATA:
	case WFS_BAD_CHECKSUM:
		return VERDICT_DAMAGED;
	case WFS_UNSUPPORTED:
		return VERDICT_UNSUPPORTED;
	case WFS_NOT_CONTAINER:
		return VERDICT_NONE;
	default:
		return VERDICT_ERROR;
	}
}

/* reader NULL: the container fd cannot be opened. */
static void set_failure(struct verify_result *r, int fd, const struct wfs_reader *reader, const struct wfs_error *err)
{
	char reason[REASON_BYTES], advice[ADVICE_BYTES];
	wfs_reason(reason, reader, err);
	r->verdict = verdict_of(err->status);
	snprintf(r->reason, sizeof(r->reason), "%s%s", reason, reader ? "" : damage_advice(fd, NULL, err, advice));
}

/* A reader takes the first good copy; whether the spare ones are good it does not look at. */
static void check_spares(int dir_fd, const char *name, int fd, const struct stat *st, const struct wfs_info *info,
			 const struct verify_opts *opts, struct verify_result *r)
{
	char text[SPARES_TEXT_BYTES];
	const char *why = NULL;
	struct wfs_error err;
	struct spares spares;
	bool several;
	if (spares_check(fd, info, &spares, &err) != WFS_OK) {
		wfs_reason(r->reason, NULL, &err);
		r->verdict = VERDICT_ERROR;
		spares_free(&spares);
		return;
	}
	several = spares.nr_damaged > 1;
	spares_text(&spares, text);
	if (spares.nr_damaged)
		r->verdict = VERDICT_DEGRADED;
	if (spares.nr_damaged && !opts->repair) {
		snprintf(r->reason, sizeof(r->reason),
			 "%s %s damaged; every byte of the original is right: weightfs verify --repair writes a copy "
			 "anew",
			 text, several ? "are" : "is");
	} else if (spares.nr_damaged && (why = spares_repair(dir_fd, name, fd, st, &spares, info))) {
		snprintf(r->reason, sizeof(r->reason), "%s %s damaged and cannot be written anew: %s", text,
			 several ? "are" : "is", why);
	} else if (spares.nr_damaged) {
		r->verdict = VERDICT_REPAIRED;
		snprintf(r->reason, sizeof(r->reason), "%s %s written anew", text, several ? "were" : "was");
	}
	spares_free(&spares);
}

/* How many blocks are lost, after what is wrong with the first. */
static void say_lost(struct verify_result *r)
{
	size_t len = strlen(r->reason);
	char more[80] = "";
	if (r->lost.nr_bad_blocks > 1)
		snprintf(more, sizeof(more), "; %llu of %llu blocks are damaged",
			 (unsigned long long)r->lost.nr_bad_blocks, (unsigned long long)r->lost.nr_blocks);
	snprintf(r->reason + len, sizeof(r->reason) - len,
		 "%s; restore it from elsewhere, or save the rest with weightfs unpack --keep-going", more);
}

/* ---- the content ----------------------------------------------------------------------------------------------- */

struct pass {
	const struct wfs_reader *reader;
	const struct wfs_head *head;
	const struct verify_opts *opts;
	struct page_cache *cache; /* NULL: nobody minds */
	pthread_mutex_t lock;	  /* of what follows, where blocks are looked at side by side */
	uint64_t raw_told, comp_told;
	bool given_up;
};

/* Whether there is time left; once there is none, it is given up. */
static bool goes_on(struct pass *p)
{
	p->given_up |= p->opts->give_up_at > 0 && seconds_now() >= p->opts->give_up_at;
	return !p->given_up;
}

/* Returns whether to go on. */
static bool tell(struct pass *p, uint64_t raw_done, uint64_t comp_done)
{
	if (raw_done > p->raw_told) {
		progress_add(p->opts->progress, raw_done - p->raw_told);
		p->raw_told = raw_done;
	}
	/* Behind a copy of earlier bytes the place goes back. */
	if (comp_done > p->comp_told) {
		throttle_take(p->opts->throttle, comp_done - p->comp_told);
		p->comp_told = comp_done;
		page_cache_drop(p->cache, p->head->payload_off + comp_done);
	}
	return goes_on(p);
}

static int on_progress(void *ctx, uint64_t raw_done, uint64_t comp_done)
{
	return !tell(ctx, raw_done, comp_done);
}

/* What was read is dropped from the cache a little early or late, as blocks come in any order: in the end all of it. */
static bool on_block(void *ctx, const struct wfs_block *block, const void *raw)
{
	struct pass *p = ctx;
	bool go_on;
	(void)raw;
	pthread_mutex_lock(&p->lock);
	go_on = tell(p, p->raw_told + block->raw_len, p->comp_told + block->comp_len);
	pthread_mutex_unlock(&p->lock);
	return go_on;
}

/* The second pass, over a damaged container: it was told to the progress before, but is no faster nor longer for it. */
static bool on_block_again(void *ctx, const struct wfs_block *block, const void *raw)
{
	struct pass *p = ctx;
	bool go_on;
	(void)raw;
	throttle_take(p->opts->throttle, block->comp_len);
	pthread_mutex_lock(&p->lock);
	go_on = goes_on(p);
	pthread_mutex_unlock(&p->lock);
	return go_on;
}

static void check_name(const char *name, struct verify_result *r)
{
	uint8_t named[SHA256_BYTES];
	char original[NAME_MAX + 1];
	if (!container_name(name, original) || !sha256_from_name(original, named) ||
	    !memcmp(named, r->head.sha256, SHA256_BYTES))
		return;
	r->verdict = VERDICT_DAMAGED;
	snprintf(r->reason, sizeof(r->reason), "its name is a SHA-256, but not that of its content");
}

/* Every block once. Constants and copies need no look, so this takes as long as the file is large, whatever it claims.
 */
static void check_blocks(struct pass *p, struct verify_result *r)
{
	lost_find(&r->lost, p->reader, p->opts->nr_threads, on_block, p);
	if (p->given_up || !r->lost.nr_bad_blocks) {
		lost_free(&r->lost);
		return;
	}
	set_failure(r, -1, p->reader, &r->lost.err);
	say_lost(r);
}

static void check_all(struct pass *p, struct verify_result *r)
{
	struct wfs_error err = {0};
	if (wfs_reader_verify(p->reader, p->opts->nr_threads, on_progress, p, &err) == WFS_OK || p->given_up)
		return;
	set_failure(r, -1, p->reader, &err);
	if (err.block == WFS_NO_BLOCK)
		return;
	lost_find(&r->lost, p->reader, p->opts->nr_threads, on_block_again, p);
	/* That it is damaged is known; what else is lost, the next verify tells. */
	if (p->given_up)
		lost_free(&r->lost);
	p->given_up = false;
	say_lost(r);
}

/* A few bytes can claim to be exabytes of one value: their SHA-256 would take centuries. */
static bool claims_too_much(const struct verify_result *r)
{
	static const uint64_t always_proved = (uint64_t)1 << 40, max_ratio = 1 << 16;
	return r->head.raw_len > always_proved && r->head.raw_len / max_ratio > r->stored_bytes;
}

static void check_content(struct pass *p, struct verify_result *r)
{
	if (p->opts->fast) {
		check_blocks(p, r);
	} else if (claims_too_much(r)) {
		r->verdict = VERDICT_ERROR;
		snprintf(r->reason, sizeof(r->reason),
			 "claims to hold %llu bytes, more than can be proved in reasonable time: use --fast",
			 (unsigned long long)r->head.raw_len);
	} else {
		check_all(p, r);
	}
	if (p->given_up) {
		r->verdict = VERDICT_ERROR;
		snprintf(r->reason, sizeof(r->reason),
			 "was not finished within ten times --max-seconds: run weightfs verify on it");
	}
	progress_add(p->opts->progress, r->head.raw_len - MIN(p->raw_told, r->head.raw_len));
}

void verify_container(int dir_fd, const char *name, int fd, const struct verify_opts *opts,
		      struct verify_result *result)
{
	const struct wfs_reader_opts reader_opts = {.cpu = opts->cpu};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	struct wfs_info info;
	struct pass pass;
	struct stat st;
	memset(result, 0, sizeof(*result));
	if (fstat(fd, &st)) {
		result->verdict = VERDICT_ERROR;
		snprintf(result->reason, sizeof(result->reason), "cannot stat: %s", strerror(errno));
		return;
	}
	result->stored_bytes = (uint64_t)st.st_size;
	pass = (struct pass){.opts = opts, .lock = PTHREAD_MUTEX_INITIALIZER};
	result->head_known = named_head_read(name, fd, &result->head, &err) == WFS_OK;
	if (!result->head_known || wfs_reader_open(fd, &reader_opts, &reader, &err) != WFS_OK) {
		set_failure(result, fd, NULL, &err);
		goto out;
	}
	wfs_reader_info(reader, &info);
	result->head = info.head;
	/* Only now is the size known to be true: a hole of exabytes has pages, too. */
	pass.cache = opts->throttle ? page_cache_remember(fd) : NULL;
	pass.reader = reader;
	pass.head = &info.head;
	check_content(&pass, result);
	if (result->verdict == VERDICT_OK)
		check_name(name, result);
	if (result->verdict == VERDICT_OK)
		check_spares(dir_fd, name, fd, &st, &info, opts, result);
out:
	page_cache_free(pass.cache);
	wfs_reader_free(reader);
}

void verify_result_free(struct verify_result *result)
{
	lost_free(&result->lost);
}
