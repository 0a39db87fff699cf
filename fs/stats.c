/* stats.c - see stats.h. */
#include "stats.h"
#include "fs.h"
#include "signed.h"
#include "tree.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

void wfsd_count_size(struct wfsd_stats *stats, uint64_t size)
{
	unsigned i = 0;
	while (i < WFSD_NR_SIZES - 1 && size > (uint64_t)4096 << i)
		i++;
	wfsd_count(&stats->sizes[i], 1);
}

enum unit { COUNT, BYTES, SECONDS, SETTING };

struct value {
	const char *name;  /* in JSON: part of the interface, as weightfsd(8) lists it */
	const char *label; /* for people */
	enum unit unit;
	uint64_t value; /* SECONDS: nanoseconds; SETTING: 0 is unknown, in JSON null */
};

enum { MAX_SETTINGS = 24, MAX_COUNTERS = 48 };

/* With what it works: its own settings, and the kernel's. Returns how many. */
static unsigned collect_settings(struct wfsd *d, struct value *v)
{
	const struct wfsd_kernel has = wfsd_tune_now(d), wanted = wfsd_tune_wanted(d);
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t up = (uint64_t)((now.tv_sec - d->started.tv_sec) * 1000000000 + now.tv_nsec - d->started.tv_nsec);
	const struct value all[] = {
		{"uptime_seconds", "up", SECONDS, up},
		{"threads", "decode threads", COUNT, d->opts->nr_threads},
		{"processors", "processors", COUNT, wfsd_nr_processors()},
		{"read_ahead_kb", "kernel read-ahead, KiB", SETTING, has.read_ahead_kb},
		{"read_ahead_kb_wanted", "  wanted (0: any)", COUNT, wanted.read_ahead_kb},
		{"max_background", "requests sent at once", SETTING, has.max_background},
		{"max_background_wanted", "  wanted", COUNT, wanted.max_background},
		{"congestion_threshold", "congested from", SETTING, has.congestion_threshold},
		{"congestion_threshold_wanted", "  wanted", COUNT, wanted.congestion_threshold},
		{"fuse_protocol_minor", "FUSE protocol 7, minor", COUNT, d->init.protocol_minor},
		{"max_read_bytes", "INIT: largest read", BYTES, d->init.max_read_bytes},
		{"max_pages", "INIT: pages a request", COUNT, d->init.max_pages},
		{"max_readahead_bytes", "INIT: read-ahead", BYTES, d->init.max_readahead_bytes},
	};
	_Static_assert(sizeof(all) <= MAX_SETTINGS * sizeof(all[0]), "room for all");
	memcpy(v, all, sizeof(all));
	return sizeof(all) / sizeof(all[0]);
}

/* What it has done. Returns how many. */
static unsigned collect_counters(struct wfsd *d, struct value *v)
{
	const struct wfsd_stats *s = &d->stats;
	struct wfsd_cache_stats c;
	struct wfsd_cache_ahead ahead;

	wfsd_cache_stats(d->cache, &c);
	wfsd_cache_ahead(d->cache, &ahead);
	const struct value all[] = {
		{"reads", "reads", COUNT, s->reads},
		{"read_errors", "reads that failed", COUNT, s->read_errors},
		{"bytes_served", "served", BYTES, s->bytes_served},
		{"plain_reads", "reads of plain files", COUNT, s->plain_reads},
		{"plain_bytes", "served of plain files", BYTES, s->plain_bytes},
		{"blocks_decoded", "blocks decoded", COUNT, s->blocks_decoded},
		{"ahead_blocks", "of them ahead of readers", COUNT, s->ahead_blocks},
		{"ahead_used", "and read later", COUNT, ahead.used},
		{"ahead_wasted", "and evicted unread", COUNT, ahead.wasted},
		{"bytes_decoded", "decoded", BYTES, s->bytes_decoded},
		{"decode_seconds", "decoding, all threads", SECONDS, s->decode_nsec},
		{"stored_bytes_read", "read from the store", BYTES, s->comp_bytes_read},
		{"direct_bytes_read", "of it past the page cache", BYTES, s->direct_bytes_read},
		{"disk_seconds", "reading, all threads", SECONDS, s->disk_nsec},
		{"cache_bytes", "cache in use", BYTES, c.used_bytes},
		{"cache_cap_bytes", "cache cap", BYTES, c.cap_bytes},
		{"cache_overflow_bytes", "memory above the cap", BYTES, c.overflow_bytes},
		{"cache_hits", "cache hits", COUNT, c.hits},
		{"cache_misses", "cache misses", COUNT, c.misses},
		{"cache_waits", "waits for another's decode", COUNT, c.waits},
		{"cache_evictions", "cache evictions", COUNT, c.evictions},
		{"bad_blocks", "bad blocks", COUNT, s->bad_blocks},
		{"bad_files", "bad containers", COUNT, s->bad_files},
		{"refused_blocks", "blocks not as signed", COUNT, s->refused_blocks},
		{"refused_files", "files not as signed", COUNT, s->refused_files},
		{"timeouts", "requests timed out", COUNT, s->timeouts},
		{"opens", "opens", COUNT, s->opens},
		{"open_handles", "open handles", COUNT, s->open_handles},
		{"open_files", "open files of the store", COUNT, s->open_files},
		{"nodes", "names known to the kernel", COUNT, wfsd_tree_count(d->tree)},
		{"lookups", "lookups", COUNT, s->lookups},
		{"heads_read", "heads read", COUNT, s->heads_read},
	};
	_Static_assert(sizeof(all) <= MAX_COUNTERS * sizeof(all[0]), "room for all");
	memcpy(v, all, sizeof(all));
	return sizeof(all) / sizeof(all[0]);
}

static const char *const direct_names[] = {
	[WFSD_DIRECT_UNTRIED] = "untried", [WFSD_DIRECT_WORKS] = "works", [WFSD_DIRECT_REFUSED] = "refused"};

/* Length of the well-formed UTF-8 sequence at s (RFC 3629), or 0. */
static unsigned utf8_len(const unsigned char *s)
{
	unsigned len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	for (unsigned i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* overlong, a surrogate, above U+10FFFF */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

/* Paths may hold any byte: one that is not UTF-8 becomes \udcXX, from which Python's surrogateescape makes it again. */
static void json_string(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	fputc('"', out);
	while (*p) {
		unsigned len = utf8_len(p);
		if (!len)
			fprintf(out, "\\udc%02x", *p++);
		else if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p++);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\u%04x", *p++);
		else
			while (len--)
				fputc(*p++, out);
	}
	fputc('"', out);
}

static void print_json(struct wfsd *d, FILE *out, const struct value *v, unsigned nr)
{
	fprintf(out, "{\"version\":\"%s\",\"pid\":%ld,\"store\":", wfs_version(), (long)getpid());
	json_string(out, d->store_path);
	fputs(",\"mount\":", out);
	json_string(out, d->mount_path);
	fputs(",\"store_fs\":", out);
	json_string(out, d->store_fs);
	fprintf(out, ",\"store_direct\":\"%s\"", direct_names[atomic_load(&d->store_direct)]);
	fprintf(out, ",\"cpu\":\"%s\",\"cpu_best\":\"%s\"", wfs_cpu_name(d->cpu), wfs_cpu_name(wfs_cpu_best()));
	if (d->signed_store)
		fprintf(out, ",\"manifest_sha256\":\"%s\"", wfsd_signed_sha256(d->signed_store));
	else
		fputs(",\"manifest_sha256\":null", out);
	for (unsigned i = 0; i < nr; i++)
		if (v[i].unit == SECONDS)
			fprintf(out, ",\"%s\":%.6f", v[i].name, (double)v[i].value / 1e9);
		else if (v[i].unit == SETTING && !v[i].value)
			fprintf(out, ",\"%s\":null", v[i].name);
		else
			fprintf(out, ",\"%s\":%" PRIu64, v[i].name, v[i].value);
	fputs(",\"request_sizes\":[", out);
	for (unsigned i = 0; i < WFSD_NR_SIZES; i++) {
		uint64_t nr_requests = d->stats.sizes[i];
		if (i < WFSD_NR_SIZES - 1)
			fprintf(out, "%s{\"up_to\":%u,\"reads\":%" PRIu64 "}", i ? "," : "", 4096u << i, nr_requests);
		else
			fprintf(out, ",{\"up_to\":null,\"reads\":%" PRIu64 "}", nr_requests);
	}
	fputs("]}\n", out);
}

static void print_bytes(FILE *out, uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
	double value = (double)bytes;
	unsigned u = 0;
	while (value >= 1000 && u + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1000;
		u++;
	}
	fprintf(out, u ? "%.2f %s\n" : "%.0f %s\n", value, units[u]);
}

static void print_table(struct wfsd *d, FILE *out, const struct value *v, unsigned nr)
{
	fprintf(out, "%-28s%s\n%-28s%s\n", "store", d->store_path, "mount", d->mount_path);
	fprintf(out, "%-28s%s, process %ld\n", "weightfsd", wfs_version(), (long)getpid());
	fprintf(out, "%-28s%s, O_DIRECT %s\n", "file system of the store", d->store_fs,
		direct_names[atomic_load(&d->store_direct)]);
	if (d->signed_store)
		fprintf(out, "%-28s%s\n", "signed manifest", wfsd_signed_sha256(d->signed_store));
	fprintf(out, "%-28s%s (best here: %s)\n", "decoder", wfs_cpu_name(d->cpu), wfs_cpu_name(wfs_cpu_best()));
	for (unsigned i = 0; i < nr; i++) {
		fprintf(out, "%-28s", v[i].label);
		if (v[i].unit == SECONDS)
			fprintf(out, "%.3f s\n", (double)v[i].value / 1e9);
		else if (v[i].unit == BYTES)
			print_bytes(out, v[i].value);
		else if (v[i].unit == SETTING && !v[i].value)
			fputs("unknown\n", out);
		else
			fprintf(out, "%" PRIu64 "\n", v[i].value);
	}
	for (unsigned i = 0; i < WFSD_NR_SIZES; i++)
		if (d->stats.sizes[i])
			fprintf(out, "reads %s %4u KiB         %" PRIu64 "\n",
				i < WFSD_NR_SIZES - 1 ? "up to" : "above", i < WFSD_NR_SIZES - 1 ? 4u << i : 1024u,
				(uint64_t)d->stats.sizes[i]);
}

void wfsd_stats_print(struct wfsd *d, FILE *out, int json)
{
	/* All numbers, in the order in which they are printed. */
	struct value values[MAX_SETTINGS + MAX_COUNTERS];
	unsigned nr = collect_settings(d, values);

	nr += collect_counters(d, values + nr);
	(json ? print_json : print_table)(d, out, values, nr);
}
