/* main.c - weightfsd: show a store of weightfs containers as the original files, read-only. */
#include "lifecycle.h"
#include "opts.h"
#include "stats_socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* So that no file of ours is ever taken for a standard stream. */
static void take_standard_fds(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
}

int main(int argc, char **argv)
{
	struct wfsd_opts opts;
	int ret;

	take_standard_fds();
	ret = wfsd_opts_parse(argc, argv, &opts);
	if (ret)
		return ret;
	switch (opts.command) {
	case WFSD_MOUNT:
		ret = wfsd_mount(&opts);
		break;
	case WFSD_STATS:
		ret = wfsd_stats_client(opts.mountpoint, opts.json);
		break;
	case WFSD_STORE:
		ret = wfsd_store_client(opts.mountpoint);
		break;
	case WFSD_HELP:
		wfsd_opts_help();
		break;
	case WFSD_VERSION:
		printf("weightfsd %s\n", wfs_version());
		break;
	}
	wfsd_opts_free(&opts);
	return fflush(stdout) ? 1 : ret;
}
