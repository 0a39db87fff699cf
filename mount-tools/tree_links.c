/* tree_links.c - where the files are that a tree of symbolic links stands for. */
#include "tree_links.h"

#include <stdlib.h>
#include <string.h>

/* Whether a symbolic link's text leads out of the tree by its words alone. */
static bool leads_out(const struct tree_entry *e)
{
	const char *p = e->link_target;
	long depth = 0;
	if (*p == '/')
		return true;
	for (const char *s = e->path; *s; s++)
		depth += *s == '/';
	while (*p) {
		size_t len = strcspn(p, "/");
		if (len == 2 && !strncmp(p, "..", 2))
			depth--;
		else if (len > 0 && !(len == 1 && *p == '.'))
			depth++;
		if (depth < 0)
			return true;
		p += len + strspn(p + len, "/");
	}
	return false;
}

void tree_links_count(const struct tree *tree, struct tree_links *links_ret)
{
	struct tree_links links = {0};
	for (size_t i = 0; i < tree->nr; i++) {
		const struct tree_entry *e = &tree->entry[i];
		links.nr_files += S_ISREG(e->st.st_mode);
		if (!S_ISLNK(e->st.st_mode) || !leads_out(e))
			continue;
		links.nr_leading_out++;
		if (!links.example)
			links.example = e;
	}
	*links_ret = links;
}

char *tree_links_source(const char *root, const struct tree_entry *link)
{
	char *path = xasprintf("%s/%s", root, link->path), *file = realpath(path, NULL);
	char *dir = file ? path_dirname(file) : NULL, *name = dir ? path_basename(dir) : NULL;
	if (name && !strcmp(name, "blobs")) {
		/* The repository: its snapshots' links lead into blobs beside them. */
		char *repository = path_dirname(dir);
		free(dir);
		dir = repository;
	}
	free(path);
	free(file);
	free(name);
	return dir;
}
