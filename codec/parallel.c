/* parallel.c - how many threads, and independent jobs on several of them. */
#include "parallel.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

unsigned wfs_thread_count(unsigned nr_threads)
{
	cpu_set_t set;
	long online;

	if (!nr_threads && !sched_getaffinity(0, sizeof(set), &set))
		nr_threads = (unsigned)CPU_COUNT(&set);
	if (!nr_threads) { /* more processors than a cpu_set_t holds */
		online = sysconf(_SC_NPROCESSORS_ONLN);
		nr_threads = online > 0 ? (unsigned)online : 1;
	}
	return WFS_MIN(nr_threads, (unsigned)WFS_MAX_THREADS);
}

struct jobs {
	size_t next, nr; /* next: atomic */
	void (*job)(void *ctx, size_t index);
	void *ctx;
};

static void *jobs_run(void *arg)
{
	struct jobs *j = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED)) < j->nr)
		j->job(j->ctx, i);
	return NULL;
}

void wfs_parallel_for(unsigned nr_threads, size_t nr_jobs, void (*job)(void *ctx, size_t index), void *ctx)
{
	struct jobs jobs = {0, nr_jobs, job, ctx};
	pthread_t thread[WFS_MAX_THREADS];
	unsigned nr = 0;

	nr_threads = WFS_MIN(nr_threads, (unsigned)WFS_MAX_THREADS);
	while (nr + 1 < nr_threads && nr + 1 < nr_jobs && !pthread_create(&thread[nr], NULL, jobs_run, &jobs))
		nr++;
	jobs_run(&jobs);
	while (nr)
		pthread_join(thread[--nr], NULL);
}
