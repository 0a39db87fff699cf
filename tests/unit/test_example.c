/* test_example.c [FORMAT.md]: the worked example of FORMAT.md section 8, byte for byte as it is printed there, decodes
 * to the original that its formula describes. Run from the top of the source tree, or give the page.
 */
#include "test_util.h"

#include "wfs_internal.h"

#include <ctype.h>
#include <sys/mman.h>

enum { RAW_LEN = 1096, NR_WORDS = 512, HEAD = 4096, ROOM = 16384 };

static void make_original(u8 *raw)
{
	static const char header[] = "{\"w\":{\"dtype\":\"BF16\",\"shape\":[512],\"data_offsets\":[0,1024]}}    ";
	u32 x = 1;

	CHECK(sizeof(header) - 1 == 64);
	wfs_store64(raw, 64);
	memcpy(raw + 8, header, 64);
	for (int i = 0; i < NR_WORDS; i++) {
		u32 r;

		x = x * 1103515245 + 12345;
		r = x >> 16;
		wfs_store16(raw + 72 + 2 * i,
			    (u16)((r & 1) << 15 | (126 - (u32)__builtin_ctz((r >> 1 & 255) | 256)) << 7 |
				  (r >> 12 & 7) << 4));
	}
}

/* "1102  01 02 ...  comment": puts the bytes of such a line at their offset; returns how many there are. */
static size_t parse_line(const char *line, u8 *file)
{
	size_t nr = 0;
	char *end;
	u64 off = strtoull(line, &end, 16);

	if (end != line + 4 || strncmp(end, "  ", 2) != 0)
		return 0;
	for (end += 2; isxdigit((unsigned char)end[0]) && isxdigit((unsigned char)end[1]); end += 3) {
		const char digits[3] = {end[0], end[1], 0};

		CHECK(off + nr < ROOM);
		file[off + nr++] = (u8)strtoul(digits, NULL, 16);
		if (end[2] != ' ')
			break;
	}
	return nr;
}

static size_t parse_page(const char *path, u8 *file)
{
	FILE *page = fopen(path, "r");
	bool here = false;
	size_t nr = 0;
	char line[512];

	CHECK_MSG(page, "%s", path);
	while (fgets(line, sizeof(line), page)) {
		if (!strncmp(line, "## ", 3))
			here = strstr(line, "worked example") != NULL;
		if (here)
			nr += parse_line(line, file);
	}
	fclose(page);
	return nr;
}

int main(int argc, char **argv)
{
	static u8 file[ROOM], raw[RAW_LEN], got[RAW_LEN];
	struct wfs_scratch *scratch = wfs_scratch_new();
	size_t nr = parse_page(argc > 1 ? argv[1] : "codec/FORMAT.md", file);
	u64 file_len = wfs_load64(file + 40), payload_end = wfs_load64(file + 48) + wfs_load64(file + 56);
	u64 meta_len = wfs_load64(file + 64);
	int fd = memfd_create("example", 0);
	struct wfs_reader *reader;
	struct wfs_error err = {0};
	struct wfs_info info;

	/* Every byte but the head's zeros is printed. */
	CHECK_MSG(nr == 0x70 + 8 + meta_len + wfs_load64(file + 56), "%zu bytes", nr);
	CHECK(file_len <= ROOM && payload_end + meta_len + HEAD == file_len);
	memcpy(file + payload_end, file + HEAD, meta_len);
	memcpy(file + payload_end + meta_len, file, HEAD);
	CHECK(scratch && fd >= 0 && pwrite(fd, file, file_len, 0) == (ssize_t)file_len);
	make_original(raw);
	for (int cpu = WFS_CPU_AUTO; cpu < WFS_NR_CPUS; cpu++) {
		struct wfs_reader_opts opts = {.cpu = (enum wfs_cpu)cpu};

		if (!wfs_cpu_supported(opts.cpu))
			continue;
		CHECK_MSG(wfs_reader_open(fd, &opts, &reader, &err) == WFS_OK, "%s", err.reason);
		wfs_reader_info(reader, &info);
		CHECK(info.head.raw_len == RAW_LEN && info.nr_regions == 2 && info.nr_blocks == 2 &&
		      info.nr_pools == 1);
		CHECK(info.head.mtime_sec == 1700000000 && info.head.mtime_nsec == 500000000);
		CHECK_MSG(wfs_reader_read(reader, 0, got, RAW_LEN, scratch, &err) == WFS_OK, "%s", err.reason);
		CHECK(!memcmp(got, raw, RAW_LEN));
		CHECK_MSG(wfs_reader_verify(reader, 1, NULL, NULL, &err) == WFS_OK, "%s", err.reason);
		wfs_reader_free(reader);
	}
	wfs_scratch_free(scratch);
	close(fd);
	PASS("the worked example of the format document decodes");
	return 0;
}
