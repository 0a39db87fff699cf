/* progress.c - shows how far a long command is. */
#include "progress.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_CELLS = 24, MAX_COLUMNS = 160 };
static const double bar_interval = 0.1, line_interval = 10;

struct progress {
	const char *label;
	bool terminal;
	unsigned passes;
	double started;
	uint64_t total;
	pthread_mutex_t lock;
	/* protected by lock */
	uint64_t done;
	int64_t raw_bytes, comp_bytes;
	double shown;
	bool on_screen;
};

struct progress *progress_new(const char *label, uint64_t total_work, unsigned passes)
{
	const char *term = getenv("TERM");
	struct progress *p = xcalloc(1, sizeof(*p));
	p->label = label;
	p->total = total_work;
	p->passes = passes;
	p->terminal = isatty(STDERR_FILENO) && (!term || strcmp(term, "dumb") != 0);
	p->started = p->shown = seconds_now();
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

static void time_text(char *buf, size_t size, double seconds)
{
	if (seconds < 60)
		snprintf(buf, size, "%.0f s", seconds);
	else if (seconds < 3600)
		snprintf(buf, size, "%.0f min %02.0f s", (double)(int)(seconds / 60), (double)((int)seconds % 60));
	else if (seconds < 360000)
		snprintf(buf, size, "%.0f h %02.0f min", (double)(int)(seconds / 3600),
			 (double)((int)(seconds / 60) % 60));
	else
		snprintf(buf, size, "long");
}

/* "42 %, 1.23 GB/s, 12 s left, 34.0 % saved" */
static void status_text(const struct progress *p, char *buf, size_t size, double now)
{
	double fraction = p->total ? (double)p->done / (double)p->total : 1, elapsed = now - p->started;
	char left[32] = "?", rate[RATE_TEXT_BYTES], saved[32] = "";
	/* The first moments say nothing about the rest. */
	if (elapsed >= 1 && fraction >= 0.01)
		time_text(left, sizeof(left), elapsed / fraction - elapsed);
	if (p->raw_bytes > 0)
		snprintf(saved, sizeof(saved), ", %.1f %% saved",
			 saved_percent((uint64_t)p->raw_bytes, (uint64_t)p->comp_bytes));
	snprintf(buf, size, "%3.0f %%%s, %s left%s", 100 * MIN(fraction, 1),
		 rate_text(rate, p->done / p->passes, elapsed), left, saved);
}

static unsigned terminal_columns(void)
{
	struct winsize size;
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 0)
		return MIN((unsigned)size.ws_col, (unsigned)MAX_COLUMNS);
	return 80;
}

/* p->lock is held. */
static void show(struct progress *p, double now)
{
	char text[128], line[MAX_COLUMNS + 1], bar[BAR_CELLS + 1];
	p->shown = now;
	status_text(p, text, sizeof(text), now);
	if (!p->terminal) {
		fprintf(stderr, "weightfs: %s: %s\n", p->label, text);
		return;
	}
	for (unsigned i = 0; i < BAR_CELLS; i++)
		bar[i] = p->total && p->done / (p->total / BAR_CELLS + 1) > i ? '#' : '.';
	bar[BAR_CELLS] = '\0';
	/* One cell less than the screen has, or the cursor wraps. */
	snprintf(line, MIN(sizeof(line), terminal_columns()), "%s [%s] %s", p->label, bar, text);
	fprintf(stderr, "\r\033[K%s", line);
	fflush(stderr);
	p->on_screen = true;
}

void progress_add(struct progress *p, uint64_t work)
{
	double now;
	if (!p)
		return;
	now = seconds_now();
	pthread_mutex_lock(&p->lock);
	p->done += work;
	if (now - p->shown >= (p->terminal ? bar_interval : line_interval))
		show(p, now);
	pthread_mutex_unlock(&p->lock);
}

void progress_coded(struct progress *p, int64_t raw_bytes, int64_t comp_bytes)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->raw_bytes += raw_bytes;
	p->comp_bytes += comp_bytes;
	pthread_mutex_unlock(&p->lock);
}

void progress_clear(struct progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	if (p->on_screen) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
		p->on_screen = false;
		p->shown = 0;
	}
	pthread_mutex_unlock(&p->lock);
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	progress_clear(p);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void file_progress_reach(struct file_progress *p, uint64_t raw_done)
{
	if (raw_done <= p->raw_told)
		return;
	progress_add(p->progress, p->passes * (raw_done - p->raw_told));
	p->raw_told = raw_done;
}

int file_progress_report(void *ctx, uint64_t raw_done, uint64_t comp_done)
{
	(void)comp_done;
	file_progress_reach(ctx, raw_done);
	return 0;
}
