/* mounted.c - whether a file is seen through a mounted weightfs.
 *
 * A store is mostly mounted over itself. A command that wants its containers would find the originals there and report
 * success without having done anything.
 */
#include "mounted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

bool in_weightfs_mount(int fd)
{
	struct stat st;
	FILE *f = NULL;
	char *line = NULL;
	size_t room = 0;
	bool found = false;
	if (fstat(fd, &st) || !(f = fopen("/proc/self/mountinfo", "re")))
		goto out;
	while (!found && getline(&line, &room, f) > 0) {
		/* id parent MAJOR:MINOR root point options [tags] - TYPE source superoptions */
		static const char type[] = " - fuse.weightfs ";
		unsigned major_nr, minor_nr;
		found = sscanf(line, "%*u %*u %u:%u ", &major_nr, &minor_nr) == 2 &&
			makedev(major_nr, minor_nr) == st.st_dev && strstr(line, type);
	}
out:
	free(line);
	if (f)
		fclose(f);
	return found;
}
