/* unpack.h - the parts of `weightfs unpack`. */
#ifndef UNPACK_H
#define UNPACK_H

#include "transfer.h"

/* unpack_file.c: what becomes of a file. */
extern const struct transfer_ops unpack_ops;

#endif
