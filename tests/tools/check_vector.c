/* check_vector.c - says what the library makes of containers: for each file one line "STATUS SHA256 FILE".
 *
 * STATUS is OK or the name of the first refusal, at opening or at decoding; SHA256 that of the decoded bytes, or "-".
 * Every variant this CPU has must agree, through wfs_reader_read as well as through wfs_reader_stream with 1 and 3
 * threads; otherwise the line says so and the exit status is 1. The reason goes to standard error with -v.
 */
#include "wfs.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct verdict {
	enum wfs_status status;
	char sha[65];
	char reason[200];
};

struct buffer {
	unsigned char *data;
	size_t len;
};

static int append(void *ctx, const void *raw, size_t len)
{
	struct buffer *b = ctx;
	memcpy(b->data + b->len, raw, len);
	b->len += len;
	return 0;
}

static void hash(struct verdict *v, const struct buffer *b)
{
	unsigned char digest[32];
	unsigned len = sizeof(digest);

	if (!EVP_Digest(b->data, b->len, digest, &len, EVP_sha256(), NULL))
		abort();
	for (unsigned i = 0; i < len; i++)
		snprintf(v->sha + 2 * i, 3, "%02x", digest[i]);
}

/* Decode all of an open container in pieces that do not fit its blocks. */
static enum wfs_status read_pieces(const struct wfs_reader *reader, struct buffer *b, struct wfs_error *err)
{
	const size_t piece = 100003;
	struct wfs_scratch *scratch = wfs_scratch_new();
	enum wfs_status status = scratch ? WFS_OK : WFS_NO_MEMORY;
	struct wfs_info info;

	wfs_reader_info(reader, &info);
	for (uint64_t off = 0; status == WFS_OK && off < info.head.raw_len; off += piece) {
		size_t len = info.head.raw_len - off < piece ? (size_t)(info.head.raw_len - off) : piece;

		status = wfs_reader_read(reader, off, b->data + b->len, len, scratch, err);
		b->len += len;
	}
	wfs_scratch_free(scratch);
	return status;
}

/* threads 0: read_pieces, else wfs_reader_stream and wfs_reader_verify. */
static struct verdict judge(int fd, enum wfs_cpu cpu, unsigned threads)
{
	struct verdict v = {.sha = "-"};
	struct wfs_reader_opts opts = {.cpu = cpu, .suffixed = true};
	struct wfs_error err = {.reason = ""};
	struct wfs_reader *reader = NULL;
	struct buffer b = {0};
	struct wfs_info info;

	v.status = wfs_reader_open(fd, &opts, &reader, &err);
	if (v.status != WFS_OK)
		goto out;
	wfs_reader_info(reader, &info);
	b.data = malloc(info.head.raw_len + 1);
	if (!b.data)
		abort();
	if (threads == 0) {
		v.status = read_pieces(reader, &b, &err);
	} else {
		v.status = wfs_reader_stream(reader, 0, info.head.raw_len, threads, append, &b, &err);
		if (v.status == WFS_OK)
			v.status = wfs_reader_verify(reader, threads, NULL, NULL, &err);
	}
	if (v.status == WFS_OK)
		hash(&v, &b);
out:
	if (v.status != WFS_OK)
		snprintf(v.reason, sizeof(v.reason), "%s", err.reason);
	free(b.data);
	wfs_reader_free(reader);
	return v;
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");
	int failed = 0;

	for (int i = 1 + verbose; i < argc; i++) {
		struct verdict first = {0};
		bool have_first = false;
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0) {
			perror(argv[i]);
			return 2;
		}
		for (int cpu = WFS_CPU_SCALAR; cpu < WFS_NR_CPUS; cpu++) {
			if (!wfs_cpu_supported((enum wfs_cpu)cpu))
				continue;
			for (unsigned threads = 0; threads <= 3; threads = threads ? threads + 2 : 1) {
				struct verdict v = judge(fd, (enum wfs_cpu)cpu, threads);

				if (!have_first)
					first = v;
				have_first = true;
				if (v.status != first.status || strcmp(v.sha, first.sha)) {
					printf("DIFFERENT %s: %s with %u threads: %s %s\n", argv[i],
					       wfs_cpu_name((enum wfs_cpu)cpu), threads, wfs_status_name(v.status),
					       v.reason);
					failed = 1;
				}
			}
		}
		close(fd);
		printf("%s %s %s\n", wfs_status_name(first.status), first.sha, strrchr(argv[i], '/') + 1);
		if (verbose && first.status != WFS_OK)
			fprintf(stderr, "%s: %s\n", argv[i], first.reason);
	}
	return failed;
}
