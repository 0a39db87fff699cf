/* pack_file.c - what pack does with one file: whether it becomes a container, and making a container that is proven. */
#include "pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* From here on a file that will not gain is found by sampling, instead of writing all of it first. */
static const off_t estimate_from_bytes = 64 << 20;
/* So many bytes tell, and cost little beside the file; they may be wrong by some percent (1 was seen): only what
 * clearly does not gain is given up on their word. */
static const uint64_t estimate_sample_bytes = 16 << 20;
static const double estimate_margin = 2;

/* In place: what lies under the container's name and may not be replaced, whatever the options. */
static bool blocked_in_place(const struct member *m)
{
	struct wfs_head head;
	struct wfs_error err = {0};
	int fd = tree_open_file(m->src_dir, m->target);
	bool blocked;
	if (fd < 0)
		return errno != ENOENT;
	/* A container that is damaged or newer than we are may be replaced with --force: it is one of ours. */
	blocked = wfs_head_read_suffixed(fd, &head, &err) == WFS_NOT_CONTAINER;
	close(fd);
	return blocked;
}

static bool exists(int dir_fd, const char *name)
{
	struct stat st;
	return !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
}

static bool name_fits(const struct member *m, size_t len)
{
	long name_max = m->dst_dir >= 0 ? fpathconf(m->dst_dir, _PC_NAME_MAX) : NAME_MAX;
	return len <= (size_t)(name_max > 0 && name_max < NAME_MAX ? name_max : NAME_MAX);
}

/* A source that is a container already, or looks like one. */
static bool classify_container(struct member *m, bool *is_container_ret)
{
	struct wfs_head head;
	struct wfs_error err = {0};
	enum wfs_status status;
	*is_container_ret = false;
	if (!container_name(m->base, NULL))
		return true;
	status = wfs_head_read_suffixed(m->src_fd, &head, &err);
	if (status == WFS_NOT_CONTAINER)
		return true;
	if (status == WFS_IO)
		return member_failed_wfs(m, NULL, &err);
	*is_container_ret = true;
	if (status == WFS_OK)
		m->out->raw_bytes = head.raw_len;
	else
		member_note(m, "taken as it is, though it is a container that cannot be read: %s", err.reason);
	return true;
}

static void set_form(struct member *m, enum form form, const char *target, const char *other)
{
	m->form = form == FORM_COPY && m->t->in_place ? FORM_KEEP : form;
	m->target_is_container = form == FORM_CONVERT;
	snprintf(m->target, sizeof(m->target), "%s", target);
	snprintf(m->other, sizeof(m->other), "%s", m->t->in_place ? "" : other);
}

static bool classify_single(struct member *m, bool is_container)
{
	const char *target = m->t->single_target ? m->t->single_target : m->base;
	char packed[NAME_MAX + sizeof(SUFFIX)];
	snprintf(packed, sizeof(packed), "%s" SUFFIX, m->base);
	if (m->t->single_target)
		snprintf(packed, sizeof(packed), "%s", m->t->single_target);
	if (!is_container && !name_fits(m, strlen(packed)))
		return member_failed(m, "the name is too long for the suffix " SUFFIX ": give another with -o");
	set_form(m, is_container ? FORM_COPY : FORM_CONVERT, is_container ? target : packed, "");
	if (m->form == FORM_CONVERT && !container_name(packed, NULL))
		member_note(m, "a mount shows containers only under names that end in " SUFFIX);
	return true;
}

static bool classify_in_tree(struct member *m, bool is_container)
{
	char packed[NAME_MAX + sizeof(SUFFIX)];
	bool small = m->st.st_size < PACK_MIN_FILE_BYTES, taken, fits;
	snprintf(packed, sizeof(packed), "%s" SUFFIX, m->base);
	fits = name_fits(m, strlen(packed));
	/* The source's own file of that name; in place it may be this file's container. */
	taken = fits && !m->t->in_place && exists(m->src_dir, packed);
	if (is_container || small || m->group->no_gain || !fits || taken) {
		set_form(m, FORM_COPY, m->base, is_container || !fits || taken ? "" : packed);
		if (!fits && !small)
			member_note(m, "not packed: the name is too long for the suffix " SUFFIX);
		else if (taken && !small)
			member_note(m, "not packed: %s lies beside it; a mount shows this file, not that one", packed);
		return true;
	}
	set_form(m, FORM_CONVERT, packed, m->base);
	return true;
}

static bool classify(struct member *m)
{
	bool is_container;
	if (!classify_container(m, &is_container))
		return false;
	if (!(m->t->single ? classify_single(m, is_container) : classify_in_tree(m, is_container)))
		return false;
	if (m->form == FORM_CONVERT && m->t->in_place && blocked_in_place(m))
		return member_failed(m, "%s is in the way and is not a container", m->target);
	return true;
}

static uint64_t work(const struct transfer *t, const struct tree_entry *first)
{
	return t->ops->passes * (uint64_t)first->st.st_size;
}

static bool gains(const struct member *m, uint64_t file_len, double margin)
{
	return m->t->single || saved_percent((uint64_t)m->st.st_size, file_len) + margin >= m->t->opts->min_saving;
}

struct pack_progress {
	struct member *m;
	uint64_t base; /* work of the passes before */
	int flush_fd;  /* encoding: whose written part goes to the disk early, so that fsync has little left; else -1 */
	uint64_t flushed_bytes;
	int64_t raw_told, comp_told; /* encoding: to the progress */
};

static void tell_coded(struct pack_progress *p, uint64_t raw_bytes, uint64_t comp_bytes)
{
	progress_coded(p->m->t->progress, (int64_t)raw_bytes - p->raw_told, (int64_t)comp_bytes - p->comp_told);
	p->raw_told = (int64_t)raw_bytes;
	p->comp_told = (int64_t)comp_bytes;
}

static int on_progress(void *ctx, uint64_t raw_done, uint64_t comp_done)
{
	static const uint64_t flush_bytes = 64 << 20;
	struct pack_progress *p = ctx;
	member_progress(p->m, p->base + raw_done);
	if (p->flush_fd >= 0)
		tell_coded(p, raw_done, comp_done);
	if (p->flush_fd >= 0 && comp_done - p->flushed_bytes >= flush_bytes) {
		sync_file_range(p->flush_fd, 0, 0, SYNC_FILE_RANGE_WRITE);
		p->flushed_bytes = comp_done;
	}
	return transfer_stopped(p->m->t);
}

static struct wfs_encode_opts encode_opts(struct pack_progress *p)
{
	const struct transfer *t = p->m->t;
	return (struct wfs_encode_opts){.level = t->opts->level,
					.block_log2 = t->opts->block_log2,
					.nr_threads = t->threads_per_job,
					.cpu = t->opts->cpu,
					.mtime_sec = p->m->st.st_mtim.tv_sec,
					.mtime_nsec = (uint32_t)p->m->st.st_mtim.tv_nsec,
					.block_sha256 = t->opts->signable,
					.progress = on_progress,
					.ctx = p};
}

static enum fill_result estimate(struct member *m)
{
	struct pack_progress progress = {.m = m, .flush_fd = -1};
	struct wfs_encode_opts opts = encode_opts(&progress);
	struct wfs_encode_result result;
	struct wfs_error err = {0};
	if (wfs_encode_estimate(m->src_fd, &opts, &result, &err) != WFS_OK) {
		member_failed_wfs(m, NULL, &err);
		return FILL_FAILED;
	}
	if (!gains(m, result.file_len, 0))
		return FILL_NO_GAIN;
	m->out->stored_bytes = result.file_len;
	return FILL_OK;
}

/* Whether samples say clearly that the file does not gain. */
static bool is_hopeless(struct member *m)
{
	struct pack_progress progress = {.m = m, .flush_fd = -1};
	struct wfs_encode_opts opts = encode_opts(&progress);
	struct wfs_encode_result result;
	if (m->t->single || m->st.st_size < estimate_from_bytes)
		return false;
	opts.sample_bytes = estimate_sample_bytes;
	return wfs_encode_estimate(m->src_fd, &opts, &result, NULL) == WFS_OK &&
	       !gains(m, result.file_len, estimate_margin);
}

/* Read the container back from the disk, as far as the kernel lets us, decode all of it and compare. */
static bool prove(struct member *m, const struct temp_file *temp, const struct wfs_encode_result *result)
{
	const struct wfs_reader_opts opts = {.cpu = m->t->opts->cpu};
	struct pack_progress progress = {.m = m, .base = (uint64_t)m->st.st_size, .flush_fd = -1};
	struct wfs_reader *reader = NULL;
	struct wfs_error err = {0};
	struct wfs_info info;
	bool ok = false;
	int fd = temp_reopen(temp);
	if (fd < 0)
		return member_failed_errno(m, "cannot write the container and read it back", errno);
	if (wfs_reader_open(fd, &opts, &reader, &err) == WFS_OK &&
	    wfs_reader_verify(reader, m->t->threads_per_job, on_progress, &progress, &err) == WFS_OK) {
		wfs_reader_info(reader, &info);
		ok = !memcmp(info.head.sha256, result->sha256, SHA256_BYTES) && !info.head.from_tail &&
		     !info.meta_from_copy_b && !info.truncated && info.head.raw_len == (uint64_t)m->st.st_size;
		if (!ok)
			member_failed(m, "the new container does not hold what was read: left as it is");
	} else if (err.status != WFS_CANCELLED) {
		char reason[REASON_BYTES];
		wfs_reason(reason, reader, &err);
		member_failed(m, "the new container cannot be read back, left as it is: %s", reason);
	}
	wfs_reader_free(reader);
	close(fd);
	return ok;
}

static enum fill_result encode(struct member *m, struct temp_file *temp, struct pack_progress *progress)
{
	struct wfs_encode_opts opts = encode_opts(progress);
	struct wfs_encode_result result;
	struct wfs_error err = {0};
	if (wfs_encode_file(m->src_fd, temp->fd, &opts, &result, &err) != WFS_OK) {
		member_failed_wfs(m, NULL, &err);
		return FILL_FAILED;
	}
	tell_coded(progress, result.raw_len, result.file_len);
	if (!member_unchanged(m) || result.raw_len != (uint64_t)m->st.st_size || !member_check_name(m, result.sha256))
		return FILL_FAILED;
	if (!gains(m, result.file_len, 0))
		return FILL_NO_GAIN;
	/* The source must not have changed until its container is proven. */
	if (!prove(m, temp, &result) || !member_unchanged(m))
		return FILL_FAILED;
	m->out->raw_bytes = result.raw_len;
	m->out->stored_bytes = result.file_len;
	memcpy(m->out->sha256, result.sha256, SHA256_BYTES);
	m->out->has_sha256 = true;
	return FILL_OK;
}

static enum fill_result convert(struct member *m, struct temp_file *temp)
{
	struct pack_progress progress = {.m = m, .flush_fd = temp->fd};
	enum fill_result result = FILL_NO_GAIN;
	if (!is_hopeless(m))
		result = encode(m, temp, &progress);
	if (result != FILL_OK)
		tell_coded(&progress, 0, 0);
	return result;
}

static struct timespec converted_mtime(const struct member *m)
{
	return m->st.st_mtim;
}

const struct transfer_ops pack_ops = {
	.command = "pack",
	.converted = "packed",
	.gerund = "packing",
	.passes = 2,
	.classify = classify,
	.work = work,
	.convert = convert,
	.estimate = estimate,
	.converted_mtime = converted_mtime,
	.check_tree = pack_check_tree,
};
