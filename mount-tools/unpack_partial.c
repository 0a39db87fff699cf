/* unpack_partial.c - what is good of a damaged container, under a name that nobody takes for the whole, and the list of
 * what is missing. The list gets its name first: where there is a partial file there is its list. */
#include "lost.h"
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARTIAL ".partial"
#define LIST	".partial.json"

struct save {
	struct member *m;
	const struct wfs_reader *reader;
	int fd;
	atomic_int sys_errno; /* of a write that failed */
};

static bool note_write(struct save *s, int sys_errno)
{
	if (sys_errno)
		atomic_store(&s->sys_errno, sys_errno);
	return !sys_errno && !transfer_stopped(s->m->t);
}

static bool save_block(void *ctx, const struct wfs_block *block, const void *raw)
{
	struct save *s = ctx;
	return note_write(s, write_sparse(s->fd, raw, block->raw_len, block->raw_off));
}

enum { STEP = 1 << 20 };

/* A constant region of other bytes than zero: those are a hole already. */
static bool save_constant(struct save *s, const struct wfs_region *g, char *buf)
{
	static const uint8_t zero[8];
	bool ok = true;
	if (!memcmp(g->fill, zero, sizeof(zero)))
		return true;
	for (size_t i = 0; i < STEP; i++)
		buf[i] = (char)g->fill[i % 8];
	for (uint64_t done = 0; ok && done < g->raw_len; done += STEP)
		ok = note_write(s, write_full(s->fd, buf, (size_t)MIN((uint64_t)STEP, g->raw_len - done),
					      (off_t)(g->raw_off + done)));
	return ok;
}

/* Its source lies before it and holds no copies: all that is good of it was written. */
static bool save_copy(struct save *s, const struct wfs_region *g, char *buf)
{
	bool ok = true;
	for (uint64_t done = 0; ok && done < g->raw_len; done += STEP) {
		size_t len = (size_t)MIN((uint64_t)STEP, g->raw_len - done);
		ssize_t got = pread_full(s->fd, buf, len, (off_t)(g->copy_of + done));
		ok = note_write(s, got == (ssize_t)len ? write_sparse(s->fd, buf, len, g->raw_off + done)
						       : (got < 0 ? errno : EIO));
	}
	return ok;
}

static bool save_regions(struct save *s, uint64_t nr_regions)
{
	char *buf = xcalloc(1, STEP);
	bool ok = true;
	for (int copies = 0; copies < 2; copies++)
		for (uint64_t i = 0; ok && i < nr_regions; i++) {
			struct wfs_region g;
			wfs_reader_region(s->reader, i, &g);
			if (!copies && g.kind == WFS_REGION_CONSTANT)
				ok = save_constant(s, &g, buf);
			else if (copies && g.kind == WFS_REGION_COPY)
				ok = save_copy(s, &g, buf);
		}
	free(buf);
	return ok;
}

/* All that is good, in the place it has in the original. */
static bool save_content(struct save *s, struct lost *lost)
{
	const struct wfs_head *head = &s->m->group->head;
	struct wfs_info info;
	int ret = ftruncate(s->fd, 0) || ftruncate(s->fd, (off_t)head->raw_len) ? errno : 0;
	wfs_reader_info(s->reader, &info);
	*lost = (struct lost){0};
	if (!ret) {
		lost_find(lost, s->reader, s->m->t->threads_per_job, save_block, s);
		ret = atomic_load(&s->sys_errno);
	}
	if (!ret && !transfer_stopped(s->m->t) && !save_regions(s, info.nr_regions))
		ret = atomic_load(&s->sys_errno);
	if (ret)
		return member_failed_errno(s->m, "cannot write what is good of it", ret);
	return !transfer_stopped(s->m->t);
}

static int write_list(const struct member *m, const struct lost *lost, const char *reason, int fd)
{
	const struct wfs_head *head = &m->group->head;
	int own = dup(fd), ret = 0;
	FILE *out = own < 0 ? NULL : fdopen(own, "w");
	struct json j;
	if (!out) {
		ret = errno;
		if (own >= 0)
			close(own);
		return ret;
	}
	json_init(&j, out);
	json_object(&j, NULL);
	json_string(&j, "command", "unpack --keep-going");
	json_string(&j, "version", wfs_version());
	json_string(&j, "container", m->base);
	json_string(&j, "original", m->target);
	json_uint(&j, "raw_bytes", head->raw_len);
	json_hex(&j, "sha256", head->sha256, SHA256_BYTES);
	json_string(&j, "reason", reason);
	lost_print_json(lost, &j, SIZE_MAX);
	json_end(&j);
	if (ferror(out))
		ret = EIO;
	if (fclose(out) && !ret)
		ret = errno;
	return ret;
}

static int finish(const struct member *m, struct temp_file *temp, const char *name, struct timespec mtime)
{
	int ret = attributes_set(temp->fd, m->src_fd, &m->st, mtime);
	if (!ret && fsync(temp->fd))
		ret = errno;
	return ret ? ret : temp_publish(temp, name, m->t->opts->force);
}

/* Whether the two names are free, or may be replaced: never what the source has under them itself. */
static bool names_free(struct member *m, const char *partial, const char *list)
{
	const char *const name[] = {partial, list};
	struct stat st;
	for (unsigned i = 0; i < ARRAY_LEN(name); i++) {
		bool is_source = !m->t->single && !fstatat(m->src_dir, name[i], &st, AT_SYMLINK_NOFOLLOW);
		if (is_source || (!m->t->opts->force && !fstatat(m->dst_dir, name[i], &st, AT_SYMLINK_NOFOLLOW)))
			return member_failed(m,
					     "is damaged, and %s is there already%s: what is good of it was not saved",
					     name[i], is_source ? " in the source" : " (--force replaces it)");
	}
	return true;
}

static bool publish(struct member *m, const struct lost *lost, const char *reason, struct temp_file *temp,
		    const char *partial, const char *list)
{
	const struct timespec original = {m->group->head.mtime_sec, m->group->head.mtime_nsec};
	struct temp_file list_temp;
	int ret = temp_create(&list_temp, m->dst_dir, list);
	if (!ret)
		ret = write_list(m, lost, reason, list_temp.fd);
	if (!ret)
		ret = finish(m, &list_temp, list, (struct timespec){.tv_nsec = UTIME_NOW});
	if (!ret)
		ret = finish(m, temp, partial, original);
	temp_discard(&list_temp);
	return !ret || member_failed_errno(m, "cannot finish what is good of it", ret);
}

void save_partial(struct member *m, const struct wfs_reader *reader, struct temp_file *temp)
{
	struct save s = {.m = m, .reader = reader, .fd = temp->fd};
	char *partial = xasprintf("%s" PARTIAL, m->target), *list = xasprintf("%s" LIST, m->target);
	char *reason = xstrdup(m->out->note);
	struct lost lost = {0};
	if (names_free(m, partial, list) && save_content(&s, &lost) && publish(m, &lost, reason, temp, partial, list)) {
		if (lost.nr_ranges)
			member_failed(
				m, "%s; %llu of %llu byte%s %s lost, the rest is in %s, and %s lists what is missing",
				reason, (unsigned long long)lost.bytes, (unsigned long long)m->group->head.raw_len,
				plural(m->group->head.raw_len), is_or_are(m->group->head.raw_len), partial, list);
		else
			member_failed(m, "%s, though every block has its hash; what they give is in %s", reason,
				      partial);
	}
	lost_free(&lost);
	free(reason);
	free(partial);
	free(list);
}
