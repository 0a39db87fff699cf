/* info_print.c - print what info.c collected, for people and as JSON. */
#include "info.h"

#include "sha256.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void time_text(char *buf, size_t size, int64_t sec, uint32_t nsec)
{
	time_t t = (time_t)sec;
	struct tm tm;
	size_t len = gmtime_r(&t, &tm) ? strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm) : 0;
	if (len)
		snprintf(buf + len, size - len, ".%09uZ", nsec);
	else
		snprintf(buf, size, "%lld.%09u s", (long long)sec, nsec);
}

enum { HEALTH_BYTES = 128 };

/* NULL: whole, as far as head and metadata tell. */
static const char *health(char buf[HEALTH_BYTES], const struct info *info)
{
	const struct wfs_info *w = &info->wfs;
	if (w->truncated) {
		snprintf(buf, HEALTH_BYTES, "cut short: only %llu bytes of it are here, see weightfs verify",
			 (unsigned long long)info->present_bytes);
		return buf;
	}
	if (w->head.from_tail)
		return "the head is damaged, its copy at the end was used";
	if (w->meta_from_copy_b)
		return "the first copy of the metadata is damaged, the second was used";
	return NULL;
}

static void print_codings(const struct info *info)
{
	char raw[SIZE_TEXT_BYTES], stored[SIZE_TEXT_BYTES];
	printf("  %-10s %10s %10s %10s %8s\n", "coding", "blocks", "original", "stored", "saved");
	for (unsigned i = 0; i < NR_CODINGS; i++) {
		const struct coding_sum *c = &info->coding[i];
		if (c->nr_blocks)
			printf("  %-10s %10llu %10s %10s %6.2f %%\n", coding_name(i), (unsigned long long)c->nr_blocks,
			       size_text(raw, c->raw_bytes), size_text(stored, c->stored_bytes),
			       saved_percent(c->raw_bytes, c->stored_bytes));
	}
	if (info->constant_bytes)
		printf("  %-10s %10s %10s\n", "constant", "-", size_text(raw, info->constant_bytes));
	if (info->copied_bytes)
		printf("  %-10s %10s %10s\n", "copied", "-", size_text(raw, info->copied_bytes));
}

static void print_dtypes(const struct info *info)
{
	char raw[SIZE_TEXT_BYTES], stored[SIZE_TEXT_BYTES];
	printf("  %-10s %10s %14s %10s %10s %8s %12s\n", "dtype", "tensors", "weights", "original", "stored", "saved",
	       "bits/weight");
	for (size_t i = 0; i < info->nr_dtypes; i++) {
		const struct dtype_sum *d = &info->dtype[i];
		out_line("  %-10s %10llu %14llu %10s %10s %6.2f %% %12.4f", d->name, (unsigned long long)d->nr_tensors,
			 (unsigned long long)d->nr_weights, size_text(raw, d->raw_bytes),
			 size_text(stored, (uint64_t)d->stored_bytes),
			 saved_percent(d->raw_bytes, (uint64_t)d->stored_bytes),
			 bits_per_weight(d->stored_bytes, d->nr_weights));
	}
}

static void print_tensors(const struct info *info)
{
	for (size_t i = 0; i < info->tensors->nr; i++) {
		const struct wfs_tensor *t = &info->tensors->tensor[i];
		char shape[128] = "", stored[SIZE_TEXT_BYTES];
		size_t len = 0;
		for (uint32_t d = 0; d < t->nr_dims && len < sizeof(shape) - 24; d++)
			len += (size_t)snprintf(shape + len, sizeof(shape) - len, "%s%llu", d ? "x" : "",
						(unsigned long long)t->shape[d]);
		out_line("  %-8s %-18s %12llu bytes at %-12llu %10s  %7.4f bits/weight  %s", t->dtype, shape,
			 (unsigned long long)t->raw_len, (unsigned long long)t->raw_off,
			 size_text(stored, (uint64_t)info->tensor_stored[i]),
			 bits_per_weight(info->tensor_stored[i], tensor_weights(t)), t->name);
	}
}

void info_print(const struct info *info, const struct info_opts *opts)
{
	const struct wfs_head *h = &info->wfs.head;
	char raw[SIZE_TEXT_BYTES], stored[SIZE_TEXT_BYTES], sha[SHA256_TEXT_BYTES], mtime[64];
	char saved[SAVED_TEXT_BYTES], text[HEALTH_BYTES];
	const char *damage;
	time_text(mtime, sizeof(mtime), h->mtime_sec, h->mtime_nsec);
	out_line("%s", info->path);
	printf("  original   %llu byte%s (%s)\n", (unsigned long long)h->raw_len, plural(h->raw_len),
	       size_text(raw, h->raw_len));
	printf("  stored     %llu bytes (%s), %s\n", (unsigned long long)info->stored_bytes,
	       size_text(stored, info->stored_bytes), saved_text(saved, h->raw_len, info->stored_bytes, 3));
	printf("  modified   %s\n  sha256     %s\n", mtime, sha256_text(sha, h->sha256));
	printf("  blocks     %llu of at most %u KiB, %llu region%s, %u coder%s, %u pool%s\n",
	       (unsigned long long)info->wfs.nr_blocks, 1u << (h->block_log2 - 10),
	       (unsigned long long)info->wfs.nr_regions, plural(info->wfs.nr_regions), info->wfs.nr_coders,
	       plural(info->wfs.nr_coders), info->wfs.nr_pools, plural(info->wfs.nr_pools));
	damage = health(text, info);
	if (damage)
		printf("  damaged    %s\n", damage);
	if (info->wfs.nr_regions)
		print_codings(info);
	if (info->nr_dtypes)
		print_dtypes(info);
	if (opts->tensors && info->tensors)
		print_tensors(info);
}

static void json_codings(struct json *j, const struct info *info)
{
	json_array(j, "codings");
	for (unsigned i = 0; i < NR_CODINGS; i++) {
		const struct coding_sum *c = &info->coding[i];
		if (!c->nr_blocks)
			continue;
		json_object(j, NULL);
		json_string(j, "coding", coding_name(i));
		json_uint(j, "blocks", c->nr_blocks);
		json_uint(j, "raw_bytes", c->raw_bytes);
		json_uint(j, "stored_bytes", c->stored_bytes);
		json_end(j);
	}
	json_end(j);
}

static void json_dtypes(struct json *j, const struct info *info)
{
	json_array(j, "dtypes");
	for (size_t i = 0; i < info->nr_dtypes; i++) {
		const struct dtype_sum *d = &info->dtype[i];
		json_object(j, NULL);
		json_string(j, "dtype", d->name);
		json_uint(j, "tensors", d->nr_tensors);
		json_uint(j, "weights", d->nr_weights);
		json_uint(j, "raw_bytes", d->raw_bytes);
		json_real(j, "stored_bytes", d->stored_bytes, 0);
		json_real(j, "bits_per_weight", bits_per_weight(d->stored_bytes, d->nr_weights), 4);
		json_end(j);
	}
	json_end(j);
}

static void json_tensors(struct json *j, const struct info *info)
{
	json_array(j, "tensors");
	for (size_t i = 0; info->tensors && i < info->tensors->nr; i++) {
		const struct wfs_tensor *t = &info->tensors->tensor[i];
		json_object(j, NULL);
		json_string(j, "name", t->name);
		json_string(j, "dtype", t->dtype);
		json_array(j, "shape");
		for (uint32_t d = 0; d < t->nr_dims; d++)
			json_uint(j, NULL, t->shape[d]);
		json_end(j);
		json_uint(j, "raw_offset", t->raw_off);
		json_uint(j, "raw_bytes", t->raw_len);
		json_real(j, "stored_bytes", info->tensor_stored[i], 0);
		json_real(j, "bits_per_weight", bits_per_weight(info->tensor_stored[i], tensor_weights(t)), 4);
		json_end(j);
	}
	json_end(j);
}

void info_print_json(const struct info *info, const struct info_opts *opts)
{
	const struct wfs_head *h = &info->wfs.head;
	char damage[HEALTH_BYTES];
	struct json j;
	json_init(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "path", info->path);
	json_uint(&j, "raw_bytes", h->raw_len);
	json_uint(&j, "stored_bytes", info->stored_bytes);
	json_real(&j, "saved_percent", saved_percent(h->raw_len, info->stored_bytes), 4);
	json_int(&j, "mtime_sec", h->mtime_sec);
	json_uint(&j, "mtime_nsec", h->mtime_nsec);
	json_hex(&j, "sha256", h->sha256, SHA256_BYTES);
	json_uint(&j, "block_bytes", UINT64_C(1) << h->block_log2);
	json_uint(&j, "blocks", info->wfs.nr_blocks);
	json_uint(&j, "regions", info->wfs.nr_regions);
	json_uint(&j, "coders", info->wfs.nr_coders);
	json_uint(&j, "pools", info->wfs.nr_pools);
	json_string(&j, "damage", health(damage, info));
	json_codings(&j, info);
	json_uint(&j, "constant_bytes", info->constant_bytes);
	json_uint(&j, "copied_bytes", info->copied_bytes);
	json_bool(&j, "safetensors", info->tensors != NULL);
	json_dtypes(&j, info);
	if (opts->tensors)
		json_tensors(&j, info);
	json_end(&j);
}
