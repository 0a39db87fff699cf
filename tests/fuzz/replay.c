/* replay.c - a main for fuzz targets without libFuzzer: runs the target over each file (or each file of a folder). */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static unsigned long nr_files;

static void run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long size;

	FUZZ_CHECK(f && !fseek(f, 0, SEEK_END));
	size = ftell(f);
	FUZZ_CHECK(size >= 0);
	rewind(f);
	data = fuzz_alloc((size_t)size);
	FUZZ_CHECK(fread(data, 1, (size_t)size, f) == (size_t)size);
	fclose(f);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	nr_files++;
}

static void run(const char *path)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	FUZZ_CHECK(!stat(path, &st));
	if (!S_ISDIR(st.st_mode)) {
		run_file(path);
		return;
	}
	dir = opendir(path);
	FUZZ_CHECK(dir);
	while ((entry = readdir(dir))) {
		char name[4096];

		FUZZ_CHECK((size_t)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) < sizeof(name));
		if (entry->d_name[0] != '.')
			run(name);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	printf("%lu files replayed\n", nr_files);
	return 0;
}
