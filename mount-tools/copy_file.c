/* copy_file.c - copy a file that is not converted: holes kept, shared blocks on request, checked against its name. */
#include "transfer.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COPY_STEP = 1 << 20 };

bool member_check_name(struct member *m, const uint8_t sha256[SHA256_BYTES])
{
	uint8_t named[SHA256_BYTES];
	char text[SHA256_TEXT_BYTES];
	if (!sha256_from_name(m->name, named) || !memcmp(named, sha256, SHA256_BYTES))
		return true;
	if (m->t->opts->force) {
		member_note(m, "its name is a SHA-256, but not that of its content");
		return true;
	}
	return member_failed(m,
			     "its name is a SHA-256, but its content has %s: a damaged download? Left as it is "
			     "(--force takes it)",
			     sha256_text(text, sha256));
}

/* Copy [off, end), which holds data. hash: NULL, or it gets the bytes too. Returns false when a failure was noted. */
static bool copy_range(struct member *m, int to_fd, off_t off, off_t end, char *buf, struct sha256 *hash)
{
	while (off < end) {
		size_t want = (size_t)MIN((off_t)COPY_STEP, end - off);
		ssize_t n = pread_full(m->src_fd, buf, want, off);
		int ret;
		if (n < 0)
			return member_failed_errno(m, "cannot read", errno);
		if ((size_t)n < want)
			return member_failed(m, "changed while it was read: left as it is");
		if (hash)
			sha256_update(hash, buf, want);
		if (to_fd >= 0) {
			ret = write_full(to_fd, buf, want, off);
			if (ret)
				return member_failed_errno(m, "cannot write its copy", ret);
		}
		off += (off_t)want;
		member_progress(m, m->t->ops->passes * (uint64_t)off);
		if (transfer_stopped(m->t))
			return false;
	}
	return true;
}

/* Only what is not a hole; a hash needs the zeros too. */
static bool copy_data(struct member *m, int to_fd, struct sha256 *hash)
{
	off_t size = m->st.st_size, off = 0;
	char *buf = xcalloc(1, COPY_STEP);
	bool ok = true;
	while (ok && off < size) {
		off_t data = lseek(m->src_fd, off, SEEK_DATA), hole;
		if (data < 0 && errno == ENXIO)
			data = size; /* a hole up to the end */
		else if (data < 0)
			data = off; /* this file system cannot tell */
		data = MIN(data, size);
		if (hash)
			ok = copy_range(m, -1, off, data, buf, hash);
		hole = data < size ? lseek(m->src_fd, data, SEEK_HOLE) : size;
		if (hole <= data || hole > size)
			hole = size;
		if (ok)
			ok = copy_range(m, to_fd, data, hole, buf, hash);
		off = hole;
	}
	free(buf);
	return ok;
}

enum fill_result copy_member(struct member *m, struct temp_file *temp)
{
	uint8_t digest[SHA256_BYTES];
	bool cloned = m->t->opts->reflink && !ioctl(temp->fd, FICLONE, m->src_fd);
	bool named = sha256_from_name(m->name, digest);
	struct sha256 *hash = named ? sha256_new() : NULL;
	bool ok = true;
	if (!cloned || named)
		ok = copy_data(m, cloned ? -1 : temp->fd, hash);
	if (ok && named) {
		sha256_final(hash, digest);
		memcpy(m->out->sha256, digest, SHA256_BYTES);
		m->out->has_sha256 = true;
		ok = member_check_name(m, digest);
	}
	sha256_free(hash);
	/* The trailing hole. */
	if (ok && !cloned && ftruncate(temp->fd, m->st.st_size))
		ok = member_failed_errno(m, "cannot write its copy", errno);
	if (ok)
		ok = member_unchanged(m);
	return ok ? FILL_OK : FILL_FAILED;
}
