/* lost_print.c - what is lost, for people and for machines. */
#include "lost.h"

static void print_first(const struct lost *l, struct json *j)
{
	json_array(j, "first_damaged");
	for (uint64_t i = 0; i < MIN(l->nr_bad_blocks, (uint64_t)MAX_FIRST_LOST); i++) {
		json_object(j, NULL);
		json_uint(j, "block", l->first[i].index);
		json_uint(j, "raw_offset", l->first[i].raw_off);
		json_uint(j, "raw_bytes", l->first[i].raw_len);
		json_string(j, "reason", l->first[i].reason);
		json_end(j);
	}
	json_end(j);
}

static void print_tensor(const struct lost_tensor *hit, struct json *j)
{
	const struct wfs_tensor *t = hit->tensor;
	json_object(j, NULL);
	json_string(j, "name", t->name);
	json_string(j, "dtype", t->dtype);
	json_array(j, "shape");
	for (uint32_t d = 0; d < t->nr_dims; d++)
		json_uint(j, NULL, t->shape[d]);
	json_end(j);
	json_uint(j, "offset", t->raw_off);
	json_uint(j, "bytes", t->raw_len);
	json_uint(j, "lost_bytes", hit->lost_bytes);
	json_end(j);
}

void lost_print_json(const struct lost *lost, struct json *j, size_t max_listed)
{
	static const char *const names[] = {"none", "known", "header lost"};
	json_uint(j, "blocks", lost->nr_blocks);
	json_uint(j, "damaged_blocks", lost->nr_bad_blocks);
	print_first(lost, j);
	json_uint(j, "lost_bytes", lost->bytes);
	json_uint(j, "nr_lost_ranges", lost->nr_ranges);
	json_array(j, "lost_ranges");
	for (size_t i = 0; i < MIN(lost->nr_ranges, max_listed); i++) {
		json_object(j, NULL);
		json_uint(j, "offset", lost->range[i].off);
		json_uint(j, "bytes", lost->range[i].len);
		json_end(j);
	}
	json_end(j);
	json_string(j, "tensor_names", names[lost->names]);
	json_uint(j, "nr_lost_tensors", lost->nr_tensors);
	json_array(j, "lost_tensors");
	for (size_t i = 0; i < MIN(lost->nr_tensors, max_listed); i++)
		print_tensor(&lost->tensor[i], j);
	json_end(j);
}

void lost_print_lines(const struct lost *lost, size_t max_listed)
{
	char size[SIZE_TEXT_BYTES];
	size_t ranges = MIN(lost->nr_ranges, max_listed), tensors = MIN(lost->nr_tensors, max_listed);
	for (size_t i = 0; i < ranges; i++) {
		const struct lost_range *r = &lost->range[i];
		out_line("  lost: bytes %llu to %llu", (unsigned long long)r->off,
			 (unsigned long long)(r->off + r->len - 1));
	}
	if (lost->nr_ranges > ranges)
		out_line("  lost: %zu more range%s, %s in all (--json lists more)", lost->nr_ranges - ranges,
			 plural(lost->nr_ranges - ranges), size_text(size, lost->bytes));
	for (size_t i = 0; i < tensors; i++) {
		const struct lost_tensor *t = &lost->tensor[i];
		out_line("  hit: tensor %s (%s): %llu of %llu byte%s", t->tensor->name, t->tensor->dtype,
			 (unsigned long long)t->lost_bytes, (unsigned long long)t->tensor->raw_len,
			 plural(t->tensor->raw_len));
	}
	if (lost->nr_tensors > tensors)
		out_line("  hit: %zu more tensor%s (--json lists more)", lost->nr_tensors - tensors,
			 plural(lost->nr_tensors - tensors));
	if (lost->names == LOST_NAMES_DAMAGED)
		out_line("  hit: the header that names the tensors is lost too");
}
