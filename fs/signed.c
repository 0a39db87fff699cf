/* signed.c - see signed.h. */
#include "signed.h"
#include "bits.h"
#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct wfsd_signed {
	struct wfs_manifest *manifest;
	const struct wfs_manifest_entry *entry; /* the manifest's */
	size_t nr;
	char sha256[2 * WFS_DIGEST_BYTES + 1];
	wfsd_bits refused; /* entries that were reported */
};

/* ---- begin and end --------------------------------------------------------------------------------------------- */

static void explain(const struct wfsd *d, const char *what, const char *path, const struct wfs_error *err)
{
	wfsd_log(&d->log, WFSD_ERROR, "%s %s: %s%s%s", what, path, err->reason, err->sys_errno ? ": " : "",
		 err->sys_errno ? strerror(err->sys_errno) : "");
}

static bool read_key(const struct wfsd *d, uint8_t key[WFS_PUBLIC_KEY_BYTES])
{
	struct wfs_error err;
	int fd = open(d->opts->pubkey, O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd < 0) {
		wfsd_log(&d->log, WFSD_ERROR, "public key %s: %s", d->opts->pubkey, strerror(errno));
		return false;
	}
	enum wfs_status status = wfs_public_key_read(fd, key, &err);
	close(fd);
	if (status != WFS_OK)
		explain(d, "public key", d->opts->pubkey, &err);
	return status == WFS_OK;
}

static bool read_manifest(const struct wfsd *d, struct wfsd_signed *s)
{
	uint8_t key[WFS_PUBLIC_KEY_BYTES];
	struct wfs_error err;

	if (!read_key(d, key))
		return false;
	/* O_NONBLOCK: should it be a FIFO. */
	int fd = openat(d->root_fd, WFS_MANIFEST_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		wfsd_log(&d->log, WFSD_ERROR, "store %s: it has no " WFS_MANIFEST_NAME ": sign it with weightfs sign",
			 d->store_path);
	else if (fd < 0)
		wfsd_log(&d->log, WFSD_ERROR, "store %s: " WFS_MANIFEST_NAME ": %s", d->store_path,
			 errno == ELOOP ? "a symbolic link is not taken" : strerror(errno));
	if (fd < 0)
		return false;
	enum wfs_status status = wfs_manifest_read(fd, key, &s->manifest, &err);
	close(fd);
	if (status != WFS_OK)
		explain(d, "store", d->store_path, &err);
	return status == WFS_OK;
}

struct wfsd_signed *wfsd_signed_new(const struct wfsd *d)
{
	struct wfsd_signed *s = calloc(1, sizeof(*s));

	if (!s) {
		wfsd_log(&d->log, WFSD_ERROR, "out of memory");
		return NULL;
	}
	if (!read_manifest(d, s)) {
		free(s);
		return NULL;
	}
	s->entry = wfs_manifest_entries(s->manifest, &s->nr);
	for (int i = 0; i < WFS_DIGEST_BYTES; i++)
		snprintf(s->sha256 + 2 * i, 3, "%02x", wfs_manifest_sha256(s->manifest)[i]);
	return s;
}

void wfsd_signed_free(struct wfsd_signed *s)
{
	if (!s)
		return;
	wfs_manifest_free(s->manifest);
	free(atomic_load(&s->refused));
	free(s);
}

const char *wfsd_signed_sha256(const struct wfsd_signed *s)
{
	return s->sha256;
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

/* A manifest has at most 2^30 bytes, so the number fits the ident's 31 bits. */
static uint32_t number_of(const struct wfsd_signed *s, const struct wfs_manifest_entry *entry)
{
	return (uint32_t)(entry - s->entry) + 1;
}

const struct wfs_manifest_entry *wfsd_signed_entry(const struct wfsd *d, const struct wfsd_ident *ident)
{
	return ident->entry ? &d->signed_store->entry[ident->entry - 1] : NULL;
}

/* As strcmp(path, DIR/NAME SUFFIX). */
static int compare(const char *path, const char *dir, const char *name, const char *suffix)
{
	const char *const part[] = {dir, *dir ? "/" : "", name, suffix};

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		size_t len = strlen(part[i]);
		int order = strncmp(path, part[i], len);
		if (order)
			return order;
		path += len;
	}
	return *path != '\0';
}

/* NULL: not listed. */
static const struct wfs_manifest_entry *find(const struct wfsd *d, const char *dir, const char *name,
					     const char *suffix)
{
	const struct wfsd_signed *s = d->signed_store;
	size_t low = 0, high = s->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = compare(s->entry[mid].path, dir, name, suffix);
		if (!order)
			return &s->entry[mid];
		*(order < 0 ? &low : &high) = order < 0 ? mid + 1 : mid;
	}
	return NULL;
}

static const char *name_of(const struct wfs_manifest_entry *entry)
{
	const char *slash = strrchr(entry->path, '/');
	return slash ? slash + 1 : entry->path;
}

static mode_t type_of(const struct wfs_manifest_entry *entry)
{
	return entry->kind == WFS_MANIFEST_DIR ? S_IFDIR : entry->kind == WFS_MANIFEST_SYMLINK ? S_IFLNK : S_IFREG;
}

int wfsd_signed_refuse(struct wfsd *d, const struct wfs_manifest_entry *entry, const char *reason)
{
	struct wfsd_signed *s = d->signed_store;
	char remedy[WFSD_REMEDY_BYTES];

	if (wfsd_bits_set(&s->refused, s->nr, number_of(s, entry) - 1) == 1)
		return EIO;
	wfsd_count(&d->stats.refused_files, 1);
	wfsd_log(&d->log, WFSD_ERROR, "refused %s: %s: %s; %s", entry->path, reason, strerror(EIO),
		 wfsd_remedy(remedy, d, WFS_BAD_DATA));
	return EIO;
}

void wfsd_signed_found_good(struct wfsd *d, const struct wfs_manifest_entry *entry)
{
	wfsd_bits_clear(&d->signed_store->refused, number_of(d->signed_store, entry) - 1);
}

/* ---- what the store has ---------------------------------------------------------------------------------------- */

/* The attributes, but not yet as they are shown. 0, or -errno. */
static int look_at(struct wfsd *d, int dir_fd, const struct wfs_manifest_entry *entry, struct wfsd_entry *e,
		   const char *dir)
{
	const char *stored = name_of(entry), *reason = NULL;
	enum wfsd_kind kind = WFSD_ORDINARY;
	int err = 0, bad = 0;

	if (entry->kind == WFS_MANIFEST_CONTAINER)
		err = wfsd_store_probe(d, dir_fd, stored, e, &kind, &bad, dir);
	else if (fstatat(dir_fd, stored, &e->st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT))
		err = -errno;
	else
		wfsd_store_limit_mode(d, dir_fd, stored, &e->st);
	if (err == -ENOENT || err == -ENOTDIR)
		reason = "it is listed, but not in the store";
	else if (!err && (e->st.st_mode & S_IFMT) != type_of(entry))
		reason = "it is another kind of file than the signed one";
	else if (!err && entry->kind == WFS_MANIFEST_CONTAINER && kind == WFSD_ORDINARY)
		reason = "it is no container, as the signed one is";
	if (reason)
		return -wfsd_signed_refuse(d, entry, reason);
	return err ? err : -bad;
}

/* Fills the entry from what the store has. 0, or -errno; then type and number are filled in all the same. */
static int probe(struct wfsd *d, int dir_fd, const struct wfs_manifest_entry *entry, struct wfsd_entry *e,
		 const char *dir)
{
	const char *stored = name_of(entry);
	uint64_t size = entry->kind == WFS_MANIFEST_SYMLINK ? strlen(entry->target) : entry->size;
	bool dir_entry = entry->kind == WFS_MANIFEST_DIR;
	int err = look_at(d, dir_fd, entry, e, dir);

	if (err)
		e->st = (struct stat){.st_mode = type_of(entry)};
	if (err || entry->kind != WFS_MANIFEST_CONTAINER)
		e->ident = wfsd_ident_of(&e->st, !dir_entry);
	memcpy(e->stored, stored, strlen(stored) + 1);
	e->container = entry->kind == WFS_MANIFEST_CONTAINER;
	e->ident.entry = number_of(d->signed_store, entry) & INT32_MAX;
	e->st.st_ino = wfsd_ident_ino(&e->ident);
	if (!dir_entry) {
		/* Each name is a file of its own: two of one inode may have been signed as two things. */
		e->st.st_nlink = 1;
		e->st.st_size = (off_t)size;
		e->st.st_blocks = (blkcnt_t)((size + 511) / 512);
	}
	/* Of a file its bytes, of a symlink its target are still to be proven. */
	if (!err && dir_entry)
		wfsd_signed_found_good(d, entry);
	return err;
}

int wfsd_signed_check_link(struct wfsd *d, const struct wfs_manifest_entry *entry, const char *target)
{
	if (strcmp(target, entry->target) != 0)
		return wfsd_signed_refuse(d, entry, "the link leads elsewhere than the signed one");
	wfsd_signed_found_good(d, entry);
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

int wfsd_signed_resolve(struct wfsd *d, int dir_fd, const char *shown, struct wfsd_entry *e, const char *dir)
{
	const struct wfs_manifest_entry *entry = find(d, dir, shown, "");

	if (!entry || entry->kind == WFS_MANIFEST_CONTAINER)
		entry = find(d, dir, shown, WFSD_SUFFIX);
	else
		return probe(d, dir_fd, entry, e, dir);
	return entry && entry->kind == WFS_MANIFEST_CONTAINER ? probe(d, dir_fd, entry, e, dir) : -ENOENT;
}

/* How a path lies to what is below a directory: before it, below it, behind it. len: of dir; 0: the root. */
static int order(const char *path, const char *dir, size_t len)
{
	int order = strncmp(path, dir, len);
	return order || !len ? order : (unsigned char)path[len] - '/';
}

/* The first entry that is not before what is below the directory, or (past) behind all of that. */
static size_t bound(const struct wfsd_signed *s, const char *dir, size_t len, bool past)
{
	size_t low = 0, high = s->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int o = order(s->entry[mid].path, dir, len);
		if (o < 0 || (past && !o))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

size_t wfsd_signed_first(const struct wfsd *d, const char *dir)
{
	return bound(d->signed_store, dir, strlen(dir), false);
}

const char *wfsd_signed_next(const struct wfsd *d, const char *dir, size_t *at)
{
	const struct wfsd_signed *s = d->signed_store;
	const size_t len = strlen(dir);

	while (*at < s->nr && !order(s->entry[*at].path, dir, len)) {
		const char *path = s->entry[*at].path, *name = path + len + (len > 0), *slash = strchr(name, '/');
		if (!slash) {
			++*at;
			return name;
		}
		*at = bound(s, path, (size_t)(slash - path), true); /* all that is below this name */
	}
	return NULL;
}

bool wfsd_signed_show(struct wfsd *d, int dir_fd, const char *stored, struct wfsd_entry *e, char *shown, bool *good_ret,
		      const char *dir)
{
	const struct wfs_manifest_entry *entry = find(d, dir, stored, ""), *other;
	size_t len = strlen(stored);

	if (!entry)
		return false;
	if (entry->kind == WFS_MANIFEST_CONTAINER)
		len -= WFSD_SUFFIX_LEN;
	memcpy(shown, stored, len);
	shown[len] = '\0';
	if (entry->kind == WFS_MANIFEST_CONTAINER) {
		other = find(d, dir, shown, "");
		if (other && other->kind != WFS_MANIFEST_CONTAINER)
			return false; /* the file of that name is the one that is shown */
	}
	*good_ret = !probe(d, dir_fd, entry, e, dir);
	return true;
}
