/* Finds the case, bounds its time, and turns what was said into the exit code. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct probe *const groups[] = {
	escape_cases, devices_cases, calls_cases, sockets_cases, posture_cases, priv_cases, leak_cases, shared_cases,
	net_cases, exhaust_cases, fill_cases, outlive_cases, files_cases,
};

static int said_held, said_broke, said_cannot;

static void say(const char *word, const char *fmt, va_list args)
{
	/* One write per line: children and threads share stdout. */
	char line[1024];
	int n = snprintf(line, sizeof line, "%s: ", word);
	int m = vsnprintf(line + n, sizeof line - n - 1, fmt, args);
	size_t len = n + (m < 0 ? 0 : m);
	if (len > sizeof line - 2)
		len = sizeof line - 2;
	line[len++] = '\n';
	if (write(STDOUT_FILENO, line, len) < 0)
		return; /* nobody listens: the exit code still tells */
}

#define SAY(function, word, count)                \
	void function(const char *fmt, ...)       \
	{                                         \
		va_list args;                     \
		va_start(args, fmt);              \
		say(word, fmt, args);             \
		va_end(args);                     \
		count++;                          \
	}
static int said_note;
SAY(held, "held", said_held)
SAY(broke, "broke", said_broke)
SAY(cannot, "cannot", said_cannot)
SAY(note, "note", said_note)

int verdict(void)
{
	if (said_broke)
		return BROKE;
	/* Nothing tried proves nothing. */
	if (said_cannot || !said_held)
		return SETUP;
	return HELD;
}

const char *err(int number)
{
	const char *name = number ? strerrorname_np(number) : "success";
	return name ? name : "unknown error";
}

void must_fail(const char *what, long rc)
{
	int e = errno;
	if (rc < 0)
		held("%s: %s", what, err(e));
	else
		broke("%s: worked", what);
}

int in_child(int (*f)(void *), void *arg)
{
	pid_t pid = fork();
	if (pid < 0) {
		cannot("fork: %s", err(errno));
		exit(SETUP);
	}
	if (pid == 0)
		_exit(f(arg));
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) {
			cannot("waitpid: %s", err(errno));
			exit(SETUP);
		}
	return status;
}

int how_it_ended(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int call_it(void *arg)
{
	const struct call *c = arg;
	pid_t me = (pid_t)syscall(SYS_getpid);
	long rc = syscall(c->number, c->arg[0], c->arg[1], c->arg[2], c->arg[3], c->arg[4], c->arg[5]);
	int e = errno;
	/* A clone that worked returns twice; the copy must not report. */
	if ((pid_t)syscall(SYS_getpid) != me)
		_exit(0);
	return rc < 0 ? e : 0;
}

int call_errno(const struct call *c)
{
	return how_it_ended(in_child(call_it, (void *)c));
}

bool pair_in(const void *buf, size_t len, const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);
	const char *p = buf, *end = p + len;
	while ((p = memmem(p, end - p, a, na))) {
		if ((size_t)(end - p) >= na + nb && memcmp(p + na, b, nb) == 0)
			return true;
		p++;
	}
	return false;
}

ssize_t slurp(const char *path, char *buf, size_t cap)
{
	/* O_NONBLOCK: some files in /proc and any FIFO would wait for ever. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	size_t have = 0;
	ssize_t n = 0;
	while (have < cap - 1 && (n = read(fd, buf + have, cap - 1 - have)) > 0)
		have += n;
	int e = errno;
	close(fd);
	buf[have] = 0;
	errno = e;
	return n < 0 && have == 0 ? -1 : (ssize_t)have;
}

int file_has_pair(const char *path, const char *a, const char *b)
{
	static char buf[1 << 20];
	ssize_t n = slurp(path, buf, sizeof buf);
	return n < 0 ? -1 : pair_in(buf, n, a, b);
}

int tree_has_pair(const char *folder, const char *a, const char *b, int depth, int *budget)
{
	DIR *d = opendir(folder);
	if (!d)
		return 0;
	int found = 0;
	struct dirent *e;
	while (!found && *budget > 0 && (e = readdir(d))) {
		char path[4096];
		struct stat st;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (lstat(path, &st) < 0)
			continue;
		--*budget;
		if (S_ISDIR(st.st_mode) && depth > 0)
			found = tree_has_pair(path, a, b, depth - 1, budget);
		else if (S_ISREG(st.st_mode) && file_has_pair(path, a, b) == 1) {
			broke("nonce in %s", path);
			found = 1;
		}
	}
	closedir(d);
	return found;
}

long number(const char *text)
{
	char *end;
	errno = 0;
	long n = strtol(text, &end, 0);
	if (errno || *end || end == text || n < 0) {
		cannot("not a number: %s", text);
		exit(SETUP);
	}
	return n;
}

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void too_long(int signal)
{
	(void)signal;
	static const char text[] = "cannot: the probe ran out of time\n";
	if (write(STDOUT_FILENO, text, sizeof text - 1) < 0) {
		/* the exit code still tells */
	}
	_exit(SETUP);
}

/* What a setuid or file-capability copy of this program gained by being executed. */
static int report_gain(void)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;
	char status[8192];
	unsigned long long caps = 0;
	if (getresuid(&r, &e, &s) || getresgid(&rg, &eg, &sg) || slurp("/proc/self/status", status, sizeof status) < 0)
		return SETUP;
	char *line = strstr(status, "CapPrm:");
	if (!line || sscanf(line, "CapPrm: %llx", &caps) != 1)
		return SETUP;
	bool gained = r != e || r != s || rg != eg || rg != sg || caps;
	note("uid %u/%u/%u gid %u/%u/%u caps %llx", r, e, s, rg, eg, sg, caps);
	return gained ? BROKE : HELD;
}

static int list(void)
{
	for (size_t g = 0; g < COUNT(groups); g++)
		for (const struct probe *p = groups[g]; p->name; p++)
			printf("%s%s%s\n", p->name, *p->usage ? " " : "", p->usage);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list();
	if (argc == 2 && !strcmp(argv[1], "--gained"))
		return report_gain();
	if (argc == 3 && !strcmp(argv[1], "--linger"))
		return linger_main(argv[2]);
	int as_host = host_main(argc, argv);
	if (as_host >= 0)
		return as_host;
	if (argc < 2) {
		fprintf(stderr, "usage: probe CASE [args]; probe --list\n");
		return SETUP;
	}
	for (size_t g = 0; g < COUNT(groups); g++)
		for (const struct probe *p = groups[g]; p->name; p++) {
			if (strcmp(p->name, argv[1]))
				continue;
			if (argc - 2 < p->min_args) {
				cannot("usage: probe %s %s", p->name, p->usage);
				return SETUP;
			}
			signal(SIGALRM, too_long);
			alarm(p->seconds ? p->seconds : 60);
			return p->run(argc - 2, argv + 2);
		}
	cannot("no case %s", argv[1]);
	return SETUP;
}
