/* transfer_replace.c - the moments in which one file takes another's place: publishing, and the removal of originals
 * and of other forms.
 *
 * Of a name there are two forms, x and x.wfs, and no run removes the one before it has seen the other. Two runs could
 * each see both and each remove one (pack and unpack in place): so whoever replaces or removes a form holds the lock of
 * the name (name_lock) from its last look at both forms on. The lock is held for moments and nobody waits for a second
 * one, so nothing can lock up; it is a file in the directory itself, so it does not matter by which path, bind mount or
 * NFS client a run came here. All else a run does (temporaries, names that were free) can harm no other.
 */
#include "transfer.h"
#include "same_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool is_network(int fd)
{
	struct statfs fs;
	if (fstatfs(fd, &fs))
		return false;
	switch ((uint32_t)fs.f_type) {
	case NFS_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Only then a read lease is refused with EAGAIN. Where leases do not exist (files of others) nobody can tell, nor where
 * EAGAIN says that the server has not delegated the file to us (NFS 4, SMB), which it does as it likes. */
bool has_writer(int fd)
{
	if (is_network(fd))
		return false;
	if (!fcntl(fd, F_SETLEASE, F_RDLCK)) {
		fcntl(fd, F_SETLEASE, F_UNLCK);
		return false;
	}
	return errno == EAGAIN;
}

bool member_lock(struct member *m, struct temp_file *lock)
{
	char original[NAME_MAX + 1];
	const char *name = m->entry->path;
	int ret;
	name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	if (m->t->ops->restores && container_name(name, original))
		name = original;
	ret = name_lock(lock, m->dst_dir, name);
	if (ret == NAME_BUSY)
		return member_failed(m, "another weightfs is at work on it: run again");
	if (ret)
		return member_failed_errno(m, "cannot lock its name", ret);
	return true;
}

/* Whether what was proven still stands under the successor's name. It is opened, as NFS looks at the server then. */
static bool successor_stands(const struct member *m, const char *name)
{
	struct stat now;
	int fd = tree_open_file(m->dst_dir, name);
	bool stands = fd >= 0 && !fstat(fd, &now) && same_file(&now, &m->successor->st);
	if (fd >= 0)
		close(fd);
	return stands;
}

static bool publish_locked(struct member *m, struct temp_file *temp)
{
	int ret = 0;
	/* Another run may have taken the source away meanwhile, on the strength of what we would replace. */
	if (m->t->in_place && !member_unchanged(m))
		return false;
	if (fstat(temp->fd, &m->successor->st))
		ret = errno;
	if (!ret)
		ret = temp_publish(temp, m->target, m->t->opts->force);
	if (ret == EEXIST)
		return member_appeared(m);
	return !ret || member_failed_errno(m, "cannot finish the new file", ret);
}

bool member_publish(struct member *m, struct temp_file *temp)
{
	struct temp_file lock;
	bool ok;
	if (!m->t->in_place)
		return publish_locked(m, temp);
	if (!member_lock(m, &lock))
		return false;
	ok = publish_locked(m, temp);
	temp_discard(&lock);
	return ok;
}

static bool stopped(void *ctx)
{
	return transfer_stopped(ctx);
}

bool member_prove_plain(struct member *m, const struct temp_file *temp)
{
	uint8_t sha256[SHA256_BYTES];
	int fd = temp_reopen(temp), ret;
	ret = fd < 0 ? errno : sha256_file(fd, sha256, stopped, m->t);
	if (fd >= 0)
		close(fd);
	if (ret == ECANCELED)
		return false;
	if (ret)
		return member_failed_errno(m, "cannot write the file and read it back, left as it is", ret);
	if (memcmp(sha256, m->group->head.sha256, SHA256_BYTES) != 0)
		return member_failed(m, "the new file does not read back as it was written: left as it is");
	return true;
}

bool member_remove_other(struct member *m)
{
	struct temp_file lock;
	bool ok = true;
	if (!m->t->opts->force || !m->other[0] ||
	    (faccessat(m->dst_dir, m->other, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT))
		return true;
	if (!member_lock(m, &lock))
		return false;
	if (!successor_stands(m, m->target))
		ok = member_failed(m, "%s was replaced meanwhile: run again", m->target);
	else if (unlinkat(m->dst_dir, m->other, 0) && errno != ENOENT)
		ok = member_failed_errno(m, "cannot remove its other form", errno);
	temp_discard(&lock);
	return ok;
}

/* Whether the original may go. Its change time moves when another link of it is removed (over NFS once more when it is
 * closed), so only the first removal can look at that; what it refuses, the others do not remove either. */
static bool may_remove(struct member *m)
{
	struct group *g = m->group;
	struct stat now;
	if (!successor_stands(m, m->successor->name))
		return member_failed(m, "%s is gone or was replaced meanwhile: kept", m->successor->name);
	/* The source last, right before it goes. */
	m->src_fd = tree_open_file(m->src_dir, m->name);
	if (m->src_fd < 0 && errno == ENOENT)
		return member_failed(m, "was removed or moved meanwhile, perhaps by another run; %s holds it",
				     m->successor->name);
	if (m->src_fd < 0)
		return member_failed_errno(m, "cannot open the original again", errno);
	if (g->changed || has_writer(m->src_fd) || fstat(m->src_fd, &now) || !same_file(&now, &g->st) ||
	    (!g->removing && !same_time(now.st_ctim, g->st.st_ctim))) {
		g->changed = true;
		return member_failed(m, "changed just now: kept beside its other form, which has the old content");
	}
	return true;
}

static bool remove_source_locked(struct member *m)
{
	if (!may_remove(m))
		return false;
	m->group->removing = true;
	/* What is open while it is removed NFS only renames until it is closed, and other clients see that. */
	close(m->src_fd);
	m->src_fd = -1;
	return !unlinkat(m->src_dir, m->name, 0) || member_failed_errno(m, "cannot remove the original", errno);
}

static bool remove_source(struct member *m)
{
	struct temp_file lock;
	bool ok;
	m->dst_dir = m->src_dir = tree_open_parent(m->t->src_root, m->entry->path, &m->name);
	if (m->src_dir < 0)
		return member_failed_errno(m, "cannot open its directory again", errno);
	member_touch_parent(m);
	if (!member_lock(m, &lock))
		return false;
	ok = remove_source_locked(m);
	temp_discard(&lock);
	return ok;
}

static bool has_successor(const struct outcome *out)
{
	return out->action == ACTION_CONVERTED || out->action == ACTION_LINKED || out->action == ACTION_PRESENT;
}

/* After all names of the file have their successors, so that a run that is killed in between can still tell which names
 * belong together. */
void group_remove_sources(struct transfer *t, struct group *g, size_t first_entry, struct outcome *out, size_t nr)
{
	struct member m;
	for (size_t k = 0; k < nr; k++)
		if (out[k].action == ACTION_NONE)
			return;
	for (size_t e = first_entry, k = 0; k < nr; e = t->tree.entry[e].next_link, k++) {
		if (!has_successor(&out[k]))
			continue;
		member_init(&m, t, g, e, k, &out[k]);
		if (g->failed) {
			member_failed(&m, "kept beside its other form, since %s, another name of it, failed",
				      g->failed->path);
			continue;
		}
		if ((size_t)g->st.st_nlink > nr && !out[k].note[0])
			snprintf(out[k].note, sizeof(out[k].note),
				 "has other hard links outside: its old space is not free while they exist");
		(void)!remove_source(&m);
		member_close(&m);
	}
}
