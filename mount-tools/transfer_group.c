/* transfer_group.c - one file and all its hard links: from what it is to what it shall be. */
#include "transfer.h"
#include "same_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool member_failed(struct member *m, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(m->out->note, sizeof(m->out->note), fmt, args);
	va_end(args);
	m->out->action = ACTION_FAILED;
	return false;
}

bool member_failed_errno(struct member *m, const char *what, int sys_errno)
{
	if (sys_errno == ENOSPC || sys_errno == EDQUOT) {
		if (m->t->in_place && !m->t->alone)
			m->group->disk_full = true;
		else
			atomic_store(&m->t->stop, STOP_DISK_FULL);
	}
	return member_failed(m, "%s: %s%s", what, file_error_text(sys_errno),
			     transfer_hint(m->t, m->dst_dir >= 0 ? m->dst_dir : m->t->src_root, sys_errno));
}

bool member_failed_wfs(struct member *m, const struct wfs_reader *reader, const struct wfs_error *err)
{
	char reason[REASON_BYTES];
	if (err->status == WFS_CANCELLED)
		return false;
	if (err->status == WFS_IO)
		return member_failed_errno(m, err->reason, err->sys_errno);
	wfs_reason(reason, reader, err);
	return member_failed(m, "%s", reason);
}

bool member_appeared(struct member *m)
{
	m->appeared = true;
	return member_failed(m, "%s appeared meanwhile: run again", m->target);
}

void member_note(struct member *m, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(m->out->note, sizeof(m->out->note), fmt, args);
	va_end(args);
}

void member_progress(struct member *m, uint64_t work_done)
{
	if (work_done <= m->group->work_done)
		return;
	progress_add(m->t->progress, work_done - m->group->work_done);
	m->group->work_done = work_done;
}

/* The change time too: a writer can set the modification time back. */
static bool same_state(const struct stat *a, const struct stat *b)
{
	return same_content(a, b) && same_time(a->st_ctim, b->st_ctim);
}

/* Nothing has its name any more. In place its other form may stand there, made by another run. */
static bool member_gone(struct member *m)
{
	if (m->t->in_place && !faccessat(m->src_dir, m->target, F_OK, AT_SYMLINK_NOFOLLOW))
		return member_failed(m, "gave way to %s while it was read: another run was faster", m->target);
	return member_failed(m, "was removed or moved while it was read");
}

/* The name first: the change time moves with the number of names, too. */
bool member_unchanged(struct member *m)
{
	struct stat now, named;
	if (fstat(m->src_fd, &now))
		return member_failed_errno(m, "cannot stat", errno);
	if (fstatat(m->src_dir, m->name, &named, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? member_gone(m) : member_failed_errno(m, "cannot stat", errno);
	if (!same_inode(&named, &m->st))
		return member_failed(m, "was replaced while it was read: left as it is");
	if (!same_state(&now, &m->st))
		return member_failed(m, "changed while it was read: left as it is");
	return true;
}

static bool open_member(struct member *m)
{
	const char *target_name;
	m->src_dir = tree_open_parent(m->t->src_root, m->entry->path, &m->name);
	m->src_fd = m->src_dir < 0 ? -1 : tree_open_file(m->src_dir, m->name);
	if (m->src_fd < 0 && errno == ENOENT)
		return member_failed(m, "is not there any more: it was removed or moved, or another run was faster");
	if (m->src_fd < 0 || fstat(m->src_fd, &m->st))
		return member_failed_errno(m, "cannot open", errno);
	if (!same_inode(&m->st, &m->entry->st))
		return member_failed(m, "was replaced by another file: run again");
	m->base = m->t->single ? m->t->single_name : m->name;
	m->dst_dir = m->src_dir;
	if (!m->t->in_place && !m->t->opts->dry_run) {
		m->dst_dir = m->t->single ? openat(m->t->dst_root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
					  : tree_open_parent(m->t->dst_root, m->entry->path, &target_name);
		if (m->dst_dir < 0)
			return member_failed_errno(m, "cannot open the destination's directory", errno);
	}
	if (m->entry == m->group->first)
		m->group->st = m->st;
	return true;
}

void member_close(struct member *m)
{
	if (m->dst_dir >= 0 && m->dst_dir != m->src_dir)
		close(m->dst_dir);
	if (m->src_fd >= 0)
		close(m->src_fd);
	if (m->src_dir >= 0)
		close(m->src_dir);
}

/* Where, beneath dst_root, the member's target lies; the caller frees it. */
static char *target_path(const struct member *m)
{
	size_t dir_len = m->t->single ? 0 : (size_t)(m->name - m->entry->path);
	return xasprintf("%.*s%s", (int)dir_len, m->entry->path, m->target);
}

static void note_artifact(struct member *m)
{
	if (m->group->artifact[m->form])
		return;
	m->group->artifact[m->form] = target_path(m);
	m->group->artifact_st[m->form] = m->successor->st;
}

/* Whether an error of a link says that none can be made here. */
static bool is_linkless(int sys_errno)
{
	return sys_errno == EPERM || sys_errno == EMLINK || sys_errno == EXDEV || sys_errno == EOPNOTSUPP ||
	       sys_errno == ENOSYS || sys_errno == ENOENT;
}

static int link_artifact(const struct member *m)
{
	const char *name;
	int dir_fd = tree_open_parent(m->t->dst_root, m->group->artifact[m->form], &name), ret;
	if (dir_fd < 0)
		return errno;
	ret = link_publish(dir_fd, name, &m->group->artifact_st[m->form], m->dst_dir, m->target, m->t->opts->force);
	close(dir_fd);
	return ret;
}

/* Link what another member of the group became. FILL_NO_GAIN: there is nothing to link, or no link can be made here:
 * make it anew then. */
static enum fill_result try_link(struct member *m)
{
	struct temp_file lock = {.fd = -1};
	int ret;
	/* Changed since that was made. */
	if (!m->group->artifact[m->form] || !same_state(&m->st, &m->group->st))
		return FILL_NO_GAIN;
	/* It may replace a file, as in member_publish. */
	if (m->t->in_place && !member_lock(m, &lock))
		return FILL_FAILED;
	if (m->t->in_place && !member_unchanged(m)) {
		temp_discard(&lock);
		return FILL_FAILED;
	}
	ret = link_artifact(m);
	temp_discard(&lock);
	if (ret == FILE_CHANGED || is_linkless(ret))
		return FILL_NO_GAIN;
	if (ret == EEXIST)
		member_appeared(m);
	else if (ret)
		member_failed_errno(m, "cannot make the hard link", ret);
	if (ret)
		return FILL_FAILED;
	m->successor->st = m->group->artifact_st[m->form];
	m->out->action = ACTION_LINKED;
	return FILL_OK;
}

/* --hardlink: copies that share the source's blocks and inode. */
static bool try_hardlink(struct member *m)
{
	if (!m->t->opts->hardlink || m->form != FORM_COPY || m->t->in_place)
		return false;
	if (link_publish(m->src_dir, m->name, &m->st, m->dst_dir, m->target, m->t->opts->force))
		return false;
	m->successor->st = m->st;
	m->out->action = ACTION_COPIED;
	return true;
}

void member_touch_parent(const struct member *m)
{
	if (m->t->in_place && m->entry->parent != TREE_NONE)
		atomic_store(&m->t->touched[m->entry->parent], true);
}

/* The new file is written: prove it, give it its attributes and its name. */
static bool finish_target(struct member *m, struct temp_file *temp)
{
	struct timespec mtime = m->form == FORM_CONVERT ? m->t->ops->converted_mtime(m) : m->st.st_mtim;
	int ret;
	if (m->form == FORM_CONVERT && m->t->ops->restores && m->t->in_place && !member_prove_plain(m, temp))
		return false;
	ret = attributes_set(temp->fd, m->src_fd, &m->st, mtime);
	if (!ret && fsync(temp->fd))
		ret = errno;
	if (ret)
		return member_failed_errno(m, "cannot finish the new file", ret);
	if (!member_publish(m, temp))
		return false;
	m->out->action = m->form == FORM_CONVERT ? ACTION_CONVERTED : ACTION_COPIED;
	return true;
}

/* Write the member's target under a temporary name, prove it, publish it. */
static enum fill_result make_target(struct member *m)
{
	struct temp_file temp;
	enum fill_result result;
	int ret = temp_create(&temp, m->dst_dir, m->target);
	member_touch_parent(m);
	if (ret) {
		member_failed_errno(m, "cannot create a temporary file", ret);
		return FILL_FAILED;
	}
	result = m->form == FORM_CONVERT ? m->t->ops->convert(m, &temp) : copy_member(m, &temp);
	if (result == FILL_OK && !finish_target(m, &temp))
		result = FILL_FAILED;
	temp_discard(&temp);
	return result;
}

/* The target's name is free, or may be replaced. */
static enum fill_result place_target(struct member *m)
{
	enum fill_result result = try_link(m);
	if (result == FILL_NO_GAIN)
		result = try_hardlink(m) ? FILL_OK : make_target(m);
	if (result == FILL_FAILED)
		m->group->failed = m->entry;
	if (result != FILL_OK)
		return result;
	note_artifact(m);
	return member_remove_other(m) ? FILL_OK : FILL_FAILED;
}

static void estimate_member(struct member *m)
{
	if (m->form == FORM_CONVERT && m->entry != m->group->first)
		m->out->action = ACTION_LINKED;
	else if (m->form == FORM_CONVERT && m->t->ops->estimate(m) == FILL_OK)
		m->out->action = ACTION_CONVERTED;
	else if (m->out->action != ACTION_FAILED && !transfer_stopped(m->t))
		m->out->action = m->t->in_place ? ACTION_KEPT : ACTION_COPIED;
}

/* See what is there, and make what is not. */
static enum fill_result make_present(struct member *m)
{
	const char *there = NULL;
	switch (member_present(m, &there)) {
	case PRESENT_EQUAL:
		m->out->action = ACTION_PRESENT;
		if (there == m->other) {
			m->form = m->form == FORM_CONVERT ? FORM_COPY : FORM_CONVERT;
			memcpy(m->target, m->other, sizeof(m->target));
			m->other[0] = '\0';
		}
		note_artifact(m);
		return member_remove_other(m) ? FILL_OK : FILL_FAILED;
	case PRESENT_DIFFERENT:
		if (m->t->opts->force)
			break;
		member_failed(m, "%s is there already and is not the same (--force replaces it)", there);
		return FILL_FAILED;
	case PRESENT_UNKNOWN:
		return FILL_FAILED;
	case PRESENT_NONE:
		break;
	}
	return place_target(m);
}

/* One attempt. FILL_NO_GAIN: the group is not to be converted after all, try again as a copy. */
static enum fill_result attempt_member(struct member *m)
{
	enum fill_result result;
	/* Until something makes it smaller. */
	m->out->raw_bytes = m->out->stored_bytes = (uint64_t)m->st.st_size;
	if (!m->t->ops->classify(m))
		return FILL_FAILED;
	if (m->t->opts->dry_run) {
		estimate_member(m);
		return FILL_OK;
	}
	if (m->form == FORM_KEEP) {
		m->out->action = ACTION_KEPT;
		return FILL_OK;
	}
	if (m->t->in_place && has_writer(m->src_fd)) {
		member_failed(m, "is open for writing in another program: left as it is");
		return FILL_FAILED;
	}
	result = make_present(m);
	if (result == FILL_FAILED && m->appeared) {
		/* Another run was faster: what it made may be what we want. */
		m->out->action = ACTION_NONE;
		m->out->note[0] = '\0';
		m->group->failed = NULL;
		result = make_present(m);
	}
	return result;
}

static void run_member(struct member *m)
{
	enum fill_result result = FILL_FAILED;
	if (m->group->failed)
		member_failed(m, "left as it is, since %s, another name of it, failed", m->group->failed->path);
	else if (open_member(m))
		result = attempt_member(m);
	if (result == FILL_NO_GAIN) {
		m->group->no_gain = true;
		attempt_member(m);
	}
	/* In place a file is replaced under all its names or under none. */
	if (m->t->in_place && m->out->action == ACTION_FAILED && !m->group->failed)
		m->group->failed = m->entry;
	member_close(m);
}

void member_init(struct member *m, struct transfer *t, struct group *g, size_t entry, size_t k, struct outcome *out)
{
	*m = (struct member){.t = t,
			     .group = g,
			     .entry = &t->tree.entry[entry],
			     .src_dir = -1,
			     .src_fd = -1,
			     .dst_dir = -1,
			     .successor = &g->successor[k],
			     .out = out};
}

static void finish_group(struct transfer *t, struct group *g, size_t i, struct outcome *out, size_t nr)
{
	size_t e = t->job[i].entry;
	if (t->in_place && !t->opts->dry_run)
		group_remove_sources(t, g, e, out, nr);
	for (size_t k = 0; k < nr; e = t->tree.entry[e].next_link, k++)
		if (out[k].action != ACTION_NONE)
			report_add(t->report, t->single ? t->opts->source : t->tree.entry[e].path, &out[k]);
	progress_add(t->progress, t->job[i].work - MIN(g->work_done, t->job[i].work));
}

void transfer_group(struct transfer *t, size_t i)
{
	size_t first = t->job[i].entry, nr = 0, k = 0;
	struct group g = {.first = &t->tree.entry[first], .work_done = t->job[i].told};
	struct outcome *out;
	struct member m;
	if (transfer_stopped(t))
		return;
	for (size_t e = first; e != TREE_NONE; e = t->tree.entry[e].next_link)
		nr++;
	out = xcalloc(nr, sizeof(*out));
	g.successor = xcalloc(nr, sizeof(*g.successor));
	for (size_t e = first; e != TREE_NONE && !transfer_stopped(t); e = t->tree.entry[e].next_link) {
		out[k].again = k > 0;
		member_init(&m, t, &g, e, k, &out[k]);
		run_member(&m);
		memcpy(g.successor[k++].name, m.target, sizeof(m.target));
	}
	t->job[i].again = g.disk_full;
	t->job[i].told = g.work_done;
	if (!g.disk_full)
		finish_group(t, &g, i, out, nr);
	for (unsigned f = 0; f < NR_FORMS; f++)
		free(g.artifact[f]);
	free(g.successor);
	free(out);
}
