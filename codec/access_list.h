/* access_list.h - what a POSIX access control list leaves of a file's mode bits, where only these can be kept or shown:
 * one rule for the tools, which write to file systems without such lists, and for the mount, whose kernel side looks at
 * the bits alone. Private to weightfs; any thread. acl(5); the layout is that of linux/posix_acl_xattr.h.
 */
#ifndef WFS_ACCESS_LIST_H
#define WFS_ACCESS_LIST_H

#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define WFS_ACCESS_LIST_XATTR "system.posix_acl_access"

/* With a list the group bits of mode are its mask, and a user it names may have less than all others. The result gives
 * nobody but the owner more than the list does: to the group what the list gives to the group and to everyone it names,
 * to others what it gives to others and to everyone it names. Of a list that is not understood: nothing. */
static inline mode_t wfs_mode_of_access_list(mode_t mode, const void *list, size_t len)
{
	const struct posix_acl_xattr_header *h = list;
	const struct posix_acl_xattr_entry *e = (const void *)(h + 1);
	unsigned named = 7, mask = 7, group = 0;
	bool any_named = false;

	if (len < sizeof(*h) || le32toh(h->a_version) != POSIX_ACL_XATTR_VERSION || (len - sizeof(*h)) % sizeof(*e))
		return mode & ~(mode_t)077;
	for (size_t i = 0; i < (len - sizeof(*h)) / sizeof(*e); i++) {
		unsigned tag = le16toh(e[i].e_tag), perm = le16toh(e[i].e_perm) & 7;

		if (tag == ACL_USER || tag == ACL_GROUP) {
			named &= perm;
			any_named = true;
		} else if (tag == ACL_GROUP_OBJ) {
			group = perm;
		} else if (tag == ACL_MASK) {
			mask = perm;
		}
	}
	if (any_named)
		named &= mask;
	return (mode & ~(mode_t)077) | (group & mask & named) << 3 | (mode & named & 7);
}

#endif
