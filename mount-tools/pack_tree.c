/* pack_tree.c - look at a tree before it is packed: a snapshot of the Hugging Face cache holds links only. */
#include "pack.h"
#include "tree_links.h"

#include <stdlib.h>

bool pack_check_tree(const struct transfer *t)
{
	struct tree_links links;
	char *dir;
	if (t->single)
		return true;
	tree_links_count(&t->tree, &links);
	if (!links.example)
		return true;
	if (links.nr_files > 0) {
		report_notice(t->report, t->opts->source,
			      "%zu symbolic link%s lead%s out of it (%s -> %s, for one): kept unchanged",
			      links.nr_leading_out, plural(links.nr_leading_out), links.nr_leading_out == 1 ? "s" : "",
			      links.example->path, links.example->link_target);
		return true;
	}
	dir = tree_links_source(t->opts->source, links.example);
	report_failure(t->report, t->opts->source,
		       dir ? "holds only symbolic links to files elsewhere: pack %s"
			   : "holds only broken symbolic links",
		       dir);
	free(dir);
	return false;
}
