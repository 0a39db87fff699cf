/* manifest_text.h - what reading and writing a manifest share: its words, escapes, limits. Private to manifest_*.c. */
#ifndef WFS_MANIFEST_TEXT_H
#define WFS_MANIFEST_TEXT_H

#include "manifest.h"
#include "wfs_internal.h"

#define WFS_MANIFEST_MAGIC   "weightfs-manifest "
#define WFS_MANIFEST_VERSION "1"
#define WFS_MANIFEST_SUFFIX  ".wfs"

enum {
	WFS_SIGNATURE_BYTES = 64,
	WFS_SIGNATURE_CHARS = 88, /* in base64, with padding */
	WFS_DIGEST_CHARS = 2 * WFS_DIGEST_BYTES,
};
#define WFS_MANIFEST_MAX_SIZE (UINT64_C(1) << 62)

/* Whether a byte of a path or target stands for itself. */
static inline bool wfs_manifest_is_safe(u8 byte)
{
	return byte > ' ' && byte <= '~' && byte != '%';
}

static inline u64 wfs_manifest_nr_pieces(u64 size)
{
	return WFS_CEIL_DIV(size, (u64)WFS_MANIFEST_PIECE_BYTES);
}

/* manifest_key.c: Ed25519 and SHA-256. false: out of memory, or libcrypto lacks it. */
bool wfs_digest(const void *bytes, size_t len, u8 digest_ret[WFS_DIGEST_BYTES]) WFS_MUST_CHECK;
bool wfs_signature_make(const struct wfs_signing_key *key, const void *text, size_t len,
			u8 signature_ret[WFS_SIGNATURE_BYTES]) WFS_MUST_CHECK;
/* WFS_BAD_CHECKSUM: the signature is not right. WFS_NO_MEMORY: that could not be found out, as above. */
enum wfs_status wfs_signature_check(const u8 key[WFS_PUBLIC_KEY_BYTES], const void *text, size_t len,
				    const u8 signature[WFS_SIGNATURE_BYTES]) WFS_MUST_CHECK;

#endif
