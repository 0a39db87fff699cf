/* signed.h - a mount with -o pubkey: it shows what the store's signed manifest lists (codec/MANIFEST.md), and no more.
 *
 * The manifest, not the store, says which names there are, of which kind and size; it is read once, before mounting.
 * What the store has under a listed name must be of that kind, and is proven when it is used: a container's metadata
 * when it is opened (file.c) and its blocks as they are decoded (the codec); an ordinary file's size when it is opened,
 * its pieces as they are read (fetch.c), kept in the cache as blocks are; a symlink's target when it is asked for
 * (ops.c). What is not as it was signed is EIO, with one line in the log.
 *
 * A node belongs to one entry (struct wfsd_ident): whatever is renamed, linked or swapped in the store, the pages that
 * the kernel keeps for an inode are the bytes of that entry.
 */
#ifndef WFSD_SIGNED_H
#define WFSD_SIGNED_H

#include "manifest.h"
#include "store.h"

struct wfsd_signed;
/* Reads key and manifest for d->opts->pubkey. NULL: it has said why not. */
struct wfsd_signed *wfsd_signed_new(const struct wfsd *d);
/* May be NULL. */
void wfsd_signed_free(struct wfsd_signed *s);
/* SHA-256 of the manifest in hexadecimal digits. */
const char *wfsd_signed_sha256(const struct wfsd_signed *s);

/* What follows is for signed mounts only, but for: NULL in any other. Any thread. */
const struct wfs_manifest_entry *wfsd_signed_entry(const struct wfsd *d, const struct wfsd_ident *ident);

/* As wfsd_store_resolve. -ENOENT: not listed. dir: the directory's path in the store. */
int wfsd_signed_resolve(struct wfsd *d, int dir_fd, const char *shown, struct wfsd_entry *entry, const char *dir);

/* The stored names that are listed in a directory, in the order of their bytes: from `first` on, until NULL. */
size_t wfsd_signed_first(const struct wfsd *d, const char *dir);
const char *wfsd_signed_next(const struct wfsd *d, const char *dir, size_t *at);
/* How one of these is shown, into shown_ret[NAME_MAX + 1]. False: not at all. *good_ret: the store has it; else the
 * entry has type and number only. */
bool wfsd_signed_show(struct wfsd *d, int dir_fd, const char *stored, struct wfsd_entry *entry, char *shown_ret,
		      bool *good_ret, const char *dir);

/* Whether the symlink leads where it did: 0 or the errno. */
int wfsd_signed_check_link(struct wfsd *d, const struct wfs_manifest_entry *entry, const char *target);

/* The store does not have what was signed: logged and counted once, until it was found good again. Returns EIO. */
int wfsd_signed_refuse(struct wfsd *d, const struct wfs_manifest_entry *entry, const char *reason);
void wfsd_signed_found_good(struct wfsd *d, const struct wfs_manifest_entry *entry);

#endif
