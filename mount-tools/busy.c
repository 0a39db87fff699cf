/* busy.c - see busy.h. As /proc tells it; the mount itself is not asked, since its daemon may hang. */
#include "busy.h"
#include "util.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NAMED = 4 };

/* Whether a link of /proc leads into the mount. What the path covers has the same path: the device decides, which is
 * there without a request. */
static bool leads_there(int dir_fd, const char *link, const struct mounted *m)
{
	char path[PATH_MAX];
	struct statx st;
	ssize_t len = readlinkat(dir_fd, link, path, sizeof(path) - 1);
	if (len <= 0)
		return false;
	path[len] = '\0';
	return mounted_covers(m, path) && !statx(dir_fd, link, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &st) &&
	       st.stx_dev_major == m->major_nr && st.stx_dev_minor == m->minor_nr;
}

static bool has_open(int proc_fd, const struct mounted *m)
{
	int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && leads_there(fd, entry->d_name, m);
	closedir(dir);
	return found;
}

/* Files that are mapped need not be open any more. */
static bool has_mapped(int proc_fd, const struct mounted *m)
{
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	bool found = false;
	if (!f) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && getline(&line, &room, f) > 0) {
		/* addresses permissions offset MAJOR:MINOR inode path */
		unsigned major_nr, minor_nr;
		found = sscanf(line, "%*s %*s %*s %x:%x ", &major_nr, &minor_nr) == 2 && major_nr == m->major_nr &&
			minor_nr == m->minor_nr;
	}
	free(line);
	fclose(f);
	return found;
}

static bool uses(int proc_fd, const struct mounted *m)
{
	return leads_there(proc_fd, "cwd", m) || leads_there(proc_fd, "root", m) || leads_there(proc_fd, "exe", m) ||
	       has_open(proc_fd, m) || has_mapped(proc_fd, m);
}

/* text is replaced by one that names this process, too. */
static char *add_name(char *text, int proc_fd, const char *pid)
{
	char name[64] = "?", *longer;
	int fd = openat(proc_fd, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : pread_full(fd, name, sizeof(name) - 1, 0);
	if (fd >= 0)
		close(fd);
	if (len > 0)
		name[len - 1] = '\0'; /* a newline is its last */
	longer = text ? xasprintf("%s, %s (%s)", text, pid, name) : xasprintf("process %s (%s)", pid, name);
	free(text);
	return longer;
}

char *busy_processes(const struct mounted *mount)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	char *text = NULL, *whole;
	uint64_t nr = 0;
	while (proc && (entry = readdir(proc))) {
		if (strtol(entry->d_name, NULL, 10) == getpid())
			continue; /* it ends anyway */
		int fd = isdigit((unsigned char)entry->d_name[0])
				 ? openat(dirfd(proc), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
				 : -1;
		if (fd < 0)
			continue;
		if (uses(fd, mount) && ++nr <= MAX_NAMED)
			text = add_name(text, fd, entry->d_name);
		close(fd);
	}
	if (proc)
		closedir(proc);
	if (nr <= MAX_NAMED)
		return text;
	whole = xasprintf("%s and %llu more", text, (unsigned long long)(nr - MAX_NAMED));
	free(text);
	return whole;
}
