/* tree_links.h - trees whose files lie elsewhere: a snapshot of the Hugging Face cache holds symbolic links only. */
#ifndef TREE_LINKS_H
#define TREE_LINKS_H

#include "tree.h"

struct tree_links {
	size_t nr_files;
	size_t nr_leading_out;		  /* symbolic links that lead out of the tree by their words alone */
	const struct tree_entry *example; /* of those; NULL: there is none */
};
void tree_links_count(const struct tree *tree, struct tree_links *links_ret);
/* What to name instead of such a tree: the directory in which the file of a link lies, or that of the repository. root:
 * the tree's. The caller frees it. NULL: the link is broken. */
char *tree_links_source(const char *root, const struct tree_entry *link);

#endif
