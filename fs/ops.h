/* ops.h - the FUSE operations. */
#ifndef WFSD_OPS_H
#define WFSD_OPS_H

#include <fuse_lowlevel.h>

/* For fuse_session_new, with a struct wfsd as user data. */
extern const struct fuse_lowlevel_ops wfsd_ops;

#endif
