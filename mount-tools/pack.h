/* pack.h - the parts of `weightfs pack`. */
#ifndef PACK_H
#define PACK_H

#include "transfer.h"

/* pack_file.c: what becomes of a file. */
extern const struct transfer_ops pack_ops;

/* pack_tree.c: a tree of symbolic links to files elsewhere (a snapshot of the Hugging Face cache) is refused with word
 * of where the files are. */
bool pack_check_tree(const struct transfer *t);

#endif
