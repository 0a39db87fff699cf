/* test_fs_streams.c - which readers are followed how far: sequential ones, out of order, several, strided, random,
 * tensors. */
#include "test_util.h"

#include "streams.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static const uint64_t RAW_LEN = UINT64_C(2000) * MIB;

struct sum {
	uint64_t asks, ahead; /* bytes; ahead: of all ranges returned */
	uint64_t end;	      /* the furthest */
};

static struct wfsd_ask ask_of(uint64_t off, uint64_t len)
{
	return (struct wfsd_ask){.off = off,
				 .len = len,
				 .late = true,
				 .raw_len = RAW_LEN,
				 .block_bytes = 256 * KIB,
				 .kernel_bytes = MIB,
				 .room_bytes = 64 * MIB};
}

/* Every range lies beyond the read, inside the file, and no two of one reader overlap. */
static void ask(struct wfsd_streams *s, const struct wfsd_ask *a, struct sum *sum)
{
	uint64_t from = 0, len = wfsd_streams_ask(s, a, &from);

	sum->asks += a->len;
	if (!len)
		return;
	CHECK(from >= a->off + a->len && from + len <= a->raw_len);
	CHECK(from >= sum->end);
	CHECK(wfsd_streams_wanted(s, from, from + len) == from);
	sum->ahead += len;
	sum->end = from + len;
}

static void test_sequential(void)
{
	static const uint64_t lens[] = {4 * KIB, 128 * KIB, MIB};

	for (int i = 0; i < 3; i++) {
		struct wfsd_streams s = {0};
		struct sum sum = {0};
		struct wfsd_ask a = ask_of(0, lens[i]);

		for (; a.off < RAW_LEN; a.off += a.len) {
			uint64_t before = sum.ahead;
			ask(&s, &a, &sum);
			CHECK(a.off + a.len > a.kernel_bytes || sum.ahead == before);
			CHECK(sum.end <= a.off + a.len + 32 * MIB);
		}
		/* All but the first reads was ready, in one piece, to the very end; nothing was left behind. */
		CHECK(sum.end == RAW_LEN && sum.ahead >= RAW_LEN - 2 * MIB && s.wasted_bytes == 0);
	}
	PASS("a sequential reader is led to the end of the file");
}

static void test_out_of_order(void)
{
	struct wfsd_streams s = {0};
	struct sum sum = {0};

	/* As several threads take the kernel's requests: each group of four backwards. */
	for (uint64_t group = 0; group < 100; group++)
		for (uint64_t i = 4; i--;) {
			struct wfsd_ask a = ask_of((group * 4 + i) * MIB, MIB);
			uint64_t from = 0, len = wfsd_streams_ask(&s, &a, &from);
			CHECK(!len || from >= sum.end);
			sum.end = len ? from + len : sum.end;
		}
	CHECK(sum.end > 390 * MIB && s.wasted_bytes == 0);
	PASS("a reader whose requests come out of order is one reader");
}

static void test_interleaved(void)
{
	struct wfsd_streams s = {0};
	struct sum sum[8] = {{0}};

	for (uint64_t step = 0; step < 200; step++)
		for (uint64_t i = 0; i < 8; i++) {
			struct wfsd_ask a = ask_of(i * 200 * MIB + step * (i + 1) * 128 * KIB, (i + 1) * 128 * KIB);
			ask(&s, &a, &sum[i]);
		}
	for (uint64_t i = 0; i < 8; i++)
		CHECK(sum[i].end >= i * 200 * MIB + 200 * (i + 1) * 128 * KIB - 2 * MIB);
	CHECK(s.wasted_bytes == 0);
	PASS("eight readers of one file at eight speeds are told apart");
}

/* Eight threads that share a file: none is led into what its neighbour has read, also when that came out of order. */
static void test_neighbours(void)
{
	struct wfsd_streams s = {0};
	struct sum sum[8] = {{0}};

	for (uint64_t step = 0; step < 40; step++)
		for (uint64_t i = 0; i < 8; i++) {
			struct wfsd_ask a = ask_of((i * 40 + (step < 2 ? 1 - step : step)) * MIB, MIB);
			ask(&s, &a, &sum[i]);
			CHECK(i == 7 || sum[i].end <= (i + 1) * 40 * MIB);
		}
	for (uint64_t i = 0; i < 7; i++)
		CHECK(sum[i].end == (i + 1) * 40 * MIB);
	PASS("a reader is led up to where the next one began");
}

static void test_strided(void)
{
	struct wfsd_streams s = {0};
	struct sum near = {0}, far = {0};

	/* Gaps below a block leave no block out: decoding ahead is right. */
	for (uint64_t row = 0; row < 2000; row++) {
		struct wfsd_ask a = ask_of(row * 128 * KIB, 16 * KIB);
		ask(&s, &a, &near);
	}
	CHECK(near.end >= 1990 * 128 * (uint64_t)KIB);
	/* Wide gaps do. */
	s = (struct wfsd_streams){0};
	for (uint64_t row = 0; row < 1000; row++) {
		struct wfsd_ask a = ask_of(row * 2 * MIB, 256 * KIB);
		ask(&s, &a, &far);
	}
	CHECK(far.ahead == 0);
	PASS("strided readers are followed when they touch every block");
}

/* Blocks that are decoded ahead and that no read of len bytes, with gaps between them, touches: one in ten at most. */
static void check_gaps(uint64_t block_bytes, uint64_t len, uint64_t gap)
{
	enum { MAX_BLOCKS = 2000 * 16 };
	static bool ahead[MAX_BLOCKS], touched[MAX_BLOCKS];
	struct wfsd_streams s = {0};
	struct wfsd_ask a = ask_of(0, len);
	uint64_t decoded = 0, unread = 0;

	memset(ahead, 0, sizeof(ahead));
	memset(touched, 0, sizeof(touched));
	a.block_bytes = block_bytes;
	for (; a.off + len <= RAW_LEN; a.off += len + gap) {
		uint64_t from = 0, n = wfsd_streams_ask(&s, &a, &from);
		for (uint64_t b = a.off / block_bytes; b <= (a.off + len - 1) / block_bytes; b++)
			touched[b] = true;
		for (uint64_t b = from / block_bytes; n && b <= (from + n - 1) / block_bytes; b++)
			ahead[b] = true;
	}
	for (uint64_t b = 0; b < RAW_LEN / block_bytes; b++) {
		decoded += ahead[b] || touched[b];
		unread += ahead[b] && !touched[b];
	}
	CHECK_MSG(unread * 10 <= decoded, "blocks of %d KiB, reads of %d, gaps of %d: of %d blocks %d for nobody",
		  (int)(block_bytes / KIB), (int)(len / KIB), (int)(gap / KIB), (int)decoded, (int)unread);
}

static void test_gaps(void)
{
	for (uint64_t block_bytes = 64 * KIB; block_bytes <= MIB; block_bytes *= 2)
		for (uint64_t len = 4 * KIB; len <= MIB; len *= 2)
			for (uint64_t gap = 4 * KIB; gap <= 8 * MIB; gap *= 2)
				check_gaps(block_bytes, len, gap);
	PASS("what a strided reader leaves out is hardly decoded, whatever his step and the blocks");
}

/* Whatever the reads are: what is ahead or left behind is at most 8 MiB and 1/16 of what was asked for. */
static void test_bound(void)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct wfsd_streams s = {0};
		uint64_t state = seed, asked = 0, ahead = 0, reader = 0, left = 0;

		for (unsigned i = 0; i < 20000; i++) {
			uint64_t len = UINT64_C(4096) << test_rand_below(&state, 9), from = 0;
			if (!left) {
				reader = test_rand_below(&state, RAW_LEN - 64 * MIB);
				left = 1 + test_rand_below(&state, seed % 4 ? 3 : 60);
			}
			struct wfsd_ask a = ask_of(reader, len);
			uint64_t n = wfsd_streams_ask(&s, &a, &from);
			CHECK(!n || (from >= a.off && from + n <= RAW_LEN));
			asked += len;
			ahead = 0;
			for (int k = 0; k < WFSD_NR_STREAMS; k++) {
				ahead += s.stream[k].missed;
				if (s.stream[k].ahead > s.stream[k].next)
					ahead += s.stream[k].ahead - s.stream[k].next;
			}
			CHECK(s.wasted_bytes + ahead <= 8 * MIB + asked / 16);
			reader += len + (seed % 3 ? 0 : test_rand_below(&state, MIB));
			left--;
		}
	}
	PASS("work for nothing is bounded, whatever the reads");
}

static void test_tensors(void)
{
	static const struct wfsd_span tensors[] = {{100, 40 * MIB}, {40 * MIB, 80 * MIB}, {120 * MIB, 160 * MIB}};
	struct wfsd_streams s = {0};
	struct sum sum = {0};
	struct wfsd_ask a = ask_of(40 * MIB, MIB);

	a.tensors = tensors;
	a.nr_tensors = 3;
	for (; a.off < 80 * MIB; a.off += a.len) {
		ask(&s, &a, &sum);
		CHECK(sum.end <= 80 * MIB);
	}
	CHECK(sum.end == 80 * MIB && s.wasted_bytes == 0);
	/* He goes on past the end: so he reads the file, not that tensor. */
	ask(&s, &a, &sum);
	CHECK(sum.end > 80 * MIB);
	/* From the front: nothing holds him back. */
	s = (struct wfsd_streams){0};
	sum = (struct sum){0};
	bool crossed = false;
	for (a.off = 0; a.off < 39 * MIB; a.off += a.len) {
		ask(&s, &a, &sum);
		crossed |= sum.end > 40 * MIB;
	}
	a.off = 39 * MIB;
	ask(&s, &a, &sum);
	CHECK(!crossed && sum.end == 40 * MIB);
	for (; a.off < 79 * MIB; a.off += a.len) {
		ask(&s, &a, &sum);
		crossed |= sum.end > 80 * MIB;
	}
	CHECK(crossed);
	PASS("who reads one tensor is led to its end, who crosses one beyond the next");
}

static void test_window(void)
{
	struct wfsd_streams s = {0};
	struct sum sum = {0};
	struct wfsd_ask a = ask_of(0, MIB);

	/* In time with the first window: it stays. */
	for (; a.off < 200 * MIB; a.off += a.len) {
		a.late = a.off <= a.kernel_bytes;
		ask(&s, &a, &sum);
		CHECK(sum.end <= a.off + a.len + 2 * MIB);
	}
	/* Late: it grows, up to 32 MiB. */
	a.late = true;
	for (; a.off < 1000 * MIB; a.off += a.len)
		ask(&s, &a, &sum);
	CHECK(sum.end == a.off + 32 * MIB);
	/* Evicted unread: it shrinks. */
	for (int i = 0; i < 3; i++, a.off += a.len) {
		a.nr_evicted++;
		ask(&s, &a, &sum);
	}
	uint64_t end = sum.end;
	for (a.late = false; a.off < 1050 * MIB; a.off += a.len)
		ask(&s, &a, &sum);
	CHECK(end == 1032 * MIB && sum.end <= a.off + 4 * MIB);
	/* No room, nothing ahead. */
	a.room_bytes = 0;
	end = sum.end;
	for (; a.off < 1200 * MIB; a.off += a.len)
		ask(&s, &a, &sum);
	CHECK(sum.end == end);
	PASS("the window grows while the reader waits and shrinks when blocks are evicted");
}

int main(void)
{
	test_sequential();
	test_out_of_order();
	test_interleaved();
	test_neighbours();
	test_strided();
	test_gaps();
	test_bound();
	test_tensors();
	test_window();
	return 0;
}
