/* transfer.h - how pack and unpack take a file or a tree from source to destination, or change it in place.
 *
 * Both do the same: walk, make directories, turn some files into others, copy the rest, keep links, attributes and
 * times, never replace what is not proven. They differ in what becomes of a file: struct transfer_ops.
 *
 * Hard links of one file form a group, which one thread handles; every name of it is a member.
 */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "report.h"
#include "safe_file.h"
#include "tree.h"

#include <signal.h>
#include <stdatomic.h>

#define SUFFIX ".wfs"

struct transfer_opts {
	const char *source, *destination; /* destination NULL: in place */
	bool dry_run, force, json, quiet, verbose, reflink, hardlink;
	unsigned nr_threads; /* at least 1 */
	enum wfs_cpu cpu;
	unsigned block_log2;
	enum wfs_level level; /* of pack */
	bool signable;	      /* with the SHA-256 of every block */
	double min_saving;    /* percent */
};

enum stop_reason { STOP_NONE, STOP_SIGNAL, STOP_DISK_FULL };

/* A file with all its hard links. */
struct job {
	size_t entry; /* its first name */
	off_t size;
	uint64_t work; /* what it counts for in the progress */
	uint64_t told; /* of that, to the progress, by a first try */
	bool again;    /* to be tried once more, alone */
};

struct transfer {
	const struct transfer_ops *ops;
	const struct transfer_opts *opts;
	bool in_place, single;
	bool made_destination;	/* it was not there before */
	int src_root, dst_root; /* the same in place */
	struct tree tree;
	/* Of a single file: the name it is known by (its symbolic link's perhaps), and the one it shall get or NULL. */
	char *single_name, *single_target;
	struct report *report;
	struct progress *progress;
	struct job *job; /* small files, then big ones */
	size_t nr_jobs, nr_small_jobs;
	size_t job_offset; /* of the jobs that run now, and the threads each may use */
	unsigned threads_per_job;
	bool alone;	      /* one job at a time */
	atomic_bool *touched; /* in place: directories in which something changed, by entry */
	sigset_t signals;     /* SIGINT and its like: blocked, and looked for now and then */
	atomic_int stop;      /* enum stop_reason */
	atomic_bool hinted;   /* why root may be refused was said */
};

enum form { FORM_CONVERT, FORM_COPY, FORM_KEEP, NR_FORMS };

/* What stands for a member from now on, in its destination directory. */
struct successor {
	char name[NAME_MAX + 1];
	struct stat st; /* as it was proven */
};

struct group {
	const struct tree_entry *first;
	struct stat st;		  /* of the first member when it was opened */
	bool no_gain;		  /* pack: converting does not save enough */
	char *artifact[NR_FORMS]; /* where, beneath dst_root, its converted and copied form are */
	struct stat artifact_st[NR_FORMS];
	bool sha256_known;
	uint8_t sha256[SHA256_BYTES]; /* of the source file's bytes */
	struct wfs_head head;	      /* unpack: of the container */
	uint64_t work_done;	      /* told to the progress */
	struct successor *successor;  /* of each member */
	bool removing, changed;	      /* in place: its first original was removed; none may be, as it changed */
	const struct tree_entry
		*failed; /* a name of it that could not be done: the others are left, to stay links of it */
	bool disk_full;	 /* in place, beside other jobs: these may free what it needs */
};

struct member {
	struct transfer *t;
	struct group *group;
	const struct tree_entry *entry;
	int src_dir, src_fd, dst_dir;
	const char *name; /* in src_dir */
	const char *base; /* the name that names are derived from: name, or that of a single file's link */
	struct stat st;	  /* of src_fd */
	enum form form;	  /* the rest: set by classify */
	char target[NAME_MAX + 1];
	bool target_is_container; /* to be compared as one */
	char other[NAME_MAX + 1]; /* where an earlier run may have left the other form; "": nowhere */
	bool appeared;		  /* the target, from another run, after we had looked for it */
	struct successor *successor;
	struct outcome *out;
};

enum fill_result { FILL_OK, FILL_NO_GAIN, FILL_FAILED };

struct transfer_ops {
	const char *command, *converted, *gerund; /* "pack", "packed", "packing" */
	unsigned passes;			  /* over the raw bytes, for the progress */
	bool restores;				  /* it makes originals of containers */
	/* Decide form, target and the like; group->no_gain says that FORM_CONVERT is out of the question. false: the
	 * member failed, out->note says why. */
	bool (*classify)(struct member *m);
	/* Raw bytes times passes. */
	uint64_t (*work)(const struct transfer *t, const struct tree_entry *first);
	/* Write and prove the converted form. The caller sets attributes and publishes. Sets stored and raw bytes. */
	enum fill_result (*convert)(struct member *m, struct temp_file *temp);
	/* Only for a dry run. */
	enum fill_result (*estimate)(struct member *m);
	/* Modification time of what convert makes. */
	struct timespec (*converted_mtime)(const struct member *m);
	/* A look at the whole tree before anything is done; false: a failure was reported. May be NULL. */
	bool (*check_tree)(const struct transfer *t);
};

/* The whole command. Returns its exit status. */
int transfer_run(const struct transfer_ops *ops, const struct transfer_opts *opts);

/* Whether to stop: a signal has come or the disk is full. Any thread. */
bool transfer_stopped(struct transfer *t);

/* What to add to the text of a failure on the file system of fd, once a run: why root may be refused; or "". Any
 * thread. */
const char *transfer_hint(struct transfer *t, int fd, int sys_errno);

/* transfer_dirs.c: make those of the destination and remove what dead runs left in them. false: it is the source, and
 * nothing may be done; a failure was reported. */
bool transfer_make_directories(struct transfer *t) MUST_CHECK;
void transfer_make_symlinks(struct transfer *t);
void transfer_finish_directories(struct transfer *t);

/* transfer_group.c: handle the group t->job[i]. */
void transfer_group(struct transfer *t, size_t i);
void member_init(struct member *m, struct transfer *t, struct group *g, size_t entry, size_t k, struct outcome *out);
void member_close(struct member *m);
/* In place the directory shall end with the time it had: even a temporary that came to nothing moves it. */
void member_touch_parent(const struct member *m);
/* Note a failure of a member; returns false. */
bool member_failed(struct member *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same for a system call: "cannot read: ..."; a full disk stops everything, unless other jobs may free space. */
bool member_failed_errno(struct member *m, const char *what, int sys_errno);
/* The same for the codec; reader may be NULL. A cancelled call leaves no note: it was not reached. */
bool member_failed_wfs(struct member *m, const struct wfs_reader *reader, const struct wfs_error *err);
/* The target's name was taken after we had looked; returns false. */
bool member_appeared(struct member *m);
/* Note something the user should know about a member that goes well. */
void member_note(struct member *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Tell the progress that the group's work so far is this. */
void member_progress(struct member *m, uint64_t work_done);
/* Whether the source is still the file it was when it was opened; otherwise the failure is noted. */
bool member_unchanged(struct member *m) MUST_CHECK;

/* transfer_replace.c: lock the name that the two forms of a member share, in its destination directory. */
bool member_lock(struct member *m, struct temp_file *lock) MUST_CHECK;
/* Whether another process has the file open for writing, where one can tell. */
bool has_writer(int fd);
/* Give the new file, which is complete, the target's name. */
bool member_publish(struct member *m, struct temp_file *temp) MUST_CHECK;
/* unpack in place: read the new file back from the disk. */
bool member_prove_plain(struct member *m, const struct temp_file *temp) MUST_CHECK;
/* With --force: remove what an earlier run left in the other form, which would hide or contradict the new file. */
bool member_remove_other(struct member *m) MUST_CHECK;
/* In place, of a group of nr members: remove each original that has a proven successor. */
void group_remove_sources(struct transfer *t, struct group *g, size_t first_entry, struct outcome *out, size_t nr);

/* copy_file.c: copy the member's bytes, holes kept, into temp. */
enum fill_result copy_member(struct member *m, struct temp_file *temp);
/* For a member whose name is a SHA-256: whether that is its content's. With --force a difference is only noted. */
bool member_check_name(struct member *m, const uint8_t sha256[SHA256_BYTES]) MUST_CHECK;

/* present.c: what lies in the destination already. */
enum presence { PRESENT_NONE, PRESENT_EQUAL, PRESENT_DIFFERENT, PRESENT_UNKNOWN /* failure noted */ };
/* Look at target and other; *name_ret is the one that is there. */
enum presence member_present(struct member *m, const char **name_ret);

#endif
