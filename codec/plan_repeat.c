/* plan_repeat.c - stretches that repeat 8 bytes, and tensors that repeat an earlier one.
 *
 * Both are found by reading a few bytes first; what looks alike is then compared in full.
 */
#include "checksum.h"
#include "plan.h"

#include <stdlib.h>

enum {
	STEP = 1 << 20,	   /* a constant stretch is looked for in steps of this */
	PROBE = 64,	   /* bytes of a probe */
	NR_SAMPLES = 4,	   /* probes of a tensor */
	MAX_ORIGINALS = 4, /* tensors of one fingerprint that later ones are compared with: bounds hostile files */
	MAX_CUTS = 1 << 18,
};

/* ---- copies ---- */

struct candidate {
	u64 len, fingerprint;
	size_t span;
};

static int candidate_compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	if (x->fingerprint != y->fingerprint)
		return x->fingerprint < y->fingerprint ? -1 : 1;
	return (x->span > y->span) - (x->span < y->span); /* in file order: the original is the first */
}

/* Probes spread over the tensor; *constant_ret: they all repeat the same 8 bytes (the other search is cheaper then). */
static enum wfs_status sample(const struct wfs_source *source, const struct wfs_span *s, u64 *fingerprint_ret,
			      bool *constant_ret, struct wfs_error *err)
{
	u64 step = (s->len - PROBE) / (NR_SAMPLES - 1) / PROBE * PROBE;
	u8 probe[NR_SAMPLES * PROBE];

	for (u64 i = 0; i < NR_SAMPLES; i++) {
		enum wfs_status status = wfs_source_read(source, probe + i * PROBE, PROBE, s->off + i * step, err);

		if (status != WFS_OK)
			return status;
	}
	*fingerprint_ret = wfs_hash64(WFS_CPU_SCALAR, probe, sizeof(probe));
	*constant_ret = wfs_is_constant(probe, sizeof(probe));
	return WFS_OK;
}

static enum wfs_status same_bytes(const struct wfs_source *source, u64 a, u64 b, u64 len, u8 *buf, bool *same_ret,
				  struct wfs_error *err)
{
	enum wfs_status status = WFS_OK;
	u64 part;

	*same_ret = true;
	for (u64 done = 0; done < len && *same_ret && status == WFS_OK; done += part) {
		part = WFS_MIN(len - done, (u64)STEP);
		status = wfs_source_go_on(source, err);
		if (status == WFS_OK)
			status = wfs_source_read(source, buf, (size_t)part, a + done, err);
		if (status == WFS_OK)
			status = wfs_source_read(source, buf + STEP, (size_t)part, b + done, err);
		*same_ret = status == WFS_OK && !memcmp(buf, buf + STEP, (size_t)part);
	}
	return status;
}

/* Candidates of one length and fingerprint. */
static enum wfs_status copies_of_group(const struct wfs_source *source, struct wfs_spans *spans,
				       const struct candidate *c, size_t nr, u8 *buf, struct wfs_error *err)
{
	size_t original[MAX_ORIGINALS], nr_originals = 0;

	for (size_t i = 0; i < nr; i++) {
		struct wfs_span *s = &spans->span[c[i].span];
		bool same = false;

		for (size_t k = 0; k < nr_originals && !same; k++) {
			u64 from = spans->span[original[k]].off;
			enum wfs_status status = same_bytes(source, from, s->off, s->len, buf, &same, err);

			if (status != WFS_OK)
				return status;
			if (same)
				*s = (struct wfs_span){
					.off = s->off, .len = s->len, .arg = from, .kind = WFS_REGION_COPY};
		}
		if (!same && nr_originals < MAX_ORIGINALS)
			original[nr_originals++] = c[i].span;
	}
	return WFS_OK;
}

/* Whole tensors whose length is not unique, sampled; *nr_ret of them stay in c. */
static enum wfs_status sample_all(const struct wfs_source *source, const struct wfs_spans *spans, struct candidate *c,
				  size_t *nr_ret, struct wfs_error *err)
{
	size_t nr = 0, out = 0;

	for (size_t i = 0; i < spans->nr; i++)
		if (spans->span[i].tensor && spans->span[i].len >= WFS_MIN_REPEAT)
			c[nr++] = (struct candidate){spans->span[i].len, 0, i};
	qsort(c, nr, sizeof(*c), candidate_compare);
	for (size_t i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr && c[end].len == c[i].len; end++)
			;
		for (size_t k = i; k < end && end - i > 1; k++) {
			struct candidate one = c[k];
			bool constant;
			enum wfs_status status =
				sample(source, &spans->span[one.span], &one.fingerprint, &constant, err);

			if (status != WFS_OK)
				return status;
			if (!constant)
				c[out++] = one; /* out <= k */
		}
	}
	qsort(c, out, sizeof(*c), candidate_compare);
	*nr_ret = out;
	return WFS_OK;
}

enum wfs_status wfs_spans_find_copies(const struct wfs_source *source, struct wfs_spans *spans, struct wfs_error *err)
{
	struct candidate *c = malloc((spans->nr + 1) * sizeof(*c));
	u8 *buf = malloc(2 * STEP);
	enum wfs_status status = WFS_OK;
	size_t nr = 0;

	if (!c || !buf) {
		status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
		goto out;
	}
	status = sample_all(source, spans, c, &nr, err);
	for (size_t i = 0, end; i < nr && status == WFS_OK; i = end) {
		for (end = i + 1; end < nr && c[end].len == c[i].len && c[end].fingerprint == c[i].fingerprint; end++)
			;
		status = copies_of_group(source, spans, c + i, end - i, buf, err);
	}
out:
	free(buf);
	free(c);
	return status;
}

/* ---- constants ---- */

struct constant_search {
	const struct wfs_source *source;
	struct wfs_spans *out;
	u8 *buf;
	struct wfs_error *err;
};

/* Whether the stretch repeats its first 8 bytes. A probe of its start answers for nearly all. */
static enum wfs_status stretch_check(const struct constant_search *q, u64 off, u64 len, bool *constant_ret,
				     u64 *pattern_ret)
{
	enum wfs_status status = wfs_source_read(q->source, q->buf, PROBE, off, q->err);

	*constant_ret = status == WFS_OK && wfs_is_constant(q->buf, PROBE);
	if (!*constant_ret)
		return status;
	*pattern_ret = wfs_load64(q->buf);
	status = wfs_source_read(q->source, q->buf, (size_t)len, off, q->err);
	*constant_ret = status == WFS_OK && wfs_is_constant(q->buf, (size_t)len) && wfs_load64(q->buf) == *pattern_ret;
	return status;
}

/* Appends bytes from .. from + len - 1 of a coded span. */
static bool push_part(struct wfs_spans *out, const struct wfs_span *s, u64 from, u64 len)
{
	struct wfs_span part = *s;

	part.off = s->off + from;
	part.len = len;
	part.phase = (u8)((s->phase + from) % wfs_class_step(s->class));
	part.tensor = s->tensor && len == s->len;
	return !len || wfs_spans_push(out, &part);
}

static enum wfs_status cut_span(const struct constant_search *q, const struct wfs_span *s, size_t *nr_cuts)
{
	bool constant, room = true;
	u64 done = 0, len;

	for (u64 at = 0; at < s->len && *nr_cuts < MAX_CUTS; at += len) {
		struct wfs_span fill = {.off = s->off + at, .kind = WFS_REGION_CONSTANT};
		enum wfs_status status;

		/* A short rest goes with the last step. */
		len = s->len - at < STEP + WFS_MIN_REPEAT ? s->len - at : STEP;
		status = wfs_source_go_on(q->source, q->err);
		if (status == WFS_OK)
			status = stretch_check(q, s->off + at, len, &constant, &fill.arg);
		if (status != WFS_OK)
			return status;
		if (!constant)
			continue;
		fill.len = len;
		room = push_part(q->out, s, done, at - done) && wfs_spans_push(q->out, &fill);
		if (!room)
			break;
		done = at + len;
		++*nr_cuts;
	}
	if (!room || !push_part(q->out, s, done, s->len - done))
		return wfs_fail(q->err, WFS_NO_MEMORY, "out of memory for the plan");
	return WFS_OK;
}

enum wfs_status wfs_spans_find_constants(const struct wfs_source *source, struct wfs_spans *spans,
					 struct wfs_error *err)
{
	struct wfs_spans out = {0};
	struct constant_search q = {source, &out, malloc(STEP + WFS_MIN_REPEAT), err};
	enum wfs_status status = WFS_OK;
	size_t nr_cuts = 0;

	if (!q.buf)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
	for (size_t i = 0; i < spans->nr && status == WFS_OK; i++) {
		const struct wfs_span *s = &spans->span[i];

		if (s->kind == WFS_REGION_CODED && s->len >= WFS_MIN_REPEAT)
			status = cut_span(&q, s, &nr_cuts);
		else if (!wfs_spans_push(&out, s))
			status = wfs_fail(err, WFS_NO_MEMORY, "out of memory for the plan");
	}
	if (status == WFS_OK) {
		struct wfs_spans old = *spans;

		*spans = out;
		out = old;
	}
	wfs_spans_free(&out);
	free(q.buf);
	return status;
}
