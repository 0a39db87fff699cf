/* wfs_format.h - the on-disk structures of a container (FORMAT.md section 1), exactly as they lie in the file. Private.
 *
 * Every field is naturally aligned and little-endian, so the structs are the bytes; the asserts keep it so. Nothing
 * read into one of these may be believed before container_read.c or meta_read.c has checked it.
 */
#ifndef WFS_FORMAT_H
#define WFS_FORMAT_H

#include "wfs_internal.h"

enum {
	WFS_MAJOR = 1,
	WFS_MINOR = 0,
	WFS_HEAD_BYTES = 4096,
	WFS_MAGIC_BYTES = 8,
	WFS_MIN_BLOCK_LOG2 = 16,
	WFS_MAX_BLOCK_LOG2 = 20,
	WFS_DEFAULT_BLOCK_LOG2 = 18,
	WFS_MAX_SECTIONS = 64,
	WFS_MAX_CODERS = 65534,
	WFS_MAX_POOLS = 4096,
	WFS_MAX_WIDE_POOLS = 64,
	WFS_MAX_GRIDS = 16384,
	WFS_MAX_REGIONS = 1 << 24,
	WFS_MAX_REPEATS = 1 << 16, /* regions that are constant or copy */
	WFS_LENGTH_PLANES = 3,
	WFS_SELECTOR_PLANES = 2,
	WFS_HASH_BYTES = 8,
	WFS_SHA256_BYTES = 32,
	WFS_LZ4_MAX_RATIO = 255,
	WFS_LZ4_MAX_RAW = 0x7e000000, /* 2^31 - 2^25: what liblz4 can make */
};
#define WFS_MAX_RAW_LEN	 (UINT64_C(1) << 62)
#define WFS_MAX_NSEC	 999999999u
#define WFS_MAX_FILE_LEN ((UINT64_C(1) << 63) - 1)

/* Not text (89), broken by newline conversion and by 7-bit transfer; reads "WFS" in a dump. */
static const u8 wfs_magic[WFS_MAGIC_BYTES] = {0x89, 'W', 'F', 'S', '\r', '\n', 0x1a, '\n'};

enum wfs_section_kind {
	WFS_SECTION_REGIONS = 1,
	WFS_SECTION_CODERS = 2,
	WFS_SECTION_POOLS = 3,
	WFS_SECTION_LENGTHS = 4,
	WFS_SECTION_SELECTORS = 5,
	WFS_SECTION_HASHES = 6,
	WFS_SECTION_SHA256 = 7,
	WFS_SECTION_GRIDS = 8,
	WFS_SECTION_WIDE_POOLS = 9,
	WFS_NR_SECTION_KINDS = 10,
	WFS_SECTION_SKIPPED = 0x8000, /* unknown kinds from here on may be ignored */
};

/* 1.1: at offset 0 and at the end of the file. */
struct wfs_disk_head {
	u8 magic[WFS_MAGIC_BYTES];
	u16 major, minor;
	u32 incompat;
	u64 raw_len;
	int64_t mtime_sec;
	u32 mtime_nsec;
	u8 block_log2;
	u8 zero[3];
	u64 file_len, payload_off, payload_len, meta_len, meta_xxh;
	u8 sha256[WFS_SHA256_BYTES];
	u8 reserved[3976];
	u64 head_xxh;
};
_Static_assert(sizeof(struct wfs_disk_head) == WFS_HEAD_BYTES, "head size");
_Static_assert(offsetof(struct wfs_disk_head, raw_len) == 16, "head layout");
_Static_assert(offsetof(struct wfs_disk_head, mtime_sec) == 24, "head layout");
_Static_assert(offsetof(struct wfs_disk_head, block_log2) == 36, "head layout");
_Static_assert(offsetof(struct wfs_disk_head, file_len) == 40, "head layout");
_Static_assert(offsetof(struct wfs_disk_head, meta_len) == 64, "head layout");
_Static_assert(offsetof(struct wfs_disk_head, sha256) == 80, "head layout");
_Static_assert(offsetof(struct wfs_disk_head, reserved) == 112, "head layout");
_Static_assert(offsetof(struct wfs_disk_head, head_xxh) == 4088, "head layout");

/* 1.2: start of the metadata, followed by nr_sections times struct wfs_disk_section, then the bodies. */
struct wfs_disk_meta {
	u32 nr_sections, zero;
};
struct wfs_disk_section {
	u16 kind, coding;
	u32 zero;
	u64 comp_len, raw_len;
};
_Static_assert(sizeof(struct wfs_disk_meta) == 8, "metadata layout");
_Static_assert(sizeof(struct wfs_disk_section) == 24, "section layout");
_Static_assert(offsetof(struct wfs_disk_section, comp_len) == 8, "section layout");

/* 1.3 */
struct wfs_disk_region {
	u64 start, len;
	u8 kind, phase;
	u16 coder;
	u32 zero0;
	u64 arg, zero1;
};
_Static_assert(sizeof(struct wfs_disk_region) == 40, "region layout");
_Static_assert(offsetof(struct wfs_disk_region, kind) == 16, "region layout");
_Static_assert(offsetof(struct wfs_disk_region, coder) == 18, "region layout");
_Static_assert(offsetof(struct wfs_disk_region, arg) == 24, "region layout");

/* 1.4 */
struct wfs_disk_coder {
	u8 coding, word, rot, field;
	u16 pool, grid;
	u8 border[8];
};
_Static_assert(sizeof(struct wfs_disk_coder) == 16, "coder layout");
_Static_assert(offsetof(struct wfs_disk_coder, pool) == 4, "coder layout");
_Static_assert(offsetof(struct wfs_disk_coder, border) == 8, "coder layout");

#endif
