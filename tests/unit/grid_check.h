/* grid_check.h - blocks of the naive writer (grid_model.h) against every decoder, between inaccessible pages. */
#ifndef GRID_CHECK_H
#define GRID_CHECK_H

#include "grid_model.h"
#include "split_encode.h"
#include "split_merge.h"

static struct wfs_scratch *scratch;
static struct test_guard comp_guard, raw_guard;

struct outcome {
	enum wfs_status status;
	const char *reason;
};

/* The pool of the codes when they are wide ones, else NULL. */
static struct wfs_wide_decode_pool *wide_pool;

static inline struct outcome decode(const struct grid_model *m, enum wfs_cpu cpu, unsigned phase, const u8 *comp,
				    size_t comp_len, u8 *raw, size_t raw_len)
{
	const struct wfs_coder coder = {
		.coding = wide_pool ? WFS_GRID_WIDE : WFS_GRID,
		.word = m->grid.output == WFS_GRID_F32 ? 4 : 2,
		.rot = m->codes.s.rot,
		.field = m->codes.s.field,
	};
	struct wfs_decode_pool *pool = wfs_decode_pool_new(&m->codes.pool);
	const struct wfs_kernels kernels = wfs_kernels_for(cpu);
	struct wfs_grid_values values;
	const struct wfs_decode_tables tables = {.split = pool, .wide = wide_pool, .grid = &values};
	struct outcome o = {WFS_OK, NULL};

	CHECK(pool);
	wfs_grid_values_make(&m->grid, &values);
	o.status =
		wfs_payload_decode(&coder, &tables, &kernels, phase, comp, comp_len, raw, raw_len, scratch, &o.reason);
	CHECK((o.status == WFS_OK) == (o.reason == NULL));
	free(pool);
	return o;
}

static inline void check_model(const struct grid_model *m, const char *what)
{
	for (enum wfs_cpu cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
		for (unsigned at_end = 0; at_end < 2; at_end++) {
			u8 *comp = at_end ? test_guard_end(&comp_guard, m->comp_len) : test_guard_start(&comp_guard);
			u8 *raw = at_end ? test_guard_end(&raw_guard, m->raw_len) : test_guard_start(&raw_guard) + 1;
			struct outcome o;

			if (!wfs_cpu_supported(cpu))
				continue;
			memcpy(comp, m->comp, m->comp_len);
			memset(at_end ? raw : raw - 1, 0xA5, m->raw_len + (at_end ? 0 : 101));
			o = decode(m, cpu, phase_of(m), comp, m->comp_len, raw, m->raw_len);
			CHECK_MSG(o.status == WFS_OK, "%s, %s: %s", what, wfs_cpu_name(cpu), o.reason);
			for (size_t i = 0; i < m->raw_len; i++)
				CHECK_MSG(raw[i] == m->raw[i], "%s, %s: byte %zu of %zu", what, wfs_cpu_name(cpu), i,
					  m->raw_len);
			for (size_t i = 0; !at_end && i < 100; i++)
				CHECK(raw[m->raw_len + i] == 0xA5);
			CHECK(at_end || raw[-1] == 0xA5);
		}
	}
}

static inline void grid_check_start(void)
{
	scratch = wfs_scratch_new();
	CHECK(scratch);
	comp_guard = test_guard_new(4 << 20);
	raw_guard = test_guard_new(WFS_MAX_BLOCK + 4096);
}
static inline void grid_check_end(void)
{
	test_guard_free(&comp_guard);
	test_guard_free(&raw_guard);
	wfs_scratch_free(scratch);
}

#endif
