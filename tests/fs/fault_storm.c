/* fault_storm.c - many processes of many threads fault pages of mounted files in at random, all at the same time.
 *
 *     fault_storm SEED PROCESSES THREADS FAULTS (ORIGINAL MOUNTED)...
 *
 * Every thread compares FAULTS whole pages with the original. Files in even places stay mapped, as loaders keep them,
 * half of them with MADV_RANDOM; those in odd places are mapped for a few faults, so that their pages can be dropped
 * from the page cache and are asked for again. Silent and 0 when all pages are right.
 */
#include "access.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum {
	PAGE = 4096,
	MAX_FILES = 64,
	FAULTS_A_MAPPING = 16,
	FAULTS_A_DROP = 250,
	DROP_BYTES = 4 << 20,
	STACK_BYTES = 128 << 10,
};

struct storm {
	struct file file[MAX_FILES];
	const uint8_t *kept[MAX_FILES]; /* the mapping that stays; NULL in odd places */
	uint64_t nr_files, nr_faults, seed;
	pthread_barrier_t *start; /* of all threads of all processes */
};

struct thread {
	pthread_t id;
	struct storm *storm;
	uint64_t number;
};

static const uint8_t *map_file(const struct file *file, uint64_t number)
{
	int fd = open_file(file, 0);
	void *p = mmap(NULL, file->size, PROT_READ, number % 4 < 2 ? MAP_SHARED : MAP_PRIVATE, fd, 0);
	CHECK_SYS(file, p != MAP_FAILED, "mmap");
	CHECK_SYS(file, !madvise(p, file->size, number % 2 ? MADV_RANDOM : MADV_NORMAL), "madvise");
	close(fd);
	return p;
}

static void unmap_file(const struct file *file, const uint8_t *map)
{
	if (map)
		munmap((void *)(uintptr_t)map, file->size);
}

static void drop(const struct file *file, uint64_t off)
{
	int fd = open_file(file, 0);
	CHECK_SYS(file, !posix_fadvise(fd, (off_t)off, DROP_BYTES, POSIX_FADV_DONTNEED), "fadvise");
	close(fd);
}

static void *fault(void *thread_void)
{
	const struct thread *t = thread_void;
	const struct storm *s = t->storm;
	uint64_t seed = s->seed * 1000003 + t->number * 7919 + 1, fresh_use = 0;
	const struct file *fresh = NULL; /* mapped by this thread alone */
	const uint8_t *fresh_map = NULL;

	pthread_barrier_wait(s->start);
	for (uint64_t i = 0; i < s->nr_faults; i++) {
		uint64_t nr = rand_next(&seed) % s->nr_files;
		const struct file *file = &s->file[nr];
		const uint8_t *map = s->kept[nr];
		if (!map) {
			if (!fresh || fresh_use++ % FAULTS_A_MAPPING == 0) {
				if (fresh)
					unmap_file(fresh, fresh_map);
				fresh = file;
				fresh_map = map_file(file, rand_next(&seed));
			}
			file = fresh;
			map = fresh_map;
		}
		uint64_t off = rand_next(&seed) % file->size / PAGE * PAGE;
		same(file, map + off, off, min_u64(PAGE, file->size - off));
		if (i % FAULTS_A_DROP == t->number % FAULTS_A_DROP)
			drop(file, off / DROP_BYTES * DROP_BYTES);
	}
	if (fresh)
		unmap_file(fresh, fresh_map);
	return NULL;
}

static void run_process(struct storm *s, uint64_t process, uint64_t nr_threads)
{
	struct thread *thread = calloc(nr_threads, sizeof(*thread));
	pthread_attr_t attr;

	CHECK_SYS(&s->file[0], thread, "calloc");
	for (uint64_t i = 0; i < s->nr_files; i += 2)
		s->kept[i] = map_file(&s->file[i], i / 2 + process);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (uint64_t i = 0; i < nr_threads; i++) {
		thread[i] = (struct thread){.storm = s, .number = process * nr_threads + i};
		errno = pthread_create(&thread[i].id, &attr, fault, &thread[i]);
		CHECK_SYS(&s->file[0], !errno, "pthread_create");
	}
	for (uint64_t i = 0; i < nr_threads; i++)
		pthread_join(thread[i].id, NULL);
}

/* The first child that fails has said why; the others wait for it in vain. */
static int wait_all(const pid_t *pid, uint64_t nr)
{
	int status, failed = 0;

	while (wait(&status) > 0)
		if ((!WIFEXITED(status) || WEXITSTATUS(status)) && !failed) {
			if (WIFSIGNALED(status))
				fprintf(stderr, "FAIL: a process got signal %d\n", WTERMSIG(status));
			failed = 1;
			for (uint64_t i = 0; i < nr; i++)
				kill(pid[i], SIGKILL);
		}
	return failed;
}

static void file_init(struct file *file, char **paths)
{
	struct stat st;
	*file = (struct file){.path = paths[1], .pattern = "fault-storm"};
	int fd = open(paths[0], O_RDONLY | O_CLOEXEC);
	CHECK_SYS(file, fd >= 0 && !fstat(fd, &st) && st.st_size > 0, paths[0]);
	file->size = (uint64_t)st.st_size;
	file->want = mmap(NULL, file->size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	CHECK_SYS(file, file->want != MAP_FAILED, "mmap of the original");
	close(fd);
}

int main(int argc, char **argv)
{
	static struct storm s;
	uint64_t nr[4];

	if (argc < 7 || argc % 2 == 0 || (argc - 5) / 2 > MAX_FILES) {
		fprintf(stderr, "usage: fault_storm SEED PROCESSES THREADS FAULTS (ORIGINAL MOUNTED)...\n");
		return 2;
	}
	for (int i = 0; i < 4; i++)
		nr[i] = strtoull(argv[i + 1], NULL, 10);
	s.seed = nr[0];
	s.nr_faults = nr[3];
	for (int i = 5; i < argc; i += 2)
		file_init(&s.file[s.nr_files++], argv + i);

	pthread_barrierattr_t attr;
	s.start = mmap(NULL, sizeof(*s.start), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t *pid = calloc(nr[1], sizeof(*pid));
	CHECK_SYS(&s.file[0], s.start != MAP_FAILED && pid, "memory");
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	errno = pthread_barrier_init(s.start, &attr, (unsigned)(nr[1] * nr[2]));
	CHECK_SYS(&s.file[0], !errno, "pthread_barrier_init");
	for (uint64_t i = 0; i < nr[1]; i++) {
		pid[i] = fork();
		CHECK_SYS(&s.file[0], pid[i] >= 0, "fork");
		if (!pid[i]) {
			run_process(&s, i, nr[2]);
			_exit(0);
		}
	}
	int failed = wait_all(pid, nr[1]);
	free(pid);
	return failed;
}
