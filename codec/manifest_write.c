/* manifest_write.c - write a manifest and sign it (MANIFEST.md).
 *
 * What was written is parsed before it is given out: the reader is the one place that knows the rules.
 */
#include "manifest_text.h"

#include <stdlib.h>

struct wfs_manifest_writer {
	const struct wfs_signing_key *key;
	u8 *text;
	size_t len, room;
	bool full; /* out of memory, or longer than a manifest may be */
};

/* Room for len more bytes, or NULL. */
static u8 *reserve(struct wfs_manifest_writer *w, size_t len)
{
	size_t room = WFS_MAX(w->room, (size_t)4096);
	u8 *text;

	if (w->full || len > WFS_MANIFEST_MAX_BYTES - w->len) {
		w->full = true;
		return NULL;
	}
	while (room < w->len + len)
		room *= 2;
	if (room > w->room) {
		text = realloc(w->text, room);
		if (!text) {
			w->full = true;
			return NULL;
		}
		w->text = text;
		w->room = room;
	}
	return w->text + w->len;
}

static void put(struct wfs_manifest_writer *w, const void *bytes, size_t len)
{
	u8 *out = reserve(w, len);

	if (out) {
		memcpy(out, bytes, len);
		w->len += len;
	}
}

static void put_text(struct wfs_manifest_writer *w, const char *text)
{
	put(w, text, strlen(text));
}

static void put_digest(struct wfs_manifest_writer *w, const u8 digest[WFS_DIGEST_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	char text[WFS_DIGEST_CHARS];

	for (int i = 0; i < WFS_DIGEST_BYTES; i++) {
		text[2 * i] = digits[digest[i] >> 4];
		text[2 * i + 1] = digits[digest[i] & 15];
	}
	put(w, text, sizeof(text));
}

static void put_size(struct wfs_manifest_writer *w, u64 size)
{
	char text[20], *start = text + sizeof(text);

	do
		*--start = (char)('0' + size % 10);
	while (size /= 10);
	put(w, start, (size_t)(text + sizeof(text) - start));
}

static void put_escaped(struct wfs_manifest_writer *w, const char *string)
{
	static const char digits[] = "0123456789abcdef";

	for (const u8 *s = (const u8 *)string; *s; s++) {
		const char escape[3] = {'%', digits[*s >> 4], digits[*s & 15]};

		if (wfs_manifest_is_safe(*s))
			put(w, s, 1);
		else
			put(w, escape, sizeof(escape));
	}
}

static void put_signature(struct wfs_manifest_writer *w, const u8 signature[WFS_SIGNATURE_BYTES])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (int i = 0; i < WFS_SIGNATURE_BYTES; i += 3) {
		bool last = i + 1 == WFS_SIGNATURE_BYTES; /* one byte is left of 64 */
		u32 bits = (u32)signature[i] << 16 | (last ? 0 : (u32)signature[i + 1] << 8 | (u32)signature[i + 2]);
		const char text[4] = {digits[bits >> 18], digits[bits >> 12 & 63], last ? '=' : digits[bits >> 6 & 63],
				      last ? '=' : digits[bits & 63]};

		put(w, text, sizeof(text));
	}
}

struct wfs_manifest_writer *wfs_manifest_writer_new(const struct wfs_signing_key *key)
{
	struct wfs_manifest_writer *w = calloc(1, sizeof(*w));
	u8 public_key[WFS_PUBLIC_KEY_BYTES], key_id[WFS_DIGEST_BYTES];

	if (!w)
		return NULL;
	w->key = key;
	wfs_signing_key_public(key, public_key);
	if (!wfs_digest(public_key, sizeof(public_key), key_id)) {
		free(w);
		return NULL;
	}
	put_text(w, WFS_MANIFEST_MAGIC WFS_MANIFEST_VERSION "\nkey ");
	put_digest(w, key_id);
	put_text(w, "\n");
	return w;
}

void wfs_manifest_writer_free(struct wfs_manifest_writer *writer)
{
	if (!writer)
		return;
	free(writer->text);
	free(writer);
}

static void put_hashed(struct wfs_manifest_writer *w, const struct wfs_manifest_entry *e)
{
	bool container = e->kind == WFS_MANIFEST_CONTAINER;

	put_text(w, container ? "container " : "file ");
	put_digest(w, e->sha256);
	put_text(w, " ");
	put_size(w, e->size);
	put_text(w, " ");
	if (container) {
		put_digest(w, e->meta_sha256);
		put_text(w, " ");
	}
	put_escaped(w, e->path);
	put_text(w, "\n");
	for (u64 i = 0; !container && e->nr_pieces > 1 && i < e->nr_pieces; i++) {
		put_text(w, "piece ");
		put_digest(w, e->piece + i * WFS_DIGEST_BYTES);
		put_text(w, "\n");
	}
}

static enum wfs_status check_full(const struct wfs_manifest_writer *w, struct wfs_error *err)
{
	return w->full ? wfs_fail(err, WFS_NO_MEMORY,
				  "out of memory for the manifest, or the store is too large for one")
		       : WFS_OK;
}

enum wfs_status wfs_manifest_add(struct wfs_manifest_writer *writer, const struct wfs_manifest_entry *entry,
				 struct wfs_error *err)
{
	switch (entry->kind) {
	case WFS_MANIFEST_DIR:
		put_text(writer, "dir ");
		put_escaped(writer, entry->path);
		put_text(writer, "\n");
		break;
	case WFS_MANIFEST_SYMLINK:
		put_text(writer, "symlink ");
		put_escaped(writer, entry->path);
		put_text(writer, " ");
		put_escaped(writer, entry->target);
		put_text(writer, "\n");
		break;
	case WFS_MANIFEST_CONTAINER:
	case WFS_MANIFEST_FILE:
		put_hashed(writer, entry);
		break;
	default:
		return wfs_fail(err, WFS_BAD_ARGUMENT, "an entry of no known kind");
	}
	return check_full(writer, err);
}

enum wfs_status wfs_manifest_sign(struct wfs_manifest_writer *writer, const void **text_ret, size_t *len_ret,
				  struct wfs_error *err)
{
	u8 signature[WFS_SIGNATURE_BYTES], key[WFS_PUBLIC_KEY_BYTES];
	struct wfs_manifest *manifest = NULL;
	enum wfs_status status = check_full(writer, err);

	if (status != WFS_OK)
		return status;
	if (!wfs_signature_make(writer->key, writer->text, writer->len, signature))
		return wfs_fail(err, WFS_NO_MEMORY, "cannot sign");
	put_text(writer, "signature ");
	put_signature(writer, signature);
	put_text(writer, "\n");
	status = check_full(writer, err);
	wfs_signing_key_public(writer->key, key);
	if (status == WFS_OK)
		status = wfs_manifest_parse(writer->text, writer->len, key, &manifest, err);
	wfs_manifest_free(manifest);
	*text_ret = writer->text;
	*len_ret = writer->len;
	return status;
}
