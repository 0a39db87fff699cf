/* grid_lists.c - the lists of values that weights are quantised to, sparse ones first.
 *
 * Sources: E4M3, E5M2 and E2M1 from the OCP specifications "8-bit Floating Point" and "Microscaling Formats"; NF4 from
 * T. Dettmers et al., "QLoRA" (arXiv:2305.14314), appendix E; FP4 as bitsandbytes makes it. A list may hold more values
 * than a format has: the last of E4M3 is there for E4M3FNUZ, whose other values are a half of E4M3's.
 */
#include "grid_encode.h"

/* Numbers with `mantissa` bits, from the multiples of 2^unit_log2 on, as binary32. */
static void floats(struct wfs_grid *grid, unsigned nr, unsigned mantissa, int unit_log2)
{
	const unsigned normal = 1u << mantissa;
	const u32 min_normal = (u32)(127 + unit_log2 + (int)mantissa) << 23;

	grid->nb = (u16)nr;
	for (unsigned i = 0; i < nr; i++) {
		float subnormal = wfs_f32_of_bits(min_normal + ((i % normal) << (23 - mantissa)));

		grid->base[i] = i >= normal ? min_normal + ((i - normal) << (23 - mantissa))
					    : wfs_f32_bits(subnormal - wfs_f32_of_bits(min_normal));
	}
}

static void integers(struct wfs_grid *grid, int first, int last)
{
	grid->nb = (u16)(last - first + 1);
	for (int i = first; i <= last; i++)
		grid->base[i - first] = wfs_f32_bits((float)i);
}

static void values(struct wfs_grid *grid, const float *value, unsigned nr)
{
	grid->nb = (u16)nr;
	for (unsigned i = 0; i < nr; i++)
		grid->base[i] = wfs_f32_bits(value[i]);
}

void wfs_grid_of_list(enum wfs_grid_list list, enum wfs_grid_op op, enum wfs_grid_output output,
		      struct wfs_grid *grid_ret)
{
	static const float nf4[] = {-1.0f,
				    -0.6961928009986877f,
				    -0.5250730514526367f,
				    -0.39491748809814453f,
				    -0.28444138169288635f,
				    -0.18477343022823334f,
				    -0.09105003625154495f,
				    0.0f,
				    0.07958029955625534f,
				    0.16093020141124725f,
				    0.24611230194568634f,
				    0.33791524171829224f,
				    0.44070982933044434f,
				    0.5626170039176941f,
				    0.7229568362236023f,
				    1.0f};
	static const float fp4[] = {0.0f, 0.005208333333f, 0.16666667f, 0.25f, 0.33333333f, 0.5f, 0.66666667f, 1.0f};
	struct wfs_grid grid = {.op = (u8)op, .output = (u8)output};

	switch (list) {
	case WFS_LIST_E2M1:
		floats(&grid, 8, 1, -1);
		break;
	case WFS_LIST_FP4:
		values(&grid, fp4, WFS_ARRAY_LEN(fp4));
		break;
	case WFS_LIST_NF4:
		grid.flags = WFS_GRID_SIGNED;
		values(&grid, nf4, WFS_ARRAY_LEN(nf4));
		break;
	case WFS_LIST_INT4:
		grid.flags = WFS_GRID_NEG1;
		integers(&grid, 0, 8);
		break;
	case WFS_LIST_INT5:
		grid.flags = WFS_GRID_NEG1;
		integers(&grid, 0, 16);
		break;
	case WFS_LIST_E5M2:
		floats(&grid, 124, 2, -16);
		break;
	case WFS_LIST_E4M3:
		floats(&grid, 128, 3, -9);
		break;
	case WFS_LIST_INT8:
		grid.flags = WFS_GRID_NEG1;
		integers(&grid, 0, 127);
		break;
	default:
		grid.flags = WFS_GRID_SIGNED;
		integers(&grid, -128, 127);
	}
	*grid_ret = grid;
}

struct wfs_split wfs_grid_code_split(const struct wfs_grid *grid)
{
	/* The coded field should be as long as 31 symbols allow; the sign is worth a whole bit. */
	if (!(grid->flags & WFS_GRID_SIGNED))
		return wfs_split_make(1, 1, grid->nb <= 32 ? 7 : 5);
	return wfs_split_make(1, 0, grid->nb <= 64 ? 7 : grid->nb <= 128 ? 6 : 5);
}
