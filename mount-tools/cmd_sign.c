/* cmd_sign.c - weightfs sign: write the signed manifest of a store. */
#include "commands.h"
#include "json_out.h"
#include "safe_file.h"
#include "same_file.h"
#include "sign.h"
#include "squash.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_KEY = 256, OPT_CPU, OPT_JSON };

static const struct option options[] = {
	{"key", required_argument, NULL, OPT_KEY}, {"threads", required_argument, NULL, 'j'},
	{"cpu", required_argument, NULL, OPT_CPU}, {"json", no_argument, NULL, OPT_JSON},
	{"quiet", no_argument, NULL, 'q'},	   COMMON_OPTIONS,
};

struct sign {
	const char *key_path;
	bool json, quiet;
	unsigned nr_threads;
	enum wfs_cpu cpu;
	struct progress *progress;
	struct wfs_signing_key *key;
	struct signed_store store;
	struct temp_file temp;	  /* of the manifest: held all the time, which tells others that we are at work */
	struct signed_file *file; /* of each entry in the store's order */
	atomic_ulong nr_failed;
	uint64_t nr[WFS_MANIFEST_FILE + 1], nr_rewritten, raw_bytes;
	uint8_t sha256[SHA256_BYTES]; /* of the manifest */
};

static const struct tree_entry *entry_of(const struct sign *s, size_t i)
{
	return &s->store.tree.entry[s->store.order[i]];
}

static void tell(const struct sign *s, const char *path, const char *reason)
{
	progress_clear(s->progress);
	if (*path)
		msg("sign: %s/%s: %s", s->store.path, path, reason);
	else
		msg("sign: %s: %s", s->store.path, reason);
}

static void fail(struct sign *s, const char *path, const char *reason)
{
	tell(s, path, reason);
	s->nr_failed++;
}

/* ---- nobody else may be at work ---- */

/* Refuse before hours of hashing what no manifest can hold, as of a huge sparse file. */
static void check_pieces(struct sign *s)
{
	static const char line[] = "piece 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";
	uint64_t most = WFS_MANIFEST_MAX_BYTES / (sizeof(line) - 1);
	for (size_t i = 0; i < s->store.nr; i++) {
		const struct tree_entry *e = entry_of(s, i);
		/* At least so many lines: one piece needs none. */
		bool has_pieces =
			S_ISREG(e->st.st_mode) && !container_path(e->path) && e->st.st_size > WFS_MANIFEST_PIECE_BYTES;
		uint64_t nr = has_pieces ? (uint64_t)e->st.st_size / WFS_MANIFEST_PIECE_BYTES : 0;
		if (nr > most) {
			fail(s, e->path, "a manifest cannot hold so many files that are no containers: pack it first");
			return;
		}
		most -= nr;
	}
}

/* Remove what dead runs left. false: a live one has temporaries in the store, or a file is of no kind that can be
 * signed. */
static bool check_store(struct sign *s)
{
	unsigned nr_alive = 0;
	for (size_t i = 0; i < s->store.tree.nr; i++) {
		const struct tree_entry *e = &s->store.tree.entry[i];
		if (!S_ISDIR(e->st.st_mode) && !S_ISREG(e->st.st_mode) && !S_ISLNK(e->st.st_mode))
			fail(s, e->path, "is neither file, directory nor symbolic link: it cannot be signed");
		if (S_ISDIR(e->st.st_mode)) {
			int fd = tree_open_dir(s->store.root_fd, e->path);
			nr_alive += fd < 0 ? 0 : temp_clean(fd);
			if (fd >= 0)
				close(fd);
		}
	}
	check_pieces(s);
	/* Our own is one of them. */
	if (nr_alive > 1)
		fail(s, "", "another weightfs is writing to this store: let it end first");
	return !s->nr_failed;
}

static bool same_entry(const struct tree_entry *a, const struct signed_file *f, const struct tree_entry *b)
{
	if (strcmp(a->path, b->path) != 0 || (a->st.st_mode & S_IFMT) != (b->st.st_mode & S_IFMT))
		return false;
	if (S_ISLNK(a->st.st_mode))
		return !strcmp(a->link_target, b->link_target);
	return !S_ISREG(a->st.st_mode) || same_file(f->rewritten ? &f->st : &a->st, &b->st);
}

/* Whether the store is still what was looked at. */
static bool store_unchanged(struct sign *s)
{
	struct signed_store now;
	bool same;
	if (!signed_store_open(&now, "sign", s->store.path))
		return false;
	same = now.complete && now.nr == s->store.nr;
	for (size_t i = 0; same && i < now.nr; i++)
		same = same_entry(entry_of(s, i), &s->file[i], &now.tree.entry[now.order[i]]);
	/* Whoever verifies the store would find them, as nothing signs them. */
	for (size_t i = 0; i < now.tree.nr; i++) {
		const struct tree_entry *e = &now.tree.entry[i];
		if (tree_entry_is_temporary(e) && strcmp(e->path, s->temp.name) != 0)
			fail(s, e->path, "is a temporary file of weightfs: let its run end first, or remove it");
	}
	signed_store_close(&now);
	if (!same)
		fail(s, "", "changed while it was signed: run it again when nobody writes to it");
	return same && !s->nr_failed;
}

/* ---- the files ---- */

/* Where in the order an entry of the tree is. SIZE_MAX: nowhere. */
static size_t order_of(const struct sign *s, size_t entry)
{
	size_t low = 0, high = s->store.nr;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(entry_of(s, mid)->path, s->store.tree.entry[entry].path);
		if (!order)
			return mid;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return SIZE_MAX;
}

/* Names of one file are looked at once, under the first of them. */
static void handle_file(void *ctx, size_t i, unsigned nr_threads)
{
	struct sign *s = ctx;
	const struct sign_opts opts = {nr_threads, s->cpu, s->progress};
	const struct tree_entry *e = entry_of(s, i);
	if (signed_store_leader(&s->store, s->store.order[i]) != s->store.order[i])
		return;
	sign_file(&s->store, e, &opts, &s->file[i]);
	if (!s->file[i].good)
		fail(s, e->path, s->file[i].reason);
	else if (s->file[i].reason[0])
		tell(s, e->path, s->file[i].reason);
}

static void share_links(struct sign *s)
{
	for (size_t i = 0; i < s->store.nr; i++) {
		const struct tree_entry *e = entry_of(s, i);
		const struct signed_file *first;
		size_t leader = signed_store_leader(&s->store, s->store.order[i]), at;
		if (!S_ISREG(e->st.st_mode) || leader == s->store.order[i])
			continue;
		at = order_of(s, leader);
		if (at == SIZE_MAX) {
			fail(s, e->path, "the first of its names is not in the list");
			continue;
		}
		first = &s->file[at];
		s->file[i] = *first;
		s->file[i].follows = true;
		s->file[i].piece = NULL;
		if (first->piece) {
			s->file[i].piece = xcalloc(first->nr_pieces, SHA256_BYTES);
			memcpy(s->file[i].piece, first->piece, first->nr_pieces * SHA256_BYTES);
		}
	}
}

/* ---- the manifest ---- */

static struct wfs_manifest_entry manifest_entry(const struct tree_entry *e, const struct signed_file *f)
{
	struct wfs_manifest_entry m = {.path = e->path};
	if (S_ISDIR(e->st.st_mode)) {
		m.kind = WFS_MANIFEST_DIR;
	} else if (S_ISLNK(e->st.st_mode)) {
		m.kind = WFS_MANIFEST_SYMLINK;
		m.target = e->link_target;
	} else {
		m.kind = f->container ? WFS_MANIFEST_CONTAINER : WFS_MANIFEST_FILE;
		m.size = f->size;
		m.sha256 = f->sha256;
		m.meta_sha256 = f->meta_sha256;
		m.piece = f->piece;
		m.nr_pieces = f->nr_pieces;
	}
	return m;
}

/* Everything that the manifest lists is on the disk before it is. */
static int write_manifest(struct sign *s, const void *text, size_t len)
{
	struct timespec now;
	struct stat st;
	int ret = write_full(s->temp.fd, text, len, 0);
	if (ret)
		return ret;
	if (fstat(s->store.root_fd, &st) || clock_gettime(CLOCK_REALTIME, &now))
		return errno;
	/* Who may look at the store may read its manifest; nobody writes to it. */
	st.st_mode &= 0444;
	ret = attributes_set(s->temp.fd, s->store.root_fd, &st, now);
	if (ret)
		return ret;
	if (fsync(s->temp.fd) || syncfs(s->store.root_fd))
		return errno;
	return temp_publish(&s->temp, WFS_MANIFEST_NAME, true);
}

static bool make_manifest(struct sign *s)
{
	struct wfs_manifest_writer *w = wfs_manifest_writer_new(s->key);
	struct wfs_error err = {.reason = "out of memory", .status = WFS_NO_MEMORY};
	const void *text = NULL;
	size_t len = 0;
	bool ok = w != NULL;
	int ret;
	for (size_t i = 0; ok && i < s->store.nr; i++) {
		const struct wfs_manifest_entry m = manifest_entry(entry_of(s, i), &s->file[i]);
		ok = wfs_manifest_add(w, &m, &err) == WFS_OK;
		s->nr[m.kind]++;
		s->raw_bytes += m.size;
		s->nr_rewritten += s->file[i].rewritten && !s->file[i].follows;
	}
	ok = ok && wfs_manifest_sign(w, &text, &len, &err) == WFS_OK;
	if (!ok) {
		fail(s, WFS_MANIFEST_NAME, err.reason);
	} else {
		struct sha256 *h = sha256_new();
		sha256_update(h, text, len);
		sha256_final(h, s->sha256);
		sha256_free(h);
		ret = write_manifest(s, text, len);
		if (ret)
			fail(s, WFS_MANIFEST_NAME, strerror(ret));
		ok = !ret;
	}
	wfs_manifest_writer_free(w);
	return ok;
}

static void print_totals(const struct sign *s)
{
	char raw[SIZE_TEXT_BYTES], manifest[SHA256_TEXT_BYTES];
	struct json j;
	if (s->json) {
		json_init(&j, stdout);
		json_object(&j, NULL);
		json_string(&j, "command", "sign");
		json_string(&j, "version", wfs_version());
		json_string(&j, "store", s->store.path);
		json_hex(&j, "manifest_sha256", s->sha256, SHA256_BYTES);
		json_uint(&j, "directories", s->nr[WFS_MANIFEST_DIR]);
		json_uint(&j, "symlinks", s->nr[WFS_MANIFEST_SYMLINK]);
		json_uint(&j, "containers", s->nr[WFS_MANIFEST_CONTAINER]);
		json_uint(&j, "files", s->nr[WFS_MANIFEST_FILE]);
		json_uint(&j, "rewritten", s->nr_rewritten);
		json_uint(&j, "raw_bytes", s->raw_bytes);
		json_end(&j);
	} else if (!s->quiet) {
		out_line("%llu container%s (%llu written anew) and %llu other file%s (%s) are signed",
			 (unsigned long long)s->nr[WFS_MANIFEST_CONTAINER], plural(s->nr[WFS_MANIFEST_CONTAINER]),
			 (unsigned long long)s->nr_rewritten, (unsigned long long)s->nr[WFS_MANIFEST_FILE],
			 plural(s->nr[WFS_MANIFEST_FILE]), size_text(raw, s->raw_bytes));
		out_line("SHA-256 of the manifest: %s", sha256_text(manifest, s->sha256));
	}
}

static bool sign_store(struct sign *s)
{
	int ret = temp_create(&s->temp, s->store.root_fd, WFS_MANIFEST_NAME);
	char reason[REASON_BYTES];
	if (ret) {
		snprintf(reason, sizeof(reason), "%s%s", strerror(ret), squash_hint(s->store.root_fd, ret));
		fail(s, WFS_MANIFEST_NAME, reason);
		return false;
	}
	if (!check_store(s))
		return false;
	s->file = xcalloc(s->store.nr + 1, sizeof(*s->file));
	if (!s->json && !s->quiet)
		s->progress = progress_new("signing", signed_store_work(&s->store), 2);
	signed_store_for_files(&s->store, s->nr_threads, handle_file, s);
	progress_free(s->progress);
	s->progress = NULL;
	share_links(s);
	return !s->nr_failed && store_unchanged(s) && make_manifest(s);
}

/* The whole command after its options. */
static bool run(struct sign *s, const char *path)
{
	bool ok;
	s->key = signing_key_load("sign", s->key_path);
	if (!s->key)
		return false;
	if (!signed_store_open(&s->store, "sign", path)) {
		wfs_signing_key_free(s->key);
		return false;
	}
	ok = s->store.complete && sign_store(s);
	if (ok)
		print_totals(s);
	temp_discard(&s->temp);
	for (size_t i = 0; s->file && i < s->store.nr; i++)
		free(s->file[i].piece);
	free(s->file);
	signed_store_close(&s->store);
	wfs_signing_key_free(s->key);
	return ok;
}

static bool take_option(int c, struct sign *s)
{
	switch (c) {
	case OPT_KEY:
		s->key_path = optarg;
		return true;
	case 'j':
		return parse_threads("sign", optarg, &s->nr_threads);
	case OPT_CPU:
		return parse_cpu("sign", optarg, &s->cpu);
	case OPT_JSON:
		return s->json = true;
	default:
		return s->quiet = true;
	}
}

int cmd_sign(const struct command *self, int argc, char **argv)
{
	struct sign s = {.nr_threads = nr_processors(), .temp = {.fd = -1}};
	bool ok;
	int c;
	while ((c = getopt_long(argc, argv, "j:qhV", options, NULL)) >= 0) {
		if (c == 'h' || c == 'V' || c == '?')
			return common_option(self, c);
		if (!take_option(c, &s))
			return EXIT_USAGE;
	}
	if (!check_arguments(self, argc - optind, argv + optind, 1, 1))
		return EXIT_USAGE;
	if (!s.key_path || !*s.key_path) {
		msg("sign: with which key? Use --key KEY.pem");
		return EXIT_USAGE;
	}
	ok = run(&s, argv[optind]);
	return close_stdout() && ok ? EXIT_OK : EXIT_FAILED;
}
