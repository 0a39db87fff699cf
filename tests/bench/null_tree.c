/* null_tree.c - see null_tree.h. */
#include "null_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wfs.h"

static struct null_node *add(struct null_tree *tree)
{
	if (tree->nr == tree->room) {
		tree->room = tree->room ? 2 * tree->room : 64;
		tree->node = realloc(tree->node, tree->room * sizeof(*tree->node));
		if (!tree->node) {
			perror("null_daemon");
			exit(1);
		}
	}
	return &tree->node[tree->nr++];
}

enum { MAX_HEAD = 1 << 20 };

/* Loaders look at the header of a safetensors file before all else. Whatever is none is left to be wrong. */
static void load_header(struct null_node *node, const struct wfs_reader *reader, struct wfs_scratch *scratch)
{
	struct wfs_error err;
	uint64_t len;

	if (node->st.st_size < (off_t)sizeof(len) ||
	    wfs_reader_read(reader, 0, &len, sizeof(len), scratch, &err) != WFS_OK)
		return;
	if (len > MAX_HEAD || (off_t)(len + sizeof(len)) > node->st.st_size)
		return;
	len += sizeof(len);
	unsigned char *head = malloc(len);
	if (head && wfs_reader_read(reader, 0, head, len, scratch, &err) == WFS_OK) {
		node->head = head;
		node->head_len = len;
	} else {
		free(head);
	}
}

/* By a descriptor of its own, without read-ahead. */
static void find_header(struct null_node *node, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct wfs_scratch *scratch = wfs_scratch_new();
	struct wfs_reader *reader;
	struct wfs_error err;

	if (fd >= 0 && scratch && !posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) &&
	    wfs_reader_open(fd, NULL, &reader, &err) == WFS_OK) {
		load_header(node, reader, scratch);
		wfs_reader_free(reader);
	}
	wfs_scratch_free(scratch);
	if (fd >= 0)
		close(fd);
}

/* The name and size that weightfsd would show. */
static bool show_original(struct null_node *node, const char *path)
{
	static const char suffix[] = ".wfs";
	size_t len = strlen(node->name), cut = sizeof(suffix) - 1;
	struct wfs_head head;
	struct wfs_error err;

	if (len <= cut || strcmp(node->name + len - cut, suffix) != 0)
		return true;
	if (wfs_head_read(node->fd, &head, &err) != WFS_OK)
		return false;
	node->name[len - cut] = '\0';
	node->st.st_size = (off_t)head.raw_len;
	node->st.st_blocks = (blkcnt_t)((head.raw_len + 511) / 512);
	find_header(node, path);
	return true;
}

static bool add_entry(struct null_tree *tree, const FTSENT *entry)
{
	size_t parent = entry->fts_level ? (size_t)entry->fts_parent->fts_number : 0;
	struct null_node *node = add(tree);

	*node = (struct null_node){
		.parent = parent, .name = strdup(entry->fts_name), .st = *entry->fts_statp, .fd = -1};
	node->st.st_ino = tree->nr;
	node->stored_len = (uint64_t)node->st.st_size;
	if (!node->name)
		return false;
	if (entry->fts_info == FTS_D)
		return true;
	node->fd = open(entry->fts_accpath, O_RDONLY | O_CLOEXEC);
	return node->fd >= 0 && show_original(node, entry->fts_accpath);
}

bool null_tree_load(struct null_tree *tree, const char *path)
{
	char *copy = strdup(path), *const paths[] = {copy, NULL};
	FTS *fts = copy ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	FTSENT *entry;
	bool good = fts != NULL;

	while (good && (entry = fts_read(fts))) {
		if (entry->fts_info == FTS_D)
			entry->fts_number = (long)tree->nr;
		if (entry->fts_info == FTS_D || entry->fts_info == FTS_F)
			good = add_entry(tree, entry);
		else
			good = entry->fts_info == FTS_DP;
	}
	if (!good || !tree->nr || !S_ISDIR(tree->node[0].st.st_mode)) {
		fprintf(stderr, "null_daemon: %s: no directory of regular files and containers\n", path);
		good = false;
	}
	if (fts)
		fts_close(fts);
	free(copy);
	return good;
}
