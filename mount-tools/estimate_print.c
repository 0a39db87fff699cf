/* estimate_print.c - the results of `weightfs estimate`: tables for people, a JSON document for machines. */
#include "estimate.h"
#include "info.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const titles[NR_SCHEMES] = {
	[SCHEME_EXPONENT] = "bound: exponent",
	[SCHEME_JOINT] = "bound: exponent and mantissa",
	[SCHEME_SPLIT12] = "Split12",
	[SCHEME_K15] = "K15",
	[SCHEME_HUFFMAN] = "exponent Huffman (DFloat11)",
	[SCHEME_ZSTD] = "zstd, byte planes (ZipNN)",
	[SCHEME_WEIGHTFS] = "weightfs",
};
static const char *const keys[NR_SCHEMES] = {
	[SCHEME_EXPONENT] = "bound_exponent", [SCHEME_JOINT] = "bound_joint",
	[SCHEME_SPLIT12] = "split12",	      [SCHEME_K15] = "k15",
	[SCHEME_HUFFMAN] = "dfloat11",	      [SCHEME_ZSTD] = "zipnn_zstd",
	[SCHEME_WEIGHTFS] = "weightfs",
};

/* Whether a scheme has a figure of its own for row: a dtype, OTHER, or NR_DTYPES + 1, the total. */
static bool known(const struct estimate_report *r, unsigned row, enum scheme s)
{
	bool total = row > OTHER;
	if (s == SCHEME_ZSTD && !r->opts->zstd)
		return false;
	if (s == SCHEME_WEIGHTFS && r->e->sampled)
		return total;
	return total || scheme_takes(s, row < OTHER ? &dtypes[row] : NULL);
}

static const struct sums *sums_of(const struct estimate_report *r, unsigned row)
{
	return row > OTHER ? &r->e->total : &r->e->dtype[row];
}

/* Rows of dtypes that occur, the largest first, and OTHER. */
static unsigned sorted_rows(const struct estimate *e, unsigned rows_ret[NR_DTYPES + 1])
{
	unsigned nr = 0;
	for (unsigned d = 0; d < NR_DTYPES; d++) {
		unsigned at = nr;
		if (!e->dtype[d].nr_tensors)
			continue;
		for (; at > 0 && e->dtype[rows_ret[at - 1]].raw_bytes < e->dtype[d].raw_bytes; at--)
			rows_ret[at] = rows_ret[at - 1];
		rows_ret[at] = d;
		nr++;
	}
	rows_ret[nr++] = OTHER;
	return nr;
}

/* Without the sign of what rounds to zero. */
static double shown_percent(const struct sums *sums, enum scheme s)
{
	double percent = saved_percent(sums->raw_bytes, sums->bytes[s]);
	return percent > -0.0005 && percent < 0 ? 0 : percent;
}

static void print_scheme(const struct estimate_report *r, unsigned row, enum scheme s)
{
	const struct sums *sums = sums_of(r, row);
	char bits[32] = "-";
	if (!known(r, row, s)) {
		printf("  %-30s %18s %13s %11s\n", titles[s], "-", "-", "-");
		return;
	}
	if (sums->nr_weights)
		snprintf(bits, sizeof(bits), "%.4f", bits_per_weight((double)sums->bytes[s], sums->nr_weights));
	printf("  %-30s %18llu %13s %9.3f %%\n", titles[s], (unsigned long long)sums->bytes[s], bits,
	       shown_percent(sums, s));
}

/* Where no tensor is counted, nothing but weightfs tries anything. */
static void print_row(const struct estimate_report *r, unsigned row)
{
	bool tensors = sums_of(r, row)->nr_tensors;
	if (tensors || known(r, row, SCHEME_WEIGHTFS))
		printf("  %-30s %18s %13s %11s\n", "", "bytes", "bits/weight", "saved");
	for (enum scheme s = 0; s < NR_SCHEMES; s++)
		if (tensors || (s == SCHEME_WEIGHTFS && known(r, row, s)))
			print_scheme(r, row, s);
	printf("\n");
}

static void print_notes(const struct estimate_report *r)
{
	bool tensors = r->e->total.nr_tensors, zstd = r->opts->zstd && tensors;
	char sample[SIZE_TEXT_BYTES];
	if (r->nr_containers)
		printf("%llu weightfs container%s taken as %s; a mount shows the original%s.\n",
		       (unsigned long long)r->nr_containers, plural(r->nr_containers),
		       r->nr_containers == 1 ? "it is" : "they are", plural(r->nr_containers));
	if (!r->opts->zstd && tensors)
		printf("libzstd is not installed: zstd was not tried.\n");
	if (r->e->sampled)
		printf("weightfs%s tried on about %s of each larger file: %s estimated.\n",
		       zstd ? " and zstd were" : " was", size_text(sample, r->opts->sample_bytes),
		       zstd ? "their figures are" : "its figure is");
	if (tensors)
		printf("A bound is what the best order-0 coder could reach, its tables not counted; for the rest "
		       "everything is.\n");
	printf("weightfs-estimate(1) defines each scheme.\n");
}

static void print_dtypes(const struct estimate_report *r)
{
	unsigned rows[NR_DTYPES + 1], nr_rows = sorted_rows(r->e, rows);
	for (unsigned i = 0; i < nr_rows; i++) {
		const struct sums *sums = sums_of(r, rows[i]);
		if (rows[i] == OTHER)
			printf("other bytes: %llu, taken as they are by all but weightfs\n",
			       (unsigned long long)sums->raw_bytes);
		else
			printf("%s: %llu weight%s in %llu tensor%s, %llu byte%s\n", dtypes[rows[i]].name,
			       (unsigned long long)sums->nr_weights, plural(sums->nr_weights),
			       (unsigned long long)sums->nr_tensors, plural(sums->nr_tensors),
			       (unsigned long long)sums->raw_bytes, plural(sums->raw_bytes));
		print_row(r, rows[i]);
	}
}

void estimate_print(const struct estimate_report *r)
{
	const struct estimate *e = r->e;
	char raw[SIZE_TEXT_BYTES], rate[RATE_TEXT_BYTES];
	out_line("%s: %llu file%s, %s, %.1f s%s", r->path, (unsigned long long)e->nr_files, plural(e->nr_files),
		 size_text(raw, e->total.raw_bytes), r->seconds,
		 rate_text(rate, e->total.raw_bytes - e->plain_bytes, r->seconds));
	printf("\n");
	if (e->nr_files == r->nr_containers) {
		printf("nothing to estimate: no file%s\n", r->nr_containers ? " but weightfs containers" : "");
	} else {
		if (e->total.nr_tensors)
			print_dtypes(r);
		else
			printf("no safetensors tensors: weightfs looks at any bytes, the other schemes at tensors\n\n");
		printf("in all: %llu byte%s\n", (unsigned long long)e->total.raw_bytes, plural(e->total.raw_bytes));
		print_row(r, OTHER + 1);
	}
	print_notes(r);
}

static void json_sums(struct json *j, const struct estimate_report *r, unsigned row)
{
	const struct sums *sums = sums_of(r, row);
	json_uint(j, "tensors", sums->nr_tensors);
	json_uint(j, "weights", sums->nr_weights);
	json_uint(j, "raw_bytes", sums->raw_bytes);
	json_object(j, "schemes");
	for (enum scheme s = 0; s < NR_SCHEMES; s++) {
		if (!known(r, row, s)) {
			json_raw(j, keys[s], NULL);
			continue;
		}
		json_object(j, keys[s]);
		json_uint(j, "bytes", sums->bytes[s]);
		if (sums->nr_weights)
			json_real(j, "bits_per_weight", bits_per_weight((double)sums->bytes[s], sums->nr_weights), 4);
		else
			json_raw(j, "bits_per_weight", NULL);
		json_real(j, "saved_percent", saved_percent(sums->raw_bytes, sums->bytes[s]), 4);
		json_end(j);
	}
	json_end(j);
}

void estimate_print_json(const struct estimate_report *r)
{
	unsigned rows[NR_DTYPES + 1], nr_rows = sorted_rows(r->e, rows);
	struct json j;
	json_init(&j, stdout);
	json_object(&j, NULL);
	json_string(&j, "command", "estimate");
	json_string(&j, "version", wfs_version());
	json_string(&j, "path", r->path);
	json_string(&j, "level", wfs_level_name(r->opts->level));
	if (r->opts->sample_bytes)
		json_uint(&j, "sample_bytes", r->opts->sample_bytes);
	else
		json_raw(&j, "sample_bytes", NULL);
	json_bool(&j, "estimated", r->e->sampled);
	json_string(&j, "zstd", r->opts->zstd ? zstd_version(r->opts->zstd) : NULL);
	json_array(&j, "dtypes");
	for (unsigned i = 0; i + 1 < nr_rows; i++) {
		json_object(&j, NULL);
		json_string(&j, "dtype", dtypes[rows[i]].name);
		json_sums(&j, r, rows[i]);
		json_end(&j);
	}
	json_end(&j);
	json_object(&j, "other");
	json_sums(&j, r, OTHER);
	json_end(&j);
	json_object(&j, "total");
	json_uint(&j, "files", r->e->nr_files);
	json_uint(&j, "containers", r->nr_containers);
	json_uint(&j, "failed", r->nr_failed);
	json_sums(&j, r, OTHER + 1);
	json_end(&j);
	json_real(&j, "seconds", r->seconds, 3);
	json_end(&j);
}
