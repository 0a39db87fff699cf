/* present.c - whether what lies in the destination already is what would be written: same size, modification time and
 * SHA-256 of the original. That is how a run that was killed goes on where it stopped. */
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct identity {
	uint64_t raw_len;
	struct timespec mtime;
};

static bool stopped(void *ctx)
{
	return transfer_stopped(ctx);
}

/* SHA-256 of what the destination should give: read once a group, and only when size and time agree. */
static bool wanted_sha256(struct member *m, const uint8_t **sha256_ret)
{
	struct group *g = m->group;
	if (m->form == FORM_CONVERT && !m->target_is_container) {
		*sha256_ret = g->head.sha256;
		return true;
	}
	if (!g->sha256_known) {
		int ret = sha256_file(m->src_fd, g->sha256, stopped, m->t);
		if (ret == ECANCELED)
			return false;
		if (ret)
			return member_failed_errno(m, "cannot read", ret);
		if (!member_unchanged(m))
			return false;
		g->sha256_known = true;
	}
	*sha256_ret = g->sha256;
	return true;
}

static struct identity wanted_identity(const struct member *m)
{
	if (m->form == FORM_CONVERT && !m->target_is_container)
		return (struct identity){m->group->head.raw_len, m->t->ops->converted_mtime(m)};
	return (struct identity){(uint64_t)m->st.st_size, m->st.st_mtim};
}

static bool equals(const struct identity *want, uint64_t raw_len, int64_t sec, long nsec)
{
	return want->raw_len == raw_len && want->mtime.tv_sec == sec && want->mtime.tv_nsec == nsec;
}

static int stop_verify(void *ctx, uint64_t raw_done, uint64_t comp_done)
{
	(void)raw_done;
	(void)comp_done;
	return transfer_stopped(ctx);
}

/* In place the original will be removed on the strength of this container: then every byte is decoded. */
static bool is_sound(const struct member *m, int fd, const struct wfs_head *head, const struct stat *st)
{
	const struct wfs_reader_opts opts = {.cpu = m->t->opts->cpu};
	struct wfs_reader *reader = NULL;
	bool ok = !head->from_tail && (uint64_t)st->st_size == head->file_len &&
		  wfs_reader_open(fd, &opts, &reader, NULL) == WFS_OK;
	if (ok && m->t->in_place)
		ok = wfs_reader_verify(reader, m->t->threads_per_job, stop_verify, m->t, NULL) == WFS_OK;
	wfs_reader_free(reader);
	return ok;
}

static enum presence compare_container(struct member *m, int fd, const struct stat *st)
{
	struct identity want = wanted_identity(m);
	const uint8_t *sha256;
	struct wfs_head head;
	if (wfs_head_read(fd, &head, NULL) != WFS_OK || !equals(&want, head.raw_len, head.mtime_sec, head.mtime_nsec))
		return PRESENT_DIFFERENT;
	if (!wanted_sha256(m, &sha256))
		return PRESENT_UNKNOWN;
	if (memcmp(sha256, head.sha256, SHA256_BYTES) != 0 || !is_sound(m, fd, &head, st))
		return transfer_stopped(m->t) ? PRESENT_UNKNOWN : PRESENT_DIFFERENT;
	memcpy(m->out->sha256, sha256, SHA256_BYTES);
	m->out->has_sha256 = true;
	return PRESENT_EQUAL;
}

static enum presence compare_plain(struct member *m, int fd, const struct stat *st)
{
	struct identity want = wanted_identity(m);
	const uint8_t *sha256;
	uint8_t there[SHA256_BYTES];
	int ret;
	if (!equals(&want, (uint64_t)st->st_size, st->st_mtim.tv_sec, st->st_mtim.tv_nsec))
		return PRESENT_DIFFERENT;
	/* --hardlink made it so. */
	if (st->st_dev == m->st.st_dev && st->st_ino == m->st.st_ino && !m->t->in_place)
		return PRESENT_EQUAL;
	if (!wanted_sha256(m, &sha256))
		return PRESENT_UNKNOWN;
	ret = sha256_file(fd, there, stopped, m->t);
	if (ret == ECANCELED)
		return PRESENT_UNKNOWN;
	if (ret) {
		member_failed_errno(m, "cannot read what is there already", ret);
		return PRESENT_UNKNOWN;
	}
	return memcmp(sha256, there, SHA256_BYTES) != 0 ? PRESENT_DIFFERENT : PRESENT_EQUAL;
}

/* In place the original will go because of the file that is there: it may be another's, copied a moment ago, or that of
 * a run that was killed before it was durable. */
static int settle(const struct member *m, int fd)
{
	int ret;
	if (!m->t->in_place)
		return 0;
	ret = file_settle(fd);
	return ret ? ret : dir_sync(m->dst_dir);
}

/* Whether the target's name is the source's own, by whatever path. */
static bool is_source(const struct member *m, const char *name, const struct stat *st)
{
	struct stat from, to;
	if (m->t->in_place || st->st_dev != m->st.st_dev || st->st_ino != m->st.st_ino)
		return false;
	return st->st_nlink == 1 || (!fstat(m->src_dir, &from) && !fstat(m->dst_dir, &to) && from.st_dev == to.st_dev &&
				     from.st_ino == to.st_ino && !strcmp(name, m->name));
}

static enum presence look_at(struct member *m, const char *name, bool container)
{
	enum presence presence = PRESENT_DIFFERENT;
	struct stat st;
	int fd, ret;
	if (!name[0])
		return PRESENT_NONE;
	if (fstatat(m->dst_dir, name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno == ENOENT)
			return PRESENT_NONE;
		member_failed_errno(m, "cannot look for what is there already", errno);
		return PRESENT_UNKNOWN;
	}
	/* Whoever names /dev/null does not want a file there. */
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode)) {
		member_failed(m, "%s is there already and is a device, FIFO or socket: never replaced", name);
		return PRESENT_UNKNOWN;
	}
	if (!S_ISREG(st.st_mode))
		return PRESENT_DIFFERENT;
	if (is_source(m, name, &st)) {
		member_failed(m, "the destination is the file itself: use --in-place, or another name");
		return PRESENT_UNKNOWN;
	}
	fd = tree_open_file(m->dst_dir, name);
	ret = fd < 0 || fstat(fd, &st) ? errno : settle(m, fd);
	if (ret) {
		member_failed_errno(m, "cannot read what is there already", ret);
		presence = PRESENT_UNKNOWN;
	} else {
		presence = container ? compare_container(m, fd, &st) : compare_plain(m, fd, &st);
	}
	if (presence == PRESENT_EQUAL && container)
		m->out->stored_bytes = (uint64_t)st.st_size;
	if (presence == PRESENT_EQUAL)
		m->successor->st = st;
	if (fd >= 0)
		close(fd);
	return presence;
}

enum presence member_present(struct member *m, const char **name_ret)
{
	/* What kind the other form is: pack's is the opposite of the target's; unpack has none. */
	enum presence presence = look_at(m, m->target, m->target_is_container), other;
	struct stat target_st = m->successor->st;
	*name_ret = m->target;
	if (presence != PRESENT_NONE && presence != PRESENT_EQUAL)
		return presence;
	other = look_at(m, m->other, !m->target_is_container);
	if (presence == PRESENT_EQUAL && (other == PRESENT_NONE || other == PRESENT_EQUAL)) {
		m->successor->st = target_st;
		return presence;
	}
	/* Also what would hide or contradict a target that is as it should be. */
	*name_ret = m->other;
	return other;
}
