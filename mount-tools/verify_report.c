/* verify_report.c - see verify_report.h. */
#include "verify_report.h"

#include <stdio.h>
#include <stdlib.h>

/* Of lost ranges and of tensors, for each container. */
enum { MAX_LINES = 16, MAX_JSON = 1000 };

static bool failed(enum verdict verdict)
{
	return verdict != VERDICT_OK && verdict != VERDICT_REPAIRED;
}

void verify_report_begin(struct verify_report *r)
{
	pthread_mutex_init(&r->lock, NULL);
	r->started = seconds_now();
	if (!r->json)
		return;
	json_init(&r->out, stdout);
	json_object(&r->out, NULL);
	json_string(&r->out, "command", r->command);
	json_string(&r->out, "version", wfs_version());
	json_bool(&r->out, "fast", r->fast);
	json_bool(&r->out, "repair", r->repair);
	json_array(&r->out, "files");
}

static void print_json(struct json *j, const char *shown, const struct verify_result *result)
{
	json_object(j, NULL);
	json_string(j, "path", shown);
	json_string(j, "status", verdict_name(result->verdict));
	json_uint(j, "stored_bytes", result->stored_bytes);
	if (result->head_known) {
		json_uint(j, "raw_bytes", result->head.raw_len);
		json_hex(j, "sha256", result->head.sha256, SHA256_BYTES);
	}
	if (result->reason[0])
		json_string(j, "reason", result->reason);
	if (result->lost.nr_bad_blocks)
		lost_print_json(&result->lost, j, MAX_JSON);
	json_end(j);
}

static void print_lines(struct verify_report *r, const char *shown, const struct verify_result *result)
{
	if (failed(result->verdict))
		lost_print_lines(&result->lost, MAX_LINES);
	else if (result->verdict == VERDICT_REPAIRED)
		out_line("%s: repaired: %s", shown, result->reason);
	else if (!r->quiet)
		out_line("%s: ok", shown);
}

void verify_report_add(struct verify_report *r, const char *shown, const struct verify_result *result)
{
	pthread_mutex_lock(&r->lock);
	r->nr[result->verdict]++;
	if (result->head_known)
		r->raw_bytes += MIN(result->head.raw_len, UINT64_MAX - r->raw_bytes);
	r->stored_bytes += result->stored_bytes;
	if (failed(result->verdict) || !r->json)
		progress_clear(r->progress);
	if (result->verdict == VERDICT_ERROR || result->verdict == VERDICT_NONE)
		msg("%s: %s", shown, result->reason);
	else if (failed(result->verdict))
		msg("%s: %s: %s", shown, verdict_name(result->verdict), result->reason);
	if (r->json)
		print_json(&r->out, shown, result);
	else
		print_lines(r, shown, result);
	pthread_mutex_unlock(&r->lock);
}

void verify_report_note(struct verify_report *r, const char *shown, const char *what)
{
	if (r->json || r->quiet)
		return;
	pthread_mutex_lock(&r->lock);
	progress_clear(r->progress);
	out_line("%s: %s", shown, what);
	pthread_mutex_unlock(&r->lock);
}

void verify_report_ordinary(struct verify_report *r, const char *shown)
{
	verify_report_note(r, shown, "is not a weightfs container");
	if (!r->json)
		return;
	pthread_mutex_lock(&r->lock);
	r->ordinary = xrealloc(r->ordinary, r->nr_ordinary + 1, sizeof(*r->ordinary));
	r->ordinary[r->nr_ordinary++] = xstrdup(shown);
	pthread_mutex_unlock(&r->lock);
}

static void end_json(struct verify_report *r, uint64_t nr_left, double seconds)
{
	struct json *j = &r->out;
	json_end(j);
	json_array(j, "ordinary_files");
	for (size_t i = 0; i < r->nr_ordinary; i++) {
		json_string(j, NULL, r->ordinary[i]);
		free(r->ordinary[i]);
	}
	free(r->ordinary);
	json_end(j);
	json_object(j, "totals");
	for (enum verdict i = VERDICT_OK; i < VERDICT_NONE; i++)
		json_uint(j, verdict_name(i), r->nr[i]);
	json_uint(j, "not_containers", r->nr[VERDICT_NONE]);
	json_uint(j, "left", nr_left);
	json_uint(j, "raw_bytes", r->raw_bytes);
	json_uint(j, "stored_bytes", r->stored_bytes);
	json_real(j, "seconds", seconds, 3);
	json_end(j);
	json_end(j);
}

static void end_lines(const struct verify_report *r, uint64_t nr_left, uint64_t nr_bad, double seconds)
{
	char raw[SIZE_TEXT_BYTES], stored[SIZE_TEXT_BYTES], rate[RATE_TEXT_BYTES], more[64] = "";
	uint64_t whole = r->nr[VERDICT_OK] + r->nr[VERDICT_REPAIRED], all = whole + nr_bad;
	if (nr_left)
		snprintf(more, sizeof(more), "; %llu left for the next run", (unsigned long long)nr_left);
	printf("%llu of %llu container%s %s whole (%s, stored as %s), %.1f s%s%s\n", (unsigned long long)whole,
	       (unsigned long long)all, plural(all), is_or_are(all), size_text(raw, r->raw_bytes),
	       size_text(stored, r->stored_bytes), seconds, rate_text(rate, nr_bad ? 0 : r->raw_bytes, seconds), more);
}

bool verify_report_end(struct verify_report *r, uint64_t nr_left)
{
	double seconds = seconds_now() - r->started;
	uint64_t nr_bad = 0;
	for (enum verdict i = VERDICT_OK; i < NR_VERDICTS; i++)
		nr_bad += failed(i) ? r->nr[i] : 0;
	if (r->json)
		end_json(r, nr_left, seconds);
	else if (!r->quiet)
		end_lines(r, nr_left, nr_bad, seconds);
	pthread_mutex_destroy(&r->lock);
	return !nr_bad;
}

bool verify_report_is_empty(const struct verify_report *r)
{
	for (enum verdict i = VERDICT_OK; i < NR_VERDICTS; i++)
		if (r->nr[i])
			return false;
	return true;
}
