/* pack_tree.c - look at a tree before it is packed: a snapshot of the Hugging Face cache holds links only. */
#include "pack.h"

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

/* Where the files of such a tree are: the directory to pack instead. The caller frees it; NULL: unknown. */
static char *better_source(const struct transfer *t, const struct tree_entry *e)
{
	char *link = xasprintf("%s/%s", t->opts->source, e->path), *file = realpath(link, NULL);
	char *dir = file ? path_dirname(file) : NULL, *name = dir ? path_basename(dir) : NULL;
	if (name && !strcmp(name, "blobs")) {
		/* The repository: its snapshots' links lead into blobs beside them. */
		char *repository = path_dirname(dir);
		free(dir);
		dir = repository;
	}
	free(link);
	free(file);
	free(name);
	return dir;
}

bool pack_check_tree(const struct transfer *t)
{
	const struct tree_entry *example = NULL;
	size_t nr_files = 0, nr_leading_out = 0;
	char *dir;
	if (t->single)
		return true;
	for (size_t i = 0; i < t->tree.nr; i++) {
		const struct tree_entry *e = &t->tree.entry[i];
		nr_files += S_ISREG(e->st.st_mode);
		if (!S_ISLNK(e->st.st_mode) || !leads_out(e))
			continue;
		nr_leading_out++;
		if (!example)
			example = e;
	}
	if (!example)
		return true;
	if (nr_files > 0) {
		report_notice(t->report, t->opts->source,
			      "%zu symbolic links lead out of it (%s -> %s, for one): they are kept as they are",
			      nr_leading_out, example->path, example->link_target);
		return true;
	}
	dir = better_source(t, example);
	report_failure(t->report, t->opts->source,
		       dir ? "holds only symbolic links to files elsewhere: pack %s"
			   : "holds only broken symbolic links",
		       dir);
	free(dir);
	return false;
}
