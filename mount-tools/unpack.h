/* unpack.h - the parts of `weightfs unpack`. */
#ifndef UNPACK_H
#define UNPACK_H

#include "transfer.h"

/* unpack_file.c: what becomes of a file. With --keep-going what is good of a damaged container is saved. */
extern const struct transfer_ops unpack_ops, unpack_keep_going_ops;

/* Write a piece, leaving holes where a whole aligned step is zero: sparse files come back sparse. 0 or an errno. */
int write_sparse(int fd, const char *raw, size_t len, uint64_t off) MUST_CHECK;

/* unpack_partial.c: after a failure that the container is to blame for, whose note the member has. Write what is good
 * into temp, holes for the rest, and publish it as NAME.partial beside NAME.partial.json, which lists what is missing.
 * The member stays failed; its note tells what was done. */
void save_partial(struct member *m, const struct wfs_reader *reader, struct temp_file *temp);

#endif
