/* reply.c - see reply.h.
 *
 * Requests at work stand in lists, oldest first, by shard, so that threads do not meet at one lock. The watchdog
 * sleeps until the oldest would be too old. When nothing was at work for a whole timeout it parks, without a timer,
 * and the next request wakes it: an idle daemon uses no CPU, a busy one is woken once a timeout.
 */
#include "reply.h"
#include "file.h"
#include "fs.h"
#include "lifecycle.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>

enum { NR_SHARDS = 16, BATCH = 64 };
#define NSEC_PER_SEC INT64_C(1000000000)
#define COARSE_NSEC  INT64_C(20000000) /* how far the coarse clock may be behind */

struct shard {
	alignas(64) pthread_mutex_t lock;
	struct wfsd_request *oldest, *newest;
	bool busy; /* a request began since the watchdog looked */
};

struct wfsd_requests {
	struct shard shard[NR_SHARDS];
	struct wfsd *d;
	int64_t timeout_nsec; /* 0: no watchdog */
	pthread_t thread;
	atomic_bool parked;
	atomic_uint nr_stuck; /* given up, and their threads are not back */
	pthread_mutex_t lock; /* from here */
	pthread_cond_t wake;
	bool stop;
};

/* Coarse: a few milliseconds do not matter, and it is read twice a request. */
static int64_t now_nsec(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static struct shard *shard_of(const struct wfsd_request *r)
{
	uintptr_t a = (uintptr_t)r; /* on the stack of its thread: stacks lie pages apart */
	return &r->d->requests->shard[(a >> 12 ^ a >> 16 ^ a >> 20) % NR_SHARDS];
}

/* Under the shard's lock. */
static void shard_remove(struct shard *s, struct wfsd_request *r)
{
	*(r->older ? &r->older->newer : &s->oldest) = r->newer;
	*(r->newer ? &r->newer->older : &s->newest) = r->older;
}

void wfsd_begin(struct wfsd *d, struct wfsd_request *r, fuse_req_t req)
{
	wfsd_begin_read(d, r, req, NULL);
}

bool wfsd_file_hangs(const struct wfsd_file *file)
{
	int64_t until = atomic_load_explicit(&file->hangs_until_nsec, memory_order_relaxed);
	return until && now_nsec() < until;
}

bool wfsd_store_hangs(const struct wfsd *d)
{
	return atomic_load_explicit(&d->requests->nr_stuck, memory_order_relaxed) >= WFSD_MAX_STUCK;
}

static void set_hangs_until(struct wfsd_file *file, int64_t until)
{
	if (file)
		atomic_store_explicit(&file->hangs_until_nsec, until, memory_order_relaxed);
}

void wfsd_begin_read(struct wfsd *d, struct wfsd_request *r, fuse_req_t req, struct wfsd_file *file)
{
	struct wfsd_requests *q = d->requests;

	*r = (struct wfsd_request){.d = d, .file = file, .req = req};
	if (!q->timeout_nsec)
		return;
	struct shard *s = shard_of(r);
	pthread_mutex_lock(&s->lock);
	r->start_nsec = now_nsec();
	r->older = s->newest;
	*(s->newest ? &s->newest->newer : &s->oldest) = r;
	s->newest = r;
	s->busy = true;
	pthread_mutex_unlock(&s->lock);
	/* The watchdog parks first and looks at the shards then. If it took this shard's lock before us, we see that it
	 * parks; if after us, it sees our request. */
	if (atomic_load(&q->parked)) {
		pthread_mutex_lock(&q->lock);
		atomic_store(&q->parked, false);
		pthread_cond_signal(&q->wake);
		pthread_mutex_unlock(&q->lock);
	}
}

/* Takes the right to reply: NULL when the watchdog has it. */
static fuse_req_t claim(struct wfsd_request *r)
{
	if (!r->d->requests->timeout_nsec)
		return r->req;
	struct shard *s = shard_of(r);
	pthread_mutex_lock(&s->lock);
	fuse_req_t req = r->req;
	if (req)
		shard_remove(s, r);
	pthread_mutex_unlock(&s->lock);
	if (!req) { /* late: the store has answered */
		set_hangs_until(r->file, 0);
		atomic_fetch_sub(&r->d->requests->nr_stuck, 1);
	}
	return req;
}

/* What the store says is not always ours to say. ENOTCONN means that this mount is dead, ENOSYS that its daemon lacks
 * the call, for ever, and the kernel takes no reply with a number of 512 or more, which drivers let slip. */
static int for_reader(int err)
{
	return err == ENOTCONN || err == ECONNABORTED || err == ENOSYS || err < 0 || err >= 512 ? EIO : err;
}

bool wfsd_reply_err(struct wfsd_request *r, int err)
{
	fuse_req_t req = claim(r);
	return req && !fuse_reply_err(req, for_reader(err));
}

bool wfsd_reply_entry(struct wfsd_request *r, const struct fuse_entry_param *entry)
{
	fuse_req_t req = claim(r);
	return req && !fuse_reply_entry(req, entry);
}

bool wfsd_reply_attr(struct wfsd_request *r, const struct stat *st, double timeout)
{
	fuse_req_t req = claim(r);
	return req && !fuse_reply_attr(req, st, timeout);
}

bool wfsd_reply_open(struct wfsd_request *r, const struct fuse_file_info *fi)
{
	fuse_req_t req = claim(r);
	return req && !fuse_reply_open(req, fi);
}

bool wfsd_reply_readlink(struct wfsd_request *r, const char *target)
{
	fuse_req_t req = claim(r);
	return req && !fuse_reply_readlink(req, target);
}

bool wfsd_reply_statfs(struct wfsd_request *r, const struct statvfs *st)
{
	fuse_req_t req = claim(r);
	return req && !fuse_reply_statfs(req, st);
}

bool wfsd_reply_buf(struct wfsd_request *r, const void *buf, size_t len)
{
	fuse_req_t req = claim(r);
	return req && !fuse_reply_buf(req, buf, len);
}

bool wfsd_reply_iov(struct wfsd_request *r, const struct iovec *iov, int nr)
{
	fuse_req_t req = claim(r);
	return req && !fuse_reply_iov(req, iov, nr);
}

/* ---- the watchdog ---------------------------------------------------------------------------------------------- */

/* What a look at all shards found. */
struct look {
	int64_t oldest; /* start of the oldest request at work, or INT64_MAX */
	bool busy;	/* a request began since the last look */
};

/* Takes up to BATCH requests that began before `before`, a timeout ago, out of a shard; their files hang for as long.
 */
static int take_overdue(struct wfsd_requests *q, struct shard *s, int64_t before, fuse_req_t *late, struct look *look)
{
	const int64_t until = before + 2 * q->timeout_nsec;
	int nr = 0;
	pthread_mutex_lock(&s->lock);
	while (s->oldest && s->oldest->start_nsec <= before && nr < BATCH) {
		struct wfsd_request *r = s->oldest;
		shard_remove(s, r);
		late[nr++] = r->req;
		set_hangs_until(r->file, until); /* before anybody hears of it */
		atomic_fetch_add(&q->nr_stuck, 1);
		r->req = NULL; /* r and the file may be gone as soon as the lock is */
	}
	if (s->oldest && s->oldest->start_nsec < look->oldest)
		look->oldest = s->oldest->start_nsec;
	look->busy |= s->busy;
	s->busy = false;
	pthread_mutex_unlock(&s->lock);
	return nr;
}

static struct look answer_overdue(struct wfsd_requests *q)
{
	struct look look = {.oldest = INT64_MAX};
	int64_t now = now_nsec();
	fuse_req_t late[BATCH];
	uint64_t total = 0;

	for (int i = 0; i < NR_SHARDS; i++) {
		int nr;
		do {
			nr = take_overdue(q, &q->shard[i], now - q->timeout_nsec, late, &look);
			for (int k = 0; k < nr; k++)
				fuse_reply_err(late[k], EIO);
			total += (uint64_t)nr;
		} while (nr == BATCH);
	}
	if (total) {
		wfsd_count(&q->d->stats.timeouts, total);
		wfsd_log(&q->d->log, WFSD_ERROR,
			 "the store did not answer within %lld s: %llu request%s failed with EIO; look after its disk "
			 "or server, or mount again with a larger io_timeout= where it is only slow",
			 (long long)(q->timeout_nsec / NSEC_PER_SEC), (unsigned long long)total, total > 1 ? "s" : "");
	}
	return look;
}

/* Returns when a request has begun, unless one is at work already. */
static void park(struct wfsd_requests *q)
{
	atomic_store(&q->parked, true);
	struct look look = answer_overdue(q);
	pthread_mutex_lock(&q->lock);
	while (!q->stop && !look.busy && atomic_load(&q->parked))
		pthread_cond_wait(&q->wake, &q->lock);
	atomic_store(&q->parked, false);
	pthread_mutex_unlock(&q->lock);
}

static void *watchdog(void *arg)
{
	struct wfsd_requests *q = arg;
	bool stop = false;

	while (!stop) {
		struct look look = answer_overdue(q);
		bool stuck = atomic_load(&q->nr_stuck);
		if (stuck && fuse_session_exited(q->d->session)) {
			pthread_kill(q->d->main, WFSD_SIGNAL_ENDED);
		} else if (!stuck && !look.busy && look.oldest == INT64_MAX) {
			park(q);
			look.oldest = INT64_MAX;
		}
		int64_t start = now_nsec();
		int64_t until = (look.oldest < start ? look.oldest : start) + q->timeout_nsec + COARSE_NSEC;
		if (stuck && until > start + NSEC_PER_SEC)
			until = start + NSEC_PER_SEC;
		struct timespec t = {until / NSEC_PER_SEC, until % NSEC_PER_SEC};
		pthread_mutex_lock(&q->lock);
		while (!q->stop && pthread_cond_timedwait(&q->wake, &q->lock, &t) != ETIMEDOUT)
			;
		stop = q->stop;
		pthread_mutex_unlock(&q->lock);
	}
	return NULL;
}

struct wfsd_requests *wfsd_requests_new(struct wfsd *d, unsigned timeout)
{
	struct wfsd_requests *q = aligned_alloc(alignof(struct shard), sizeof(*q));
	pthread_condattr_t attr;

	if (!q)
		return NULL;
	*q = (struct wfsd_requests){.d = d, .timeout_nsec = timeout * NSEC_PER_SEC};
	for (int i = 0; i < NR_SHARDS; i++)
		pthread_mutex_init(&q->shard[i].lock, NULL);
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (timeout && pthread_create(&q->thread, NULL, watchdog, q)) {
		q->timeout_nsec = 0;
		wfsd_requests_free(q);
		return NULL;
	}
	return q;
}

void wfsd_requests_free(struct wfsd_requests *q)
{
	if (!q)
		return;
	if (q->timeout_nsec) {
		pthread_mutex_lock(&q->lock);
		q->stop = true;
		pthread_cond_signal(&q->wake);
		pthread_mutex_unlock(&q->lock);
		pthread_join(q->thread, NULL);
	}
	for (int i = 0; i < NR_SHARDS; i++)
		pthread_mutex_destroy(&q->shard[i].lock);
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->wake);
	free(q);
}
