/* manifest.h - the signed manifest of a store (codec/MANIFEST.md): what it holds, with a SHA-256 of all content.
 *
 * For weightfs and weightfsd; not part of the installed library. Errors are as in wfs.h: BAD_CHECKSUM: the signature,
 * the key or a digest is not right; BAD_DATA: a rule of MANIFEST.md is broken; UNSUPPORTED: a newer version.
 *
 * Threads: an open manifest never changes; any number of threads may use one at the same time.
 *
 * How a reader serves signed bytes only:
 *   1. wfs_public_key_read, then wfs_manifest_read of WFS_MANIFEST_NAME (opened without following a link).
 *   2. A name of the store: wfs_manifest_find. NULL, or another kind than what lies there: it does not exist.
 *   3. A container: wfs_reader_open with opts.check_sha256, then wfs_manifest_check_container. From then on every byte
 *      that this reader gives (wfs_block_decode, constants, copies) was signed.
 *   4. An ordinary file: its size must be entry->size; read whole pieces and call wfs_manifest_check_piece on each.
 *   5. A symbolic link: what readlink gives must be entry->target.
 */
#ifndef WFS_MANIFEST_H
#define WFS_MANIFEST_H

#include "wfs.h"

#define WFS_MANIFEST_NAME      ".weightfs-manifest" /* at the top of the store */
#define WFS_MANIFEST_MAX_BYTES ((size_t)1 << 30)

enum {
	WFS_PUBLIC_KEY_BYTES = 32,
	WFS_DIGEST_BYTES = 32,
	WFS_MANIFEST_PIECE_BYTES = 1 << 18,
	WFS_MANIFEST_MAX_PATH = 65535,
	WFS_MANIFEST_MAX_NAME = 255,
	WFS_MANIFEST_MAX_TARGET = 4095,
};

enum wfs_manifest_kind { WFS_MANIFEST_DIR = 1, WFS_MANIFEST_SYMLINK, WFS_MANIFEST_CONTAINER, WFS_MANIFEST_FILE };

struct wfs_manifest_entry {
	enum wfs_manifest_kind kind;
	const char *path;      /* in the store (a container's with its ".wfs"), unescaped; checked: it stays inside */
	const char *target;    /* symlink */
	uint64_t size;	       /* file: of the file; container: of the original */
	const uint8_t *sha256; /* likewise */
	const uint8_t *meta_sha256; /* container: of its stored metadata */
	const uint8_t *piece;	    /* file: nr_pieces SHA-256, one after another */
	uint64_t nr_pieces;	    /* ceil(size / WFS_MANIFEST_PIECE_BYTES) */
};
/* What makes 12 times: an entry of the least line of 6 bytes, and the text itself. */
_Static_assert(sizeof(struct wfs_manifest_entry) <= 64, "memory is at most 12 times the manifest");

struct wfs_manifest;

/* ---- keys: PEM, as `openssl genpkey -algorithm ed25519` makes them ---- */

/* Read a public key from the rest of fd (a file or a pipe), at most 64 KiB. BAD_DATA: not one of Ed25519. */
WFS_MUST_CHECK enum wfs_status wfs_public_key_read(int fd, uint8_t key_ret[WFS_PUBLIC_KEY_BYTES],
						   struct wfs_error *err);

/* A private key. The same; one that needs a passphrase is refused. The caller frees it. */
struct wfs_signing_key;
WFS_MUST_CHECK enum wfs_status wfs_signing_key_read(int fd, struct wfs_signing_key **key_ret, struct wfs_error *err);
void wfs_signing_key_free(struct wfs_signing_key *key); /* may be NULL */
void wfs_signing_key_public(const struct wfs_signing_key *key, uint8_t key_ret[WFS_PUBLIC_KEY_BYTES]);

/* ---- reading ---- */

/* Read the whole manifest fd (a regular file), check its signature with the key, then all its rules. Memory: at most 12
 * times the file's size. The caller frees it. */
WFS_MUST_CHECK enum wfs_status wfs_manifest_read(int fd, const uint8_t key[WFS_PUBLIC_KEY_BYTES],
						 struct wfs_manifest **manifest_ret, struct wfs_error *err);
/* The same from memory: text is not kept. key NULL: signature and key are not looked at but for their form, which is
 * for tests only. */
WFS_MUST_CHECK enum wfs_status wfs_manifest_parse(const void *text, size_t len, const uint8_t *key,
						  struct wfs_manifest **manifest_ret, struct wfs_error *err);
void wfs_manifest_free(struct wfs_manifest *manifest); /* may be NULL */

/* All entries, in the byte order of their paths: a directory before what it holds (but not right before). */
const struct wfs_manifest_entry *wfs_manifest_entries(const struct wfs_manifest *manifest, size_t *nr_ret);
/* The entry of a path, "a/b.wfs", or NULL. Logarithmic. */
const struct wfs_manifest_entry *wfs_manifest_find(const struct wfs_manifest *manifest, const char *path);
/* SHA-256 of the whole manifest file. */
const uint8_t *wfs_manifest_sha256(const struct wfs_manifest *manifest);

/* Whether an open container is the entry's: size, SHA-256 of the original, metadata; and whether its reader was opened
 * with check_sha256, without which it would give out more than was signed (BAD_ARGUMENT). entry is a container's. */
WFS_MUST_CHECK enum wfs_status wfs_manifest_check_container(const struct wfs_manifest_entry *entry,
							    const struct wfs_reader *reader, struct wfs_error *err);
/* Bytes of piece `index` of an ordinary file; index < nr_pieces. */
size_t wfs_manifest_piece_len(const struct wfs_manifest_entry *entry, uint64_t index);
/* Whether bytes (wfs_manifest_piece_len of them) are that piece's. err->block is the piece's index. */
WFS_MUST_CHECK enum wfs_status wfs_manifest_check_piece(const struct wfs_manifest_entry *entry, uint64_t index,
							const void *bytes, struct wfs_error *err);

/* ---- writing ---- */

struct wfs_manifest_writer;
/* NULL: out of memory. key must live as long. */
struct wfs_manifest_writer *wfs_manifest_writer_new(const struct wfs_signing_key *key);
void wfs_manifest_writer_free(struct wfs_manifest_writer *writer); /* may be NULL */
/* Add an entry, in ascending order of paths, a directory before what it holds. */
WFS_MUST_CHECK enum wfs_status wfs_manifest_add(struct wfs_manifest_writer *writer,
						const struct wfs_manifest_entry *entry, struct wfs_error *err);
/* Sign. *text_ret is the writer's and lives as long. Every manifest that this gives passes wfs_manifest_parse: a rule
 * that the entries break is found here at the latest. */
WFS_MUST_CHECK enum wfs_status wfs_manifest_sign(struct wfs_manifest_writer *writer, const void **text_ret,
						 size_t *len_ret, struct wfs_error *err);

#endif
