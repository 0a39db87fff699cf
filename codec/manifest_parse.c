/* manifest_parse.c - read a manifest: signature first, then every rule of MANIFEST.md.
 *
 * The text is decoded in place: what a field stands for is never longer than the field, and a string's NUL takes the
 * place of the space or line feed behind it. So memory is the text and one entry for each line that is no piece.
 */
#include "manifest_text.h"
#include "cursor.h"
#include "file_io.h"

#include <stdlib.h>
#include <sys/stat.h>

struct wfs_manifest {
	u8 *text;
	struct wfs_manifest_entry *entry;
	size_t nr;
	u8 sha256[WFS_DIGEST_BYTES];
};

/* ---- fields: false is a broken rule, the cursor is then of no use ---- */

static bool take_word(struct wfs_cursor *c, const char *word)
{
	size_t len = strlen(word);
	const u8 *taken = wfs_cursor_take(c, len);

	return taken && !memcmp(taken, word, len);
}

static bool starts_with(const struct wfs_cursor *c, const char *word)
{
	size_t len = strlen(word);

	return c->left >= len && !memcmp(c->at, word, len);
}

static int hex_digit(u8 c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 64 digits to 32 bytes at out, which may be where the digits are or before. */
static bool take_digest(struct wfs_cursor *c, u8 *out)
{
	const u8 *text = wfs_cursor_take(c, WFS_DIGEST_CHARS);

	for (int i = 0; text && i < WFS_DIGEST_BYTES; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (u8)(high << 4 | low);
	}
	return text != NULL;
}

static bool take_size(struct wfs_cursor *c, u64 *size_ret)
{
	const u8 *start = c->at;
	u64 size = 0;

	while (c->left && *c->at >= '0' && *c->at <= '9') {
		if (size > WFS_MANIFEST_MAX_SIZE / 10)
			return false;
		size = size * 10 + (u64)(*wfs_cursor_take(c, 1) - '0');
	}
	*size_ret = size;
	return c->at > start && (*start != '0' || c->at == start + 1) && size <= WFS_MANIFEST_MAX_SIZE;
}

/* A path or target and the byte `end` behind it, to a string at the same place. Its length is 1..max. */
static bool take_string(struct wfs_cursor *c, u8 end, size_t max, const char **string_ret)
{
	u8 *start = (u8 *)c->at, *out = start;

	for (;;) {
		const u8 *byte = wfs_cursor_take(c, 1), *digits;
		int high, low, value;

		if (!byte)
			return false;
		if (*byte == end)
			break;
		value = *byte;
		if (value == '%') {
			digits = wfs_cursor_take(c, 2);
			high = digits ? hex_digit(digits[0]) : -1;
			low = digits ? hex_digit(digits[1]) : -1;
			value = high < 0 || low < 0 ? 0 : high << 4 | low;
			if (!value || wfs_manifest_is_safe((u8)value))
				return false;
		} else if (!wfs_manifest_is_safe(*byte)) {
			return false;
		}
		if ((size_t)(out - start) == max)
			return false;
		*out++ = (u8)value;
	}
	*out = '\0';
	*string_ret = (const char *)start;
	return out > start;
}

/* ---- paths ---- */

static bool path_valid(const char *path)
{
	if (!strcmp(path, WFS_MANIFEST_NAME))
		return false;
	for (;;) {
		size_t len = strcspn(path, "/");

		if (!len || len > WFS_MANIFEST_MAX_NAME ||
		    (path[0] == '.' && (len == 1 || (len == 2 && path[1] == '.'))))
			return false;
		if (!path[len])
			return true;
		path += len + 1;
	}
}

static bool container_path_valid(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(name), suffix = strlen(WFS_MANIFEST_SUFFIX);

	/* "..wfs" and "...wfs" would be "." and ".." in a mount. */
	return len > suffix && !strcmp(name + len - suffix, WFS_MANIFEST_SUFFIX) && strcmp(name, "..wfs") != 0 &&
	       strcmp(name, "...wfs") != 0;
}

/* Order of a path and the first len bytes of another, which are no NUL. */
static int compare_path(const char *path, const char *other, size_t len)
{
	int order = strncmp(path, other, len);

	return order ? order : path[len] != '\0';
}

static const struct wfs_manifest_entry *find(const struct wfs_manifest *m, const char *path, size_t len)
{
	size_t low = 0, high = m->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = compare_path(m->entry[mid].path, path, len);

		if (!order)
			return &m->entry[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static bool parent_listed(const struct wfs_manifest *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	const struct wfs_manifest_entry *parent = slash ? find(m, path, (size_t)(slash - path)) : NULL;

	return !slash || (parent && parent->kind == WFS_MANIFEST_DIR);
}

/* ---- lines ---- */

static bool take_pieces(struct wfs_cursor *c, struct wfs_manifest_entry *e)
{
	u8 *out = (u8 *)c->at; /* each is shorter than its line */

	e->piece = e->nr_pieces > 1 ? out : e->sha256;
	for (u64 i = 0; e->nr_pieces > 1 && i < e->nr_pieces; i++)
		if (!take_word(c, "piece ") || !take_digest(c, out + i * WFS_DIGEST_BYTES) || !take_word(c, "\n"))
			return false;
	return true;
}

static bool take_hashed(struct wfs_cursor *c, struct wfs_manifest_entry *e)
{
	u8 *sha256 = (u8 *)c->at, *meta_sha256;

	e->sha256 = sha256;
	if (!take_digest(c, sha256) || !take_word(c, " ") || !take_size(c, &e->size) || !take_word(c, " "))
		return false;
	if (e->kind == WFS_MANIFEST_CONTAINER) {
		e->meta_sha256 = meta_sha256 = (u8 *)c->at;
		if (!take_digest(c, meta_sha256) || !take_word(c, " "))
			return false;
	}
	if (!take_string(c, '\n', WFS_MANIFEST_MAX_PATH, &e->path))
		return false;
	if (e->kind == WFS_MANIFEST_CONTAINER)
		return container_path_valid(e->path);
	e->nr_pieces = wfs_manifest_nr_pieces(e->size);
	return take_pieces(c, e);
}

static const char *take_entry(struct wfs_cursor *c, const struct wfs_manifest *m, struct wfs_manifest_entry *e)
{
	static const char *const word[] = {[WFS_MANIFEST_DIR] = "dir ",
					   [WFS_MANIFEST_SYMLINK] = "symlink ",
					   [WFS_MANIFEST_CONTAINER] = "container ",
					   [WFS_MANIFEST_FILE] = "file "};
	unsigned kind = WFS_MANIFEST_DIR;
	bool good;

	while (kind < WFS_ARRAY_LEN(word) && !starts_with(c, word[kind]))
		kind++;
	if (kind == WFS_ARRAY_LEN(word))
		return "a line of the manifest is of no known kind";
	*e = (struct wfs_manifest_entry){.kind = (enum wfs_manifest_kind)kind};
	good = take_word(c, word[kind]);
	if (kind == WFS_MANIFEST_DIR)
		good = good && take_string(c, '\n', WFS_MANIFEST_MAX_PATH, &e->path);
	else if (kind == WFS_MANIFEST_SYMLINK)
		good = good && take_string(c, ' ', WFS_MANIFEST_MAX_PATH, &e->path) &&
		       take_string(c, '\n', WFS_MANIFEST_MAX_TARGET, &e->target);
	else
		good = good && take_hashed(c, e);
	if (!good)
		return "a line of the manifest is not valid";
	if (!path_valid(e->path))
		return "a path in the manifest is not valid";
	if (m->nr && strcmp(m->entry[m->nr - 1].path, e->path) >= 0)
		return "the manifest's paths are not in order";
	return parent_listed(m, e->path) ? NULL : "the manifest lists a path without its directory";
}

/* Lines that may be entries: an upper bound. Whatever the lines are, no more than the shortest entry would fill the
 * text with, so that a text of empty lines does not claim 64 times its size. */
static size_t count_entries(struct wfs_cursor c)
{
	static const char shortest[] = "dir x\n";
	const size_t most = (size_t)c.left / (sizeof(shortest) - 1);
	size_t nr = 0;

	while (c.left) {
		const u8 *end = memchr(c.at, '\n', c.left);

		nr += !starts_with(&c, "piece ");
		if (!end || !wfs_cursor_take(&c, (u64)(end - c.at) + 1))
			break;
	}
	return WFS_MIN(nr, most);
}

static enum wfs_status parse_entries(struct wfs_manifest *m, struct wfs_cursor c, struct wfs_error *err)
{
	size_t nr = count_entries(c);

	m->entry = malloc(WFS_MAX(nr, (size_t)1) * sizeof(*m->entry));
	if (!m->entry)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the manifest");
	while (c.left) {
		const char *reason;

		if (m->nr == nr)
			return wfs_fail(err, WFS_BAD_DATA, "the manifest has lines that are no entries");
		reason = take_entry(&c, m, &m->entry[m->nr]);
		if (reason)
			return wfs_fail(err, WFS_BAD_DATA, reason);
		m->nr++;
	}
	return WFS_OK;
}

/* ---- signature ---- */

static int base64_value(u8 c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Strict: one spelling for each signature, so that no byte of the file can change unseen. 64 bytes are 85 full digits
 * and one of which two bits count. */
static bool take_signature(struct wfs_cursor *c, u8 signature[WFS_SIGNATURE_BYTES])
{
	enum { DIGITS = 86 };
	const u8 *text = wfs_cursor_take(c, WFS_SIGNATURE_CHARS);
	u32 bits = 0;
	unsigned nr_bits = 0;

	if (!text || text[DIGITS] != '=' || text[DIGITS + 1] != '=')
		return false;
	for (int i = 0; i < DIGITS; i++) {
		int value = base64_value(text[i]);

		if (value < 0)
			return false;
		bits = bits << 6 | (u32)value;
		nr_bits += 6;
		if (nr_bits >= 8) {
			nr_bits -= 8;
			*signature++ = (u8)(bits >> nr_bits);
			bits &= (1u << nr_bits) - 1;
		}
	}
	return bits == 0;
}

/* The frame around the entries: first lines, last line, signature. *entries_ret is what lies between. */
static enum wfs_status open_frame(const u8 *text, size_t len, const u8 *key, struct wfs_cursor *entries_ret,
				  struct wfs_error *err)
{
	const size_t signature_line = strlen("signature ") + WFS_SIGNATURE_CHARS + 1;
	struct wfs_cursor c = wfs_cursor_make(text, len), end;
	u8 wanted[WFS_DIGEST_BYTES], key_id[WFS_DIGEST_BYTES], signature[WFS_SIGNATURE_BYTES];
	enum wfs_status status = WFS_OK;
	size_t signed_len;

	if (len > WFS_MANIFEST_MAX_BYTES)
		return wfs_fail(err, WFS_BAD_DATA, "the manifest is too large");
	if (!take_word(&c, WFS_MANIFEST_MAGIC))
		return wfs_fail(err, WFS_BAD_DATA, "not a manifest of weightfs");
	if (!take_word(&c, WFS_MANIFEST_VERSION "\n"))
		return wfs_fail(err, WFS_UNSUPPORTED, "the manifest was made by a newer weightfs, or is damaged");
	if (!take_word(&c, "key ") || !take_digest(&c, wanted) || !take_word(&c, "\n") || c.left < signature_line)
		return wfs_fail(err, WFS_BAD_DATA,
				"the manifest's key line is not valid, or the manifest is cut short");
	signed_len = len - signature_line;
	end = wfs_cursor_make(text + signed_len, signature_line);
	if (text[signed_len - 1] != '\n' || !take_word(&end, "signature ") || !take_signature(&end, signature) ||
	    !take_word(&end, "\n"))
		return wfs_fail(err, WFS_BAD_DATA, "the manifest does not end in a signature");
	if (key && !wfs_digest(key, WFS_PUBLIC_KEY_BYTES, key_id))
		return wfs_fail(err, WFS_NO_MEMORY, "cannot compute SHA-256");
	if (key && memcmp(wanted, key_id, sizeof(key_id)))
		return wfs_fail(err, WFS_BAD_CHECKSUM, "the manifest was signed with another key");
	if (key)
		status = wfs_signature_check(key, text, signed_len, signature);
	if (status == WFS_NO_MEMORY)
		return wfs_fail(err, status, "out of memory for the manifest's signature");
	if (status != WFS_OK)
		return wfs_fail(err, status, "the manifest's signature is not right: it was changed or damaged");
	*entries_ret = wfs_cursor_make(c.at, c.left - signature_line);
	return WFS_OK;
}

/* ---- the whole ---- */

/* Takes text over, also on failure. */
static enum wfs_status parse(u8 *text, size_t len, const u8 *key, struct wfs_manifest **manifest_ret,
			     struct wfs_error *err)
{
	struct wfs_manifest *m = calloc(1, sizeof(*m));
	struct wfs_cursor entries;
	enum wfs_status status;

	if (!m) {
		free(text);
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the manifest");
	}
	m->text = text;
	status = open_frame(text, len, key, &entries, err);
	if (status == WFS_OK && !wfs_digest(text, len, m->sha256))
		status = wfs_fail(err, WFS_NO_MEMORY, "cannot compute SHA-256");
	if (status == WFS_OK)
		status = parse_entries(m, entries, err);
	if (status != WFS_OK) {
		wfs_manifest_free(m);
		return status;
	}
	*manifest_ret = m;
	return WFS_OK;
}

enum wfs_status wfs_manifest_parse(const void *text, size_t len, const uint8_t *key, struct wfs_manifest **manifest_ret,
				   struct wfs_error *err)
{
	u8 *copy;

	if (len > WFS_MANIFEST_MAX_BYTES)
		return wfs_fail(err, WFS_BAD_DATA, "the manifest is too large");
	copy = malloc(WFS_MAX(len, (size_t)1));
	if (!copy)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the manifest");
	memcpy(copy, text, len);
	return parse(copy, len, key, manifest_ret, err);
}

enum wfs_status wfs_manifest_read(int fd, const uint8_t key[WFS_PUBLIC_KEY_BYTES], struct wfs_manifest **manifest_ret,
				  struct wfs_error *err)
{
	int sys_errno;
	struct stat st;
	size_t got;
	u8 *text;

	if (fstat(fd, &st))
		return wfs_fail_io(err, errno, "cannot stat the manifest");
	if (!S_ISREG(st.st_mode))
		return wfs_fail(err, WFS_BAD_DATA, "the manifest is not a regular file");
	if ((u64)st.st_size > WFS_MANIFEST_MAX_BYTES)
		return wfs_fail(err, WFS_BAD_DATA, "the manifest is too large");
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return wfs_fail(err, WFS_NO_MEMORY, "out of memory for the manifest");
	sys_errno = wfs_pread_full(fd, text, (size_t)st.st_size, 0, &got);
	if (sys_errno) {
		free(text);
		return wfs_fail_io(err, sys_errno, "cannot read the manifest");
	}
	return parse(text, got, key, manifest_ret, err);
}

void wfs_manifest_free(struct wfs_manifest *manifest)
{
	if (!manifest)
		return;
	free(manifest->entry);
	free(manifest->text);
	free(manifest);
}

const struct wfs_manifest_entry *wfs_manifest_entries(const struct wfs_manifest *manifest, size_t *nr_ret)
{
	*nr_ret = manifest->nr;
	return manifest->entry;
}

const struct wfs_manifest_entry *wfs_manifest_find(const struct wfs_manifest *manifest, const char *path)
{
	return find(manifest, path, strlen(path));
}

const uint8_t *wfs_manifest_sha256(const struct wfs_manifest *manifest)
{
	return manifest->sha256;
}
