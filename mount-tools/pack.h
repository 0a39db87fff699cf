/* pack.h - the parts of `weightfs pack`. */
#ifndef PACK_H
#define PACK_H

#include "transfer.h"

/* In a tree, smaller files save less than a disk block or two and would cost a head and metadata of their own. */
enum { PACK_MIN_FILE_BYTES = 64 << 10 };
/* In a tree, percent that a file must save, if the user does not say otherwise. */
enum { PACK_MIN_SAVING = 3 };

/* pack_file.c: what becomes of a file. */
extern const struct transfer_ops pack_ops;

/* pack_tree.c: a tree of symbolic links to files elsewhere (a snapshot of the Hugging Face cache) is refused with word
 * of where the files are. */
bool pack_check_tree(const struct transfer *t);

#endif
