/* reader_cache.c - see reader.h. */
#include "reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static uint64_t resident_bytes(const struct target *file)
{
	uint64_t nr = (file->size + PAGE - 1) / PAGE, found = 0;
	unsigned char *page = malloc(nr + 1);
	int fd = reader_open(file, 0);
	void *map = nr ? mmap(NULL, file->size, PROT_READ, MAP_SHARED, fd, 0) : NULL;

	if (!page || map == MAP_FAILED || (nr && mincore(map, file->size, page)))
		reader_die(file->path);
	for (uint64_t i = 0; i < nr; i++)
		if (page[i] & 1)
			found += i + 1 < nr || file->size % PAGE == 0 ? PAGE : file->size % PAGE;
	if (nr)
		munmap(map, file->size);
	close(fd);
	free(page);
	return found;
}

int reader_resident(const struct target *file, int nr)
{
	uint64_t bytes = 0, resident = 0;

	for (int i = 0; i < nr; i++) {
		bytes += file[i].size;
		resident += resident_bytes(&file[i]);
	}
	printf("{\"bytes\":%llu,\"resident\":%llu}\n", (unsigned long long)bytes, (unsigned long long)resident);
	return 0;
}

int reader_evict(const struct target *file, int nr)
{
	for (int i = 0; i < nr; i++) {
		int fd = reader_open(&file[i], 0);
		/* Pages that are not on the disk yet stay. */
		if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			reader_die(file[i].path);
		close(fd);
	}
	return 0;
}

int reader_load(const struct target *file, int nr)
{
	enum { CHUNK = 4 << 20 };
	unsigned char *buf = reader_memory(CHUNK);

	for (int i = 0; i < nr; i++) {
		int fd = reader_open(&file[i], 0);
		for (uint64_t off = 0; off < file[i].size; off += CHUNK)
			reader_pread(fd, buf, file[i].size - off < CHUNK ? file[i].size - off : CHUNK, off);
		close(fd);
	}
	free(buf);
	return 0;
}

int reader_wake(const struct target *file, int nr)
{
	enum { CHUNK = 4 << 20 };
	unsigned char *buf = reader_memory(CHUNK);

	for (int i = 0; i < nr; i++) {
		int fd = reader_open(&file[i], O_DIRECT);
		ssize_t n;
		while ((n = read(fd, buf, CHUNK)) > 0)
			;
		if (n < 0)
			reader_die(file[i].path);
		close(fd);
	}
	free(buf);
	return 0;
}
