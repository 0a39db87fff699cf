/* wide_decode_vec.h - the wide decoder with vectors, whatever their width: included by the file of an instruction set
 * after it has defined TARGET and what it has of its own:
 *
 *     struct lanes                       states in vectors, and `p`, where the next bits are; lanes_load, lanes_store
 *     struct names                       the names of a row's 64 positions; names_load
 *     row                                the next row, with WFS_WIDE_ROW_BYTES of stream left
 *     names_to_fields                    the fields of a row; returns which positions are escapes
 *     unit_fields, moded_fields          unit_row and moded_row for row r of *f
 *
 * A superrow is first decoded to names, then its fields and rest bits are merged. Hot loop: decode_fields().
 */

#define INLINE static WFS_ALWAYS_INLINE TARGET

/* ---- fields ---- */

/* The fields of `rows` rows from word `first` on. False: stream or escapes run out. */
static WFS_NOINLINE TARGET bool decode_fields(struct wfs_wide_walk *walk, const struct wfs_scratch *scratch,
					      struct wfs_wide_state *state, size_t first, unsigned rows,
					      struct wfs_wide_fields *f)
{
	struct lanes l = lanes_load(state);
	u64 escapes[WFS_SUPER_ROWS];

	for (unsigned r = 0; r < rows; r++, first += WFS_LANES) {
		const struct wfs_wide_decode_table *one = wfs_wide_walk_row(walk, first);
		u8 careful[WFS_LANES];
		struct names names;

		if (wfs_unlikely(walk->v->stream_end - l.p < WFS_WIDE_ROW_BYTES)) {
			lanes_store(&l, state);
			if (!wfs_wide_row_careful(walk, one, state, careful))
				return false;
			l = lanes_load(state);
			names = names_load(careful);
		} else if (wfs_likely(one)) {
			names = row(&l, scratch, one, NULL);
		} else {
			names = row(&l, scratch, NULL, walk->of);
		}
		escapes[r] = names_to_fields(walk->pool, names, f->hi + WFS_LANES * r, f->lo + WFS_LANES * r);
	}
	lanes_store(&l, state);
	for (unsigned r = 0; r < rows; r++)
		if (wfs_unlikely(escapes[r]) && !wfs_wide_name_escapes(walk, escapes[r], r, f))
			return false;
	return true;
}

/* ---- superrows ---- */

/* A superrow in mode 0 of a split that is a constant. */
INLINE void merge(const struct wfs_split s, const struct wfs_wide_fields *f, const u8 *rest, u8 *raw)
{
	struct unit u;

	unit_start(&u, s, rest);
#pragma GCC unroll 8
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += WFS_LANES * s.word)
		unit_fields(&u, s, r, f, raw);
}

/* Any superrow of words of a size that is a constant. */
INLINE void merge_any(struct wfs_split s, const unsigned word, unsigned mode, const struct wfs_wide_fields *f,
		      const u8 *rest, u8 *raw)
{
	struct moded m;

	moded_start(&m, s, mode, rest);
	for (unsigned r = 0; r < WFS_SUPER_ROWS; r++, raw += WFS_LANES * word)
		moded_fields(&m, word, r, f, raw);
}

static WFS_NOINLINE TARGET void merge_moded(struct wfs_split s, unsigned mode, const struct wfs_wide_fields *f,
					    const u8 *rest, u8 *raw)
{
	switch (s.word) {
	case 1:
		merge_any(s, 1, mode, f, rest, raw);
		break;
	case 2:
		merge_any(s, 2, mode, f, rest, raw);
		break;
	case 4:
		merge_any(s, 4, mode, f, rest, raw);
		break;
	default:
		merge_any(s, 8, mode, f, rest, raw);
	}
}

/* Puts a superrow's words together from their fields and their rest bits, in mode 0. */
typedef void merge_fn(const struct wfs_wide_fields *f, const u8 *rest, u8 *raw);

/* Splits that have a merge of their own, as X(word, rot, field): BF16 and F16, F32, bytes. */
/* clang-format off */
#define SHAPES(X)                                                                                                      \
	X(2, 1, 6) X(2, 1, 7) X(2, 1, 8) X(2, 1, 9) X(2, 1, 10) X(2, 1, 11) X(2, 1, 12)                                \
	X(4, 1, 9) X(4, 1, 10) X(4, 1, 11) X(4, 1, 12) X(1, 1, 5) X(1, 1, 6) X(1, 1, 7) X(1, 0, 8)
/* clang-format on */

#define DEFINE_MERGE(word, rot, field)                                                                                 \
	static WFS_NOINLINE TARGET void merge_##word##_##rot##_##field(const struct wfs_wide_fields *f,                \
								       const u8 *rest, u8 *raw)                        \
	{                                                                                                              \
		merge(wfs_split_make(word, rot, field), f, rest, raw);                                                 \
	}
SHAPES(DEFINE_MERGE)

/* The one for s in mode 0; NULL: it has none of its own. */
static merge_fn *choose(struct wfs_split s)
{
#define RETURN_IF(word_, rot_, field_)                                                                                 \
	if (s.word == word_ && s.rot == rot_ && s.field == field_)                                                     \
		return merge_##word_##_##rot_##_##field_;
	SHAPES(RETURN_IF)
	return NULL;
}

/* ---- blocks ---- */

static TARGET enum wfs_status decode(const struct wfs_wide_view *v, const struct wfs_wide_decode_pool *pool,
				     struct wfs_split s, u8 *raw, struct wfs_scratch *scratch, const char **reason_ret)
{
	const size_t last = (v->n - 1) / WFS_SUPER;
	struct wfs_wide_walk walk = wfs_wide_walk_start(v, pool, s);
	struct wfs_wide_state state = {.p = v->stream};
	merge_fn *const merge_plain = choose(s);
	const char *reason = WFS_SPLIT_UNPROVEN;
	const u8 *rest = v->rest;
	struct wfs_wide_fields f;

	memcpy(state.lane, v->states, sizeof(state.lane));
	for (size_t super = 0; super < last; super++) {
		const unsigned mode = v->nr_modes ? v->mode[super] : 0;
		u8 *out = raw + super * WFS_SUPER * s.word;

		if (!decode_fields(&walk, scratch, &state, super * WFS_SUPER, WFS_SUPER_ROWS, &f))
			goto out;
		if (merge_plain && !mode)
			merge_plain(&f, rest, out);
		else
			merge_moded(s, mode, &f, rest, out);
		rest += 8 * WFS_SUPER_ROWS * wfs_mode_rest_bits(s, mode);
	}
	if (decode_fields(&walk, scratch, &state, last * WFS_SUPER, wfs_last_rows(v->n), &f))
		reason = wfs_wide_finish(&walk, &state, s, &f, rest, raw);
out:
	if (reason)
		*reason_ret = reason;
	return reason ? WFS_BAD_DATA : WFS_OK;
}
