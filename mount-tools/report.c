/* report.c - what pack and unpack did with each file. */
#include "report.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct report {
	struct report_opts opts;
	struct progress *progress;
	double started;
	pthread_mutex_t lock;
	/* protected by lock */
	struct json json;
	uint64_t nr[NR_ACTIONS], raw_bytes[NR_ACTIONS], stored_bytes[NR_ACTIONS];
	uint64_t nr_directories, nr_symlinks;
};

struct report *report_new(const struct report_opts *opts)
{
	struct report *r = xcalloc(1, sizeof(*r));
	r->opts = *opts;
	r->started = seconds_now();
	pthread_mutex_init(&r->lock, NULL);
	if (!opts->json)
		return r;
	json_init(&r->json, stdout);
	json_object(&r->json, NULL);
	json_string(&r->json, "command", opts->command);
	json_string(&r->json, "version", wfs_version());
	json_string(&r->json, "source", opts->source);
	json_string(&r->json, "destination", opts->destination);
	json_bool(&r->json, "in_place", !opts->destination);
	json_bool(&r->json, "dry_run", opts->dry_run);
	json_array(&r->json, "files");
	return r;
}

void report_set_progress(struct report *r, struct progress *p)
{
	r->progress = p;
}

static const char *action_name(const struct report *r, enum action action)
{
	switch (action) {
	case ACTION_CONVERTED:
		return r->opts.converted;
	case ACTION_COPIED:
		return "copied";
	case ACTION_LINKED:
		return "linked";
	case ACTION_PRESENT:
		return "present";
	case ACTION_KEPT:
		return "kept";
	case ACTION_IGNORED:
		return "ignored";
	default:
		return "failed";
	}
}

static void add_json(struct report *r, const char *path, const struct outcome *out)
{
	struct json *j = &r->json;
	json_object(j, NULL);
	json_string(j, "path", path);
	json_string(j, "action", action_name(r, out->action));
	if (out->action != ACTION_FAILED && out->action != ACTION_IGNORED) {
		json_uint(j, "raw_bytes", out->raw_bytes);
		json_uint(j, "stored_bytes", out->stored_bytes);
	}
	if (out->has_sha256)
		json_hex(j, "sha256", out->sha256, SHA256_BYTES);
	if (out->note[0])
		json_string(j, out->action == ACTION_FAILED ? "error" : "note", out->note);
	json_end(j);
}

/* "45.4 MB -> 30.0 MB, 34.02 % saved", and the other way round when originals are restored. buf holds the result. */
enum { CHANGE_TEXT_BYTES = 2 * SIZE_TEXT_BYTES + SAVED_TEXT_BYTES + 8 };
static const char *change_text(char buf[CHANGE_TEXT_BYTES], const struct report *r, uint64_t raw_bytes,
			       uint64_t stored_bytes)
{
	char raw[SIZE_TEXT_BYTES], stored[SIZE_TEXT_BYTES], saved[SAVED_TEXT_BYTES];
	size_text(raw, raw_bytes);
	size_text(stored, stored_bytes);
	if (r->opts.restores)
		snprintf(buf, CHANGE_TEXT_BYTES, "%s -> %s", stored, raw);
	else
		snprintf(buf, CHANGE_TEXT_BYTES, "%s -> %s, %s", raw, stored,
			 saved_text(saved, raw_bytes, stored_bytes, 2));
	return buf;
}

static void add_line(const struct report *r, const char *path, const struct outcome *out)
{
	char change[CHANGE_TEXT_BYTES];
	if (r->opts.quiet)
		return;
	if (out->action == ACTION_CONVERTED)
		out_line("%s: %s%s", path, change_text(change, r, out->raw_bytes, out->stored_bytes),
			 r->opts.dry_run ? " (estimate)" : "");
	else if (r->opts.verbose && out->action != ACTION_FAILED)
		out_line("%s: %s", path, action_name(r, out->action));
}

void report_add(struct report *r, const char *path, const struct outcome *out)
{
	pthread_mutex_lock(&r->lock);
	r->nr[out->action]++;
	r->raw_bytes[out->action] += out->again ? 0 : out->raw_bytes;
	r->stored_bytes[out->action] += out->again ? 0 : out->stored_bytes;
	if (out->note[0] || !r->opts.json)
		progress_clear(r->progress);
	if (out->note[0])
		msg("%s: %s", path, out->note);
	if (r->opts.json)
		add_json(r, path, out);
	else
		add_line(r, path, out);
	pthread_mutex_unlock(&r->lock);
}

void report_failure(struct report *r, const char *path, const char *fmt, ...)
{
	struct outcome out = {.action = ACTION_FAILED};
	va_list args;
	va_start(args, fmt);
	vsnprintf(out.note, sizeof(out.note), fmt, args);
	va_end(args);
	report_add(r, *path ? path : ".", &out);
}

void report_notice(struct report *r, const char *path, const char *fmt, ...)
{
	char text[NOTE_BYTES];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	pthread_mutex_lock(&r->lock);
	progress_clear(r->progress);
	msg("%s: %s", path, text);
	pthread_mutex_unlock(&r->lock);
}

void report_other(struct report *r, bool directory)
{
	pthread_mutex_lock(&r->lock);
	if (directory)
		r->nr_directories++;
	else
		r->nr_symlinks++;
	pthread_mutex_unlock(&r->lock);
}

/* Bytes of the files that are in the result, hard links counted once. */
static void sums(const struct report *r, uint64_t *raw_ret, uint64_t *stored_ret)
{
	static const enum action counted[] = {ACTION_CONVERTED, ACTION_COPIED, ACTION_PRESENT, ACTION_KEPT};
	*raw_ret = *stored_ret = 0;
	for (unsigned i = 0; i < ARRAY_LEN(counted); i++) {
		*raw_ret += r->raw_bytes[counted[i]];
		*stored_ret += r->stored_bytes[counted[i]];
	}
}

static void end_json(struct report *r, const char *stopped, double seconds)
{
	struct json *j = &r->json;
	uint64_t raw, stored;
	sums(r, &raw, &stored);
	json_end(j);
	json_object(j, "totals");
	for (enum action a = ACTION_CONVERTED; a < NR_ACTIONS; a++)
		json_uint(j, action_name(r, a), r->nr[a]);
	json_uint(j, "directories", r->nr_directories);
	json_uint(j, "symlinks", r->nr_symlinks);
	json_uint(j, "raw_bytes", raw);
	json_uint(j, "stored_bytes", stored);
	json_real(j, "saved_percent", saved_percent(raw, stored), 4);
	json_real(j, "seconds", seconds, 3);
	json_end(j);
	json_string(j, "stopped", stopped);
	json_end(j);
}

/* Bytes of the files that this run has gone through, if it did all that it should. */
static uint64_t worked_on(const struct report *r, const char *stopped)
{
	if (r->opts.dry_run || stopped || r->nr[ACTION_FAILED])
		return 0;
	return r->raw_bytes[ACTION_CONVERTED] + r->raw_bytes[ACTION_COPIED] + r->raw_bytes[ACTION_PRESENT];
}

static void end_lines(const struct report *r, const char *stopped, double seconds)
{
	static const enum action listed[] = {ACTION_COPIED, ACTION_LINKED,  ACTION_PRESENT,
					     ACTION_KEPT,   ACTION_IGNORED, ACTION_FAILED};
	char change[CHANGE_TEXT_BYTES], rate[RATE_TEXT_BYTES];
	uint64_t raw, stored;
	sums(r, &raw, &stored);
	printf("%llu %s", (unsigned long long)r->nr[ACTION_CONVERTED],
	       r->opts.dry_run ? "would be packed" : r->opts.converted);
	for (unsigned i = 0; i < ARRAY_LEN(listed); i++)
		if (r->nr[listed[i]])
			printf(", %llu %s", (unsigned long long)r->nr[listed[i]], action_name(r, listed[i]));
	printf(": %s, %.1f s%s\n", change_text(change, r, raw, stored), seconds,
	       rate_text(rate, worked_on(r, stopped), seconds));
}

bool report_end(struct report *r, const char *stopped)
{
	double seconds = seconds_now() - r->started;
	progress_clear(r->progress);
	if (r->opts.json)
		end_json(r, stopped, seconds);
	else if (!r->opts.quiet)
		end_lines(r, stopped, seconds);
	if (stopped)
		msg("%s: stopped: %s", r->opts.command, stopped);
	return !r->nr[ACTION_FAILED] && !stopped;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r);
}
