/* grid_expand_128.h - codes to words with vectors of 16 bytes (vec128.h): included by the one file of each instruction
 * set, which names it.
 *
 * Values come from their table one by one; what follows is done for 8 of them together. 8 words are written even where
 * fewer are wanted: the next ones overwrite them. Only the block's last ones are made singly.
 */
#ifndef WFS_GRID_EXPAND_128_H
#define WFS_GRID_EXPAND_128_H

#include "grid_rows.h"
#include "vec128.h"

enum { STEP = 8 };
_Static_assert((int)WFS_GRID_CODE_SLACK >= STEP, "codes are read in steps");

/* Where the next words come from and go. */
struct work {
	const struct wfs_grid_values *g;
	const u8 *codes;
	u8 *raw;
	size_t left; /* words up to the block's end */
};

VEC_INLINE vec round_bf16(vec f)
{
	static const u32 one[4] = {1, 1, 1, 1}, below_half[4] = {0x7fff, 0x7fff, 0x7fff, 0x7fff};
	const vec odd = vec_and(vec_right(4, f, vec_right_by(16)), vec_load(one));

	return vec_add32(vec_add32(f, vec_load(below_half)), odd);
}

/* The values of 4 codes. */
VEC_INLINE vec look_up(const u32 *value, const u8 *codes)
{
	return vec_of4(value[codes[0]], value[codes[1]], value[codes[2]], value[codes[3]]);
}

/* 8 values, multiplied where target says so, to words at raw. */
VEC_INLINE void put_words(const enum wfs_grid_target target, vec a, vec b, vec scale, u8 *raw)
{
	if (target < WORDS2) {
		a = vec_mul_f32(a, scale);
		b = vec_mul_f32(b, scale);
	}
	if (target == F32 || target == WORDS4) {
		vec_store(raw, a);
		vec_store(raw + 16, b);
	} else if (target == BF16_NEAREST) {
		vec_store(raw, vec_high_halves(round_bf16(a), round_bf16(b)));
	} else if (target == BF16_TRUNCATED) {
		vec_store(raw, vec_high_halves(a, b));
	} else {
		vec_store(raw, target == F16 ? vec_f16(a, b) : vec_low_halves(a, b));
	}
}

/* The next nr words, of one scale. */
VEC_INLINE void expand(struct work *w, const enum wfs_grid_target target, size_t nr, float scale)
{
	const unsigned word = target == F32 || target == WORDS4 ? 4 : 2;
	const float four[4] = {scale, scale, scale, scale};
	const vec scales = vec_load(four);
	const u32 *value = w->g->value;
	const u8 *codes = w->codes;
	size_t done = 0;

	for (; done < nr && w->left - done >= STEP; done += STEP)
		put_words(target, look_up(value, codes + done), look_up(value, codes + done + 4), scales,
			  w->raw + done * word);
	for (; done < nr; done++) {
		const u32 x = wfs_grid_word(w->g, scale, codes[done]);

		if (word == 2)
			wfs_store16(w->raw + 2 * done, (u16)x);
		else
			wfs_store32(w->raw + 4 * done, x);
	}
	w->codes += nr;
	w->raw += nr * word;
	w->left -= nr;
}

VEC_INLINE void expand_block(const struct wfs_grid_view *v, const struct wfs_grid_values *g,
			     const enum wfs_grid_target target, const u8 *codes, const float *scale, u8 *raw)
{
	struct work w = {g, codes, raw, v->n};
	struct wfs_grid_piece piece;

	if (target >= WORDS2) {
		expand(&w, target, v->n, 1);
		return;
	}
	for (u32 i = 0; i < v->nr_segments; i++) {
		struct wfs_grid_rows rows = wfs_grid_rows_start(v, i, &scale);

		while (wfs_grid_rows_next(&rows, &piece)) {
			u64 width = piece.tw - piece.skip;

			for (u64 left = piece.nr_words; left; left -= width, width = piece.tw) {
				width = WFS_MIN(width, left);
				expand(&w, target, (size_t)width, *piece.scale++);
			}
		}
	}
}

#define DEFINE_BLOCK(name, target)                                                                                     \
	static WFS_NOINLINE VEC_TARGET void name(const struct wfs_grid_view *v, const struct wfs_grid_values *g,       \
						 const u8 *codes, const float *scale, u8 *raw)                         \
	{                                                                                                              \
		expand_block(v, g, target, codes, scale, raw);                                                         \
	}
DEFINE_BLOCK(expand_bf16, BF16_NEAREST)
DEFINE_BLOCK(expand_bf16_truncated, BF16_TRUNCATED)
DEFINE_BLOCK(expand_f16, F16)
DEFINE_BLOCK(expand_f32, F32)
DEFINE_BLOCK(expand_words2, WORDS2)
DEFINE_BLOCK(expand_words4, WORDS4)

static void expand_128(const struct wfs_grid_view *v, const struct wfs_grid_values *g, const u8 *codes,
		       const float *scale, u8 *raw)
{
	static wfs_grid_expand_fn *const fn[NR_TARGETS] = {
		[BF16_NEAREST] = expand_bf16, [BF16_TRUNCATED] = expand_bf16_truncated,
		[F16] = expand_f16,	      [F32] = expand_f32,
		[WORDS2] = expand_words2,     [WORDS4] = expand_words4,
	};

	fn[wfs_grid_target(g)](v, g, codes, scale, raw);
}

#endif
