/* verify_manifest.c - weightfs verify --pubkey: the signature, then everything in the store against the manifest. */
#include "verify_manifest.h"
#include "safe_file.h"
#include "json_out.h"
#include "sign.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum finding {
	FOUND_OK,
	FOUND_DAMAGED,	/* it is what was signed, but bytes of it are wrong or cannot be read */
	FOUND_CHANGED,	/* it is not what was signed */
	FOUND_MISSING,	/* the manifest lists it */
	FOUND_UNSIGNED, /* the manifest does not */
	FOUND_ERROR,	/* could not be looked at */
	NR_FINDINGS,
};

static const char *const finding_name[NR_FINDINGS] = {"ok", "damaged", "changed", "missing", "unsigned", "error"};

struct verify {
	const struct verify_manifest_opts *opts;
	struct signed_store store;
	struct wfs_manifest *manifest;
	const struct wfs_manifest_entry *entry; /* of the manifest */
	size_t nr_entries;
	bool *seen; /* of each: something lies there */
	struct progress *progress;
	pthread_mutex_t lock;
	/* protected by lock */
	struct json out;
	uint64_t nr[NR_FINDINGS], raw_bytes;
};

/* One line, or one object of the document. Of what is fine only files are shown. */
static void add_finding(struct verify *v, const char *path, enum finding finding, uint64_t raw_bytes, bool shown,
			const char *reason)
{
	char *whole = xasprintf("%s/%s", v->store.path, path);
	pthread_mutex_lock(&v->lock);
	if (shown || finding != FOUND_OK) {
		v->nr[finding]++;
		v->raw_bytes += raw_bytes;
	}
	if (finding != FOUND_OK) {
		progress_clear(v->progress);
		msg("%s: %s: %s", whole, finding_name[finding], reason);
	}
	if (v->opts->json && (shown || finding != FOUND_OK)) {
		json_object(&v->out, NULL);
		json_string(&v->out, "path", whole);
		json_string(&v->out, "status", finding_name[finding]);
		json_uint(&v->out, "raw_bytes", raw_bytes);
		if (finding != FOUND_OK)
			json_string(&v->out, "reason", reason);
		json_end(&v->out);
	} else if (shown && finding == FOUND_OK && !v->opts->quiet && !v->opts->json) {
		progress_clear(v->progress);
		out_line("%s: ok", whole);
	}
	pthread_mutex_unlock(&v->lock);
	free(whole);
}

/* ---- content ---- */

static int drop_piece(void *ctx, const void *raw, size_t len)
{
	struct file_progress *p = ctx;
	(void)raw;
	file_progress_reach(p, p->raw_told + len);
	return 0;
}

/* Whether it can be opened, but for the SHA-256 of blocks that signed stores have. */
static bool lacks_sha256(int fd)
{
	struct wfs_reader *reader = NULL;
	struct wfs_info info = {.has_sha256 = true};
	if (wfs_reader_open(fd, NULL, &reader, NULL) == WFS_OK)
		wfs_reader_info(reader, &info);
	wfs_reader_free(reader);
	return !info.has_sha256;
}

static enum finding check_container(const struct verify *v, int fd, const struct wfs_manifest_entry *m,
				    unsigned nr_threads, char reason[REASON_BYTES])
{
	const struct wfs_reader_opts reader_opts = {.cpu = v->opts->cpu, .check_sha256 = true, .suffixed = true};
	struct file_progress told = {.progress = v->progress, .passes = 2};
	enum finding finding = FOUND_DAMAGED;
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	enum wfs_status status = wfs_reader_open(fd, &reader_opts, &reader, &err);
	if (status == WFS_OK) {
		status = wfs_manifest_check_container(m, reader, &err);
		finding = FOUND_CHANGED;
	} else if (status == WFS_NOT_CONTAINER || lacks_sha256(fd)) {
		finding = FOUND_CHANGED;
	}
	if (status == WFS_OK) {
		finding = FOUND_DAMAGED;
		status = v->opts->fast ? wfs_reader_stream(reader, 0, m->size, nr_threads, drop_piece, &told, &err)
				       : wfs_reader_verify(reader, nr_threads, file_progress_report, &told, &err);
	}
	if (status != WFS_OK)
		wfs_reason(reason, reader, &err);
	if (status == WFS_IO || status == WFS_NO_MEMORY)
		finding = FOUND_ERROR;
	wfs_reader_free(reader);
	return status == WFS_OK ? FOUND_OK : finding;
}

static enum finding check_plain(const struct verify *v, int fd, const struct wfs_manifest_entry *m,
				char reason[REASON_BYTES])
{
	const size_t pieces_len = (size_t)m->nr_pieces * SHA256_BYTES;
	uint8_t whole[SHA256_BYTES], *piece;
	enum finding finding = FOUND_OK;
	struct wfs_head head;
	struct stat st;
	uint64_t bad = 0;
	int ret;
	if (fstat(fd, &st)) {
		snprintf(reason, REASON_BYTES, "cannot stat: %s", strerror(errno));
		return FOUND_ERROR;
	}
	if ((uint64_t)st.st_size != m->size) {
		snprintf(reason, REASON_BYTES, "its size is not the signed one");
		return FOUND_CHANGED;
	}
	piece = m->nr_pieces > 1 ? xcalloc(m->nr_pieces, SHA256_BYTES) : NULL;
	ret = plain_file_hash(fd, m->size, piece, v->opts->fast && piece ? NULL : whole, v->progress);
	while (!ret && piece && bad < m->nr_pieces &&
	       !memcmp(piece + bad * SHA256_BYTES, m->piece + bad * SHA256_BYTES, SHA256_BYTES))
		bad++;
	if (ret && ret != FILE_CHANGED) {
		snprintf(reason, REASON_BYTES, "cannot read: %s", strerror(ret));
		finding = FOUND_ERROR;
	} else if (ret) {
		snprintf(reason, REASON_BYTES, "it changed while it was read");
		finding = FOUND_CHANGED;
	} else if (piece && memcmp(piece, m->piece, pieces_len) != 0) {
		snprintf(reason, REASON_BYTES, "bytes from %llu on are not the signed ones",
			 (unsigned long long)(bad * WFS_MANIFEST_PIECE_BYTES));
		finding = FOUND_CHANGED;
	} else if ((!piece || !v->opts->fast) && memcmp(whole, m->sha256, SHA256_BYTES) != 0) {
		snprintf(reason, REASON_BYTES, "its bytes are not the signed ones");
		finding = FOUND_CHANGED;
	} else if (container_path(m->path) && wfs_head_read_suffixed(fd, &head, NULL) != WFS_NOT_CONTAINER) {
		snprintf(reason, REASON_BYTES, "is or was a container, and was signed as another file");
		finding = FOUND_CHANGED;
	}
	free(piece);
	return finding;
}

static void check_file(void *ctx, size_t i, unsigned nr_threads)
{
	struct verify *v = ctx;
	const struct tree_entry *e = &v->store.tree.entry[v->store.order[i]];
	const struct wfs_manifest_entry *m = wfs_manifest_find(v->manifest, e->path);
	char reason[REASON_BYTES] = "";
	enum finding finding;
	const char *name;
	int dir_fd, fd;
	if (!m || (m->kind != WFS_MANIFEST_CONTAINER && m->kind != WFS_MANIFEST_FILE))
		return; /* said by check_names */
	fd = tree_open_path(v->store.root_fd, e->path, &dir_fd, &name);
	if (fd < 0) {
		snprintf(reason, sizeof(reason), "cannot open: %s", strerror(errno));
		add_finding(v, e->path, FOUND_ERROR, m->size, true, reason);
		return;
	}
	finding = m->kind == WFS_MANIFEST_CONTAINER ? check_container(v, fd, m, nr_threads, reason)
						    : check_plain(v, fd, m, reason);
	add_finding(v, e->path, finding, m->size, true, reason);
	close(fd);
	close(dir_fd);
}

/* ---- names ---- */

static enum finding check_name(const struct tree_entry *e, const struct wfs_manifest_entry *m, const char **reason_ret)
{
	bool regular = S_ISREG(e->st.st_mode), link = S_ISLNK(e->st.st_mode), dir = S_ISDIR(e->st.st_mode);
	bool same_kind;
	*reason_ret = "the manifest does not list it";
	if (!m)
		return FOUND_UNSIGNED;
	same_kind = m->kind == WFS_MANIFEST_DIR ? dir : m->kind == WFS_MANIFEST_SYMLINK ? link : regular;
	*reason_ret = "something else lies under this name than was signed";
	if (!same_kind)
		return FOUND_CHANGED;
	*reason_ret = "it leads elsewhere than the signed one";
	return link && strcmp(e->link_target, m->target) != 0 ? FOUND_CHANGED : FOUND_OK;
}

/* Nothing reads temporaries, so those of a run that is alive are passed over. What no run holds could be anything. */
static void check_temporary(struct verify *v, const struct tree_entry *e)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char reason[REASON_BYTES];
	const char *name;
	int dir_fd, fd = S_ISREG(e->st.st_mode) ? tree_open_path(v->store.root_fd, e->path, &dir_fd, &name) : -1;
	if (fd >= 0) {
		bool alive = !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
		close(fd);
		close(dir_fd);
		if (alive)
			return;
	} else if (S_ISREG(e->st.st_mode)) {
		if (errno == ENOENT)
			return; /* it has gone, as they do */
		snprintf(reason, sizeof(reason), "cannot open: %s", strerror(errno));
		add_finding(v, e->path, FOUND_ERROR, (uint64_t)e->st.st_size, false, reason);
		return;
	}
	add_finding(v, e->path, FOUND_UNSIGNED, S_ISREG(e->st.st_mode) ? (uint64_t)e->st.st_size : 0, false,
		    "a temporary file that no run of weightfs holds");
}

static void check_names(struct verify *v)
{
	for (size_t i = 0; i < v->store.nr; i++) {
		const struct tree_entry *e = &v->store.tree.entry[v->store.order[i]];
		const struct wfs_manifest_entry *m = wfs_manifest_find(v->manifest, e->path);
		const char *reason;
		enum finding finding = check_name(e, m, &reason);
		if (m)
			v->seen[m - v->entry] = true;
		if (finding != FOUND_OK)
			add_finding(v, e->path, finding, S_ISREG(e->st.st_mode) ? (uint64_t)e->st.st_size : 0, false,
				    reason);
	}
	for (size_t i = 0; i < v->nr_entries; i++)
		if (!v->seen[i])
			add_finding(v, v->entry[i].path, FOUND_MISSING, v->entry[i].size, false,
				    "the manifest lists it, but it is not there");
	for (size_t i = 0; i < v->store.tree.nr; i++)
		if (tree_entry_is_temporary(&v->store.tree.entry[i]))
			check_temporary(v, &v->store.tree.entry[i]);
}

/* ---- the whole ---- */

static enum wfs_status load_manifest(struct verify *v, const uint8_t key[WFS_PUBLIC_KEY_BYTES], struct wfs_error *err)
{
	int fd = openat(v->store.root_fd, WFS_MANIFEST_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	enum wfs_status status;
	if (fd < 0 && errno == ENOENT) {
		*err = (struct wfs_error){.status = WFS_IO,
					  .reason = "there is no manifest: sign the store with weightfs sign"};
		return WFS_IO;
	}
	if (fd < 0) {
		*err = (struct wfs_error){.status = WFS_IO, .sys_errno = errno, .reason = "cannot open the manifest"};
		return WFS_IO;
	}
	status = wfs_manifest_read(fd, key, &v->manifest, err);
	close(fd);
	if (status == WFS_OK) {
		v->entry = wfs_manifest_entries(v->manifest, &v->nr_entries);
		v->seen = xcalloc(v->nr_entries + 1, sizeof(*v->seen));
	}
	return status;
}

static void begin_report(struct verify *v)
{
	if (!v->opts->json)
		return;
	json_init(&v->out, stdout);
	json_object(&v->out, NULL);
	json_string(&v->out, "command", "verify");
	json_string(&v->out, "version", wfs_version());
	json_bool(&v->out, "fast", v->opts->fast);
	if (v->manifest)
		json_hex(&v->out, "manifest_sha256", wfs_manifest_sha256(v->manifest), SHA256_BYTES);
	json_array(&v->out, "files");
}

static bool end_report(struct verify *v, double seconds)
{
	char raw[SIZE_TEXT_BYTES], manifest[SHA256_TEXT_BYTES];
	uint64_t bad = 0, all;
	for (enum finding f = FOUND_OK + 1; f < NR_FINDINGS; f++)
		bad += v->nr[f];
	all = v->nr[FOUND_OK] + bad;
	if (v->opts->json) {
		json_end(&v->out);
		json_object(&v->out, "totals");
		for (enum finding f = FOUND_OK; f < NR_FINDINGS; f++)
			json_uint(&v->out, finding_name[f], v->nr[f]);
		json_uint(&v->out, "raw_bytes", v->raw_bytes);
		json_real(&v->out, "seconds", seconds, 3);
		json_end(&v->out);
		json_end(&v->out);
	} else if (!v->opts->quiet && v->manifest) {
		printf("%llu of %llu file%s %s as signed (%s), %.1f s\n", (unsigned long long)v->nr[FOUND_OK],
		       (unsigned long long)all, plural(all), is_or_are(all), size_text(raw, v->raw_bytes), seconds);
		printf("SHA-256 of the manifest: %s\n", sha256_text(manifest, wfs_manifest_sha256(v->manifest)));
	}
	return !bad && v->store.complete;
}

int verify_manifest(const char *store, const struct verify_manifest_opts *opts)
{
	struct verify v = {.opts = opts, .lock = PTHREAD_MUTEX_INITIALIZER};
	uint8_t key[WFS_PUBLIC_KEY_BYTES];
	double started = seconds_now();
	struct wfs_error err = {0};
	enum wfs_status status;
	char reason[REASON_BYTES];
	bool ok;
	if (!public_key_load(opts->command, opts->key_path, key) || !signed_store_open(&v.store, opts->command, store))
		return EXIT_FAILED;
	status = load_manifest(&v, key, &err);
	begin_report(&v);
	if (status == WFS_OK) {
		check_names(&v);
		if (!opts->json && !opts->quiet)
			v.progress = progress_new("verifying", signed_store_work(&v.store), 2);
		signed_store_for_files(&v.store, opts->nr_threads, check_file, &v);
		progress_free(v.progress);
		v.progress = NULL;
	} else {
		wfs_reason(reason, NULL, &err);
		add_finding(&v, WFS_MANIFEST_NAME, status == WFS_IO ? FOUND_ERROR : FOUND_CHANGED, 0, true, reason);
	}
	ok = end_report(&v, seconds_now() - started);
	wfs_manifest_free(v.manifest);
	free(v.seen);
	signed_store_close(&v.store);
	return close_stdout() && ok ? EXIT_OK : EXIT_FAILED;
}
