/* unpack_file.c - what unpack does with one file: containers become their originals, proven by SHA-256. */
#include "lost.h"
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A plain file beside its container: a mount shows the plain one, so it must be the one that stays. Where both say the
 * same there is nothing to do. */
static bool is_same_beside(struct member *m, const char *original)
{
	struct wfs_head *head = &m->group->head;
	uint8_t sha256[SHA256_BYTES];
	int fd = tree_open_file(m->src_dir, original);
	struct stat st;
	bool same = fd >= 0 && !fstat(fd, &st) && (uint64_t)st.st_size == head->raw_len &&
		    !sha256_file(fd, sha256, NULL, NULL) && !memcmp(sha256, head->sha256, SHA256_BYTES);
	if (fd >= 0)
		close(fd);
	return same;
}

static bool set_form(struct member *m, enum form form, const char *target)
{
	m->form = form == FORM_COPY && m->t->in_place ? FORM_KEEP : form;
	snprintf(m->target, sizeof(m->target), "%s", m->t->single_target ? m->t->single_target : target);
	return true;
}

static bool classify_container(struct member *m, const char *original)
{
	struct stat st;
	m->out->raw_bytes = m->group->head.raw_len;
	memcpy(m->out->sha256, m->group->head.sha256, SHA256_BYTES);
	m->out->has_sha256 = true;
	if (!m->t->single && !m->t->in_place && !fstatat(m->src_dir, original, &st, AT_SYMLINK_NOFOLLOW)) {
		if (!is_same_beside(m, original))
			return member_failed(m, "%s lies beside it with other content: not unpacked", original);
		/* Copying the plain file gives this one too. */
		m->form = FORM_KEEP;
		return true;
	}
	return set_form(m, FORM_CONVERT, original);
}

/* A container that cannot be opened keeps all its bytes to itself. */
static bool fail_open(struct member *m, const struct wfs_error *err)
{
	char advice[ADVICE_BYTES];
	if (err->status != WFS_BAD_DATA && err->status != WFS_BAD_CHECKSUM)
		return member_failed_wfs(m, NULL, err);
	return member_failed(m, "%s%s", err->reason, damage_advice(m->src_fd, NULL, err, advice));
}

static bool classify(struct member *m)
{
	struct wfs_error err = {0};
	char original[NAME_MAX + 1];
	bool suffixed = container_name(m->base, original);
	enum wfs_status status;
	if (!suffixed && !m->t->single)
		return set_form(m, FORM_COPY, m->base);
	status = named_head_read(m->base, m->src_fd, &m->group->head, &err);
	if (status == WFS_NOT_CONTAINER && !m->t->single)
		return set_form(m, FORM_COPY, m->base);
	if (status != WFS_OK)
		return fail_open(m, &err);
	if (!suffixed && m->t->in_place)
		return member_failed(m, "its name does not end in " SUFFIX ": use -o");
	return classify_container(m, suffixed ? original : m->base);
}

static uint64_t work(const struct transfer *t, const struct tree_entry *first)
{
	const char *name;
	struct wfs_head head;
	uint64_t raw_len = (uint64_t)first->st.st_size;
	int dir_fd = tree_open_parent(t->src_root, first->path, &name);
	int fd = dir_fd >= 0 && (t->single || container_name(name, NULL)) ? tree_open_file(dir_fd, name) : -1;
	if (fd >= 0 && wfs_head_read(fd, &head, NULL) == WFS_OK)
		raw_len = head.raw_len;
	if (fd >= 0)
		close(fd);
	if (dir_fd >= 0)
		close(dir_fd);
	return raw_len;
}

struct writer {
	struct member *m;
	int fd;
	uint64_t off;
	struct hash_thread *hash;
};

static bool is_zero(const char *p, size_t len)
{
	return len == 0 || (p[0] == 0 && !memcmp(p, p + 1, len - 1));
}

int write_sparse(int fd, const char *raw, size_t len, uint64_t off)
{
	static const size_t step = 64 << 10;
	size_t done = 0, run = 0; /* [run, done) is to be written */
	while (done < len) {
		size_t n = MIN(step - (size_t)((off + done) % step), len - done);
		int ret;
		if (n == step && is_zero(raw + done, n)) {
			ret = write_full(fd, raw + run, done - run, (off_t)(off + run));
			if (ret)
				return ret;
			run = done + n;
		}
		done += n;
	}
	return write_full(fd, raw + run, done - run, (off_t)(off + run));
}

static int write_piece(void *ctx, const void *raw, size_t len)
{
	struct writer *w = ctx;
	int ret;
	hash_thread_add(w->hash, raw, len);
	ret = write_sparse(w->fd, raw, len, w->off);
	hash_thread_wait(w->hash);
	if (ret) {
		member_failed_errno(w->m, "cannot write", ret);
		return ret;
	}
	w->off += len;
	member_progress(w->m, w->off);
	return transfer_stopped(w->m->t);
}

static void fail_decode(struct member *m, const struct wfs_reader *reader, const struct wfs_error *err, bool keep_going)
{
	char reason[REASON_BYTES], advice[ADVICE_BYTES];
	wfs_reason(reason, reader, err);
	member_failed(m, "%s%s", reason, keep_going ? "" : damage_advice(m->src_fd, reader, err, advice));
}

/* Decode everything into temp; the SHA-256 proves it. *damaged_ret: it is the container's fault that it failed. */
static bool decode_all(struct member *m, const struct wfs_reader *reader, struct temp_file *temp, bool keep_going,
		       bool *damaged_ret)
{
	struct writer w = {.m = m, .fd = temp->fd, .hash = hash_thread_new()};
	const struct wfs_head *head = &m->group->head;
	uint8_t sha256[SHA256_BYTES];
	struct wfs_error err = {0};
	bool ok = wfs_reader_stream(reader, 0, head->raw_len, m->t->threads_per_job, write_piece, &w, &err) == WFS_OK;
	if (ok) {
		hash_thread_final(w.hash, sha256);
		ok = !memcmp(sha256, head->sha256, SHA256_BYTES) ||
		     member_failed(m, "the unpacked bytes do not have the original's SHA-256%s",
				   keep_going ? "" : ": restore it from elsewhere");
		*damaged_ret = !ok;
	} else {
		*damaged_ret = err.status != WFS_CANCELLED && err.block != WFS_NO_BLOCK;
		if (*damaged_ret)
			fail_decode(m, reader, &err, keep_going);
		else
			member_failed_wfs(m, reader, &err);
	}
	hash_thread_free(w.hash);
	/* The trailing hole. */
	if (ok && ftruncate(temp->fd, (off_t)head->raw_len))
		ok = member_failed_errno(m, "cannot write", errno);
	return ok;
}

static enum fill_result convert_or_save(struct member *m, struct temp_file *temp, bool keep_going)
{
	const struct wfs_reader_opts opts = {.cpu = m->t->opts->cpu};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	struct wfs_info info;
	bool damaged = false, ok = wfs_reader_open(m->src_fd, &opts, &reader, &err) == WFS_OK;
	if (ok) {
		/* The head that was looked at before must be the one that is decoded. */
		wfs_reader_info(reader, &info);
		m->group->head = info.head;
		ok = decode_all(m, reader, temp, keep_going, &damaged);
	} else {
		fail_open(m, &err);
	}
	if (damaged && keep_going)
		save_partial(m, reader, temp);
	if (ok && (info.head.from_tail || info.meta_from_copy_b))
		member_note(m, "one copy of its %s is damaged; everything was read from the other",
			    info.head.from_tail ? "head" : "metadata");
	wfs_reader_free(reader);
	return ok ? FILL_OK : FILL_FAILED;
}

static enum fill_result convert(struct member *m, struct temp_file *temp)
{
	return convert_or_save(m, temp, false);
}

static enum fill_result convert_keep_going(struct member *m, struct temp_file *temp)
{
	return convert_or_save(m, temp, true);
}

static struct timespec converted_mtime(const struct member *m)
{
	return (struct timespec){m->group->head.mtime_sec, m->group->head.mtime_nsec};
}

const struct transfer_ops unpack_ops = {
	.command = "unpack",
	.converted = "unpacked",
	.gerund = "unpacking",
	.restores = true,
	.passes = 1,
	.classify = classify,
	.work = work,
	.convert = convert,
	.converted_mtime = converted_mtime,
};

const struct transfer_ops unpack_keep_going_ops = {
	.command = "unpack",
	.converted = "unpacked",
	.gerund = "unpacking",
	.restores = true,
	.passes = 1,
	.classify = classify,
	.work = work,
	.convert = convert_keep_going,
	.converted_mtime = converted_mtime,
};
