/* Using up the disk, and output that is too much or not text. */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char block[1 << 20];

/* Below the working folder, in a folder of its own so that one unlink each tidies up. */
static void own_folder(void)
{
	static char name[64];
	snprintf(name, sizeof name, "probe-fill-%d", getpid());
	if (mkdir(name, 0700) < 0 || chdir(name) < 0) {
		cannot("%s: %s", name, err(errno));
		exit(SETUP);
	}
	/* A file at its size limit is EFBIG then, and not the end of the probe. */
	signal(SIGXFSZ, SIG_IGN);
}

static bool full(int e) { return e == ENOSPC || e == EDQUOT; }

/* Files of 8 MiB each, below any limit on one file. deleted: unlinked while open, so that no listing shows them. */
static int fill(long most, bool deleted)
{
	long written = 0;
	int e = 0, files = 0, fds[4096];
	own_folder();
	memset(block, 'x', sizeof block);
	while (!e && written < most && files < (int)COUNT(fds)) {
		char name[32];
		snprintf(name, sizeof name, "f%d", files);
		int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0) {
			e = errno;
			break;
		}
		if (deleted)
			unlink(name);
		fds[files++] = fd;
		for (int i = 0; i < 8 && !e && written < most; i++) {
			ssize_t n = write(fd, block, sizeof block);
			if (n < 0)
				e = errno;
			else
				written += n;
		}
		if (!deleted)
			close(fd);
	}
	for (int i = 0; i < files; i++) {
		char name[32];
		snprintf(name, sizeof name, "f%d", i);
		if (deleted)
			close(fds[i]);
		else
			unlink(name);
	}
	if (written >= most)
		broke("%ld bytes were written", written);
	else if (full(e))
		held("full after %ld bytes: %s", written, err(e));
	else
		cannot("stopped after %ld bytes: %s", written, err(e));
	return verdict();
}

static int exhaust_09(int argc, char **argv) { (void)argc; return fill(number(argv[0]), false); }
static int files_10_deleted(int argc, char **argv) { (void)argc; return fill(number(argv[0]), true); }

/* A hole of 10 TiB may be promised; what counts is that filling it ends. */
static int exhaust_09_sparse(int argc, char **argv)
{
	(void)argc;
	long most = number(argv[0]), written = 0;
	own_folder();
	int fd = open("sparse", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		cannot("open: %s", err(errno));
		return verdict();
	}
	off_t size = 10LL << 40;
	int e = ftruncate(fd, size) < 0 ? errno : 0;
	note("a file of 10 TiB: %s", err(e));
	if (e)
		size = 1LL << 30;
	e = 0;
	/* Spread out, so that every write needs a place of its own. */
	for (off_t at = 0; !e && written < most && at < size; at += 16 << 20) {
		ssize_t n = pwrite(fd, block, sizeof block, at);
		if (n < 0)
			e = errno;
		else
			written += n;
	}
	unlink("sparse");
	if (written >= most)
		broke("%ld bytes of it were filled", written);
	else if (full(e) || e == EFBIG)
		held("filling it ended after %ld bytes: %s", written, err(e));
	else
		cannot("stopped after %ld bytes: %s", written, err(e));
	return verdict();
}

static int exhaust_10_inodes(int argc, char **argv)
{
	(void)argc;
	long most = number(argv[0]), n = 0;
	int e = 0;
	own_folder();
	for (; n < most; n++) {
		char name[32];
		snprintf(name, sizeof name, "i%ld", n);
		int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0) {
			e = errno;
			break;
		}
		close(fd);
	}
	for (long i = 0; i < n; i++) {
		char name[32];
		snprintf(name, sizeof name, "i%ld", i);
		unlink(name);
	}
	if (n == most)
		broke("%ld files were made", n);
	else if (full(e))
		held("files end at %ld: %s", n, err(e));
	else
		cannot("stopped at %ld files: %s", n, err(e));
	return verdict();
}

/* Left behind on purpose: the host has to delete them. */
static int exhaust_10_deep(int argc, char **argv)
{
	(void)argc;
	long levels = number(argv[0]), n = 0;
	char name[201];
	memset(name, 'd', sizeof name - 1);
	name[sizeof name - 1] = 0;
	own_folder();
	while (n < levels && mkdir(name, 0700) == 0 && chdir(name) == 0)
		n++;
	held("a tree of %ld levels is left behind: %s", n, n < levels ? err(errno) : "complete");
	return verdict();
}

static int exhaust_10_mode000(int argc, char **argv)
{
	(void)argc;
	long count = number(argv[0]), n = 0;
	own_folder();
	for (; n < count; n++) {
		char name[32], inner[64];
		snprintf(name, sizeof name, "m%ld", n);
		snprintf(inner, sizeof inner, "%s/inside", name);
		if (mkdir(name, 0700) < 0)
			break;
		int fd = open(inner, O_WRONLY | O_CREAT | O_CLOEXEC, 0000);
		if (fd >= 0)
			close(fd);
		chmod(name, 0000);
	}
	held("%ld folders of mode 000 are left behind", n);
	return verdict();
}

static int exhaust_11(int argc, char **argv)
{
	(void)argc;
	long seconds = number(argv[0]), times = 0;
	alarm((unsigned)seconds + 30);
	own_folder();
	int fd = open("sync", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (double end = now() + seconds; now() < end; times++) {
		if (pwrite(fd, block, 4096, (times % 64) * 4096) < 0 || fsync(fd) < 0)
			break;
		syncfs(fd);
	}
	unlink("sync");
	held("%ld syncs in %ld s", times, seconds);
	return verdict();
}

/* The output floods say nothing themselves: stdout is the weapon, the host judges what came of it. */
static bool put(const char *bytes, size_t n)
{
	while (n) {
		ssize_t w = write(STDOUT_FILENO, bytes, n);
		if (w <= 0)
			return false;
		bytes += w;
		n -= (size_t)w;
	}
	return true;
}

static int exhaust_07(int argc, char **argv)
{
	(void)argc;
	long seconds = number(argv[0]);
	alarm((unsigned)seconds + 30);
	for (size_t i = 0; i < sizeof block; i++)
		block[i] = i % 64 == 63 ? '\n' : 'o';
	signal(SIGPIPE, SIG_IGN);
	for (double end = now() + seconds; now() < end && put(block, 65536);) {
	}
	return HELD;
}

static int repeat(long bytes, const char *pattern, size_t n)
{
	alarm(300);
	for (size_t i = 0; i + n <= sizeof block; i += n)
		memcpy(block + i, pattern, n);
	signal(SIGPIPE, SIG_IGN);
	for (long left = bytes; left > 0; left -= 65536)
		if (!put(block, left < 65536 ? (size_t)left : 65536))
			break;
	return HELD;
}

static int exhaust_08_line(int argc, char **argv) { (void)argc; return repeat(number(argv[0]), "l", 1); }
static int exhaust_08_nul(int argc, char **argv) { (void)argc; return repeat(number(argv[0]), "\0", 1); }
/* Cut short, too long, a surrogate, and bytes that never occur. */
static int exhaust_08_utf8(int argc, char **argv) { (void)argc; return repeat(number(argv[0]), "\xc3(\xe2\x82\xf0\x9f\x92\xed\xa0\x80\xc0\xaf\xff\xfe\xf8\x88", 16); }

static int exhaust_08_tiny(int argc, char **argv)
{
	(void)argc;
	alarm(300);
	signal(SIGPIPE, SIG_IGN);
	for (long left = number(argv[0]); left > 0 && put("t", 1); left--) {
	}
	return HELD;
}

/* A file with many names must be counted once, and a hole not at all: the host compares with its own count. */
static int files_10_links(int argc, char **argv)
{
	(void)argc;
	long links = number(argv[0]), n = 0;
	own_folder();
	int fd = open("one", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, block, sizeof block) < 0) {
		cannot("file: %s", err(errno));
		return verdict();
	}
	for (; n < links; n++) {
		char name[32];
		snprintf(name, sizeof name, "l%ld", n);
		if (link("one", name) < 0)
			break;
	}
	int hole = open("hole", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (hole >= 0 && ftruncate(hole, 1LL << 30) < 0)
		note("hole of 1 GiB: %s", err(errno));
	held("one file of 1 MiB with %ld more names, and a hole", n);
	return verdict();
}

const struct probe fill_cases[] = {
	{ "exhaust-07", exhaust_07, 1, "SECONDS", 0 },
	{ "exhaust-08-line", exhaust_08_line, 1, "BYTES", 0 },
	{ "exhaust-08-tiny", exhaust_08_tiny, 1, "COUNT", 0 },
	{ "exhaust-08-nul", exhaust_08_nul, 1, "BYTES", 0 },
	{ "exhaust-08-utf8", exhaust_08_utf8, 1, "BYTES", 0 },
	{ "exhaust-09", exhaust_09, 1, "BYTES", 120 },
	{ "exhaust-09-sparse", exhaust_09_sparse, 1, "BYTES", 120 },
	{ "exhaust-10-inodes", exhaust_10_inodes, 1, "MOST", 120 },
	{ "exhaust-10-deep", exhaust_10_deep, 1, "LEVELS", 0 },
	{ "exhaust-10-mode000", exhaust_10_mode000, 1, "COUNT", 0 },
	{ "exhaust-11", exhaust_11, 1, "SECONDS", 0 },
	{ "files-10-deleted", files_10_deleted, 1, "BYTES", 120 },
	{ "files-10-links", files_10_links, 1, "COUNT", 0 },
	{ 0 },
};
