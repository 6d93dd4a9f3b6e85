/* Staying alive after the end. Whether anything is left is for the host to see: the marker is in its /proc/PID/cmdline. */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *marker, *linger_seconds;

/* Becomes a process with the marker as its name that ignores what can be ignored and ends by itself. */
static void linger(void)
{
	char *const args[] = { (char *)marker, "--linger", (char *)linger_seconds, NULL }, *const none[] = { NULL };
	setsid();
	for (int s = 1; s < 65; s++)
		if (s != SIGALRM)
			signal(s, SIG_IGN); /* stays ignored over the exec */
	execve("/proc/self/exe", args, none);
	_exit(SETUP);
}

int linger_main(const char *seconds)
{
	signal(SIGALRM, SIG_DFL);
	alarm((unsigned)atoi(seconds) + 1);
	/* Holds what it has open, as a real one would. */
	for (;;)
		pause();
}

static void on_term(int signal)
{
	(void)signal;
	if (fork() == 0) {
		if (fork() == 0)
			linger();
		_exit(0);
	}
}

/* Forks at every SIGTERM of the grace period, and does not go. */
static int outlive_01(int argc, char **argv)
{
	(void)argc;
	marker = argv[0];
	linger_seconds = argv[1];
	long seconds = number(argv[1]);
	struct sigaction a = { .sa_handler = on_term };
	alarm((unsigned)seconds + 30);
	sigaction(SIGTERM, &a, NULL);
	held("waiting for SIGTERM");
	for (double end = now() + seconds; now() < end;)
		usleep(100000);
	return verdict();
}

/* The foreground ends at once; the rest is no child of it, in no session of it, and deaf. */
static int outlive_05(int argc, char **argv)
{
	(void)argc;
	marker = argv[0];
	linger_seconds = argv[1];
	number(argv[1]);
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();
		if (pid < 0) {
			cannot("fork: %s", err(errno));
			return verdict();
		}
		if (pid == 0) {
			setsid();
			if (fork() == 0)
				linger();
			_exit(0);
		}
	}
	held("4 processes were left behind");
	return verdict();
}

static int outlive_07(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int s = -1;
	if (prctl(PR_GET_PDEATHSIG, &s) < 0)
		cannot("PR_GET_PDEATHSIG: %s", err(errno));
	else if (s == SIGKILL)
		held("dies with its parent");
	else
		broke("the parent's death sends signal %d", s);
	return verdict();
}

/* Files that tools of the host would run. Each makes CANARY, outside, if one does; the host looks for it. */
static int outlive_03(int argc, char **argv)
{
	(void)argc;
	static const struct {
		const char *path, *text;
		mode_t mode;
	} files[] = {
		{ ".git/hooks/post-checkout", "#!/bin/sh\n: > %s\n", 0755 },
		{ ".git/hooks/pre-commit", "#!/bin/sh\n: > %s\n", 0755 },
		{ ".git/hooks/fsmonitor-watchman", "#!/bin/sh\n: > %s\n", 0755 },
		{ ".git/config", "[core]\n\tfsmonitor = \": > %s; false\"\n\tpager = \": > %s\"\n", 0644 },
		{ ".bashrc", ": > %s\n", 0644 },
		{ ".profile", ": > %s\n", 0644 },
		{ ".envrc", ": > %s\n", 0644 },
		{ "Makefile", "$(shell : > %s)\nall:\n", 0644 },
		{ "sitecustomize.py", "open('%s','w')\n", 0644 },
		{ "conftest.py", "open('%s','w')\n", 0644 },
		{ "build.rs", "fn main(){std::fs::write(\"%s\",\"\").ok();}\n", 0644 },
		{ "tar", "#!/bin/sh\n: > %s\n", 0755 },
		{ "ls", "#!/bin/sh\n: > %s\n", 0755 },
		{ "--checkpoint-action=exec=sh tar", "#!/bin/sh\n: > %s\n", 0755 },
	};
	int planted = 0;
	mkdir(".git", 0755);
	mkdir(".git/hooks", 0755);
	for (size_t i = 0; i < COUNT(files); i++) {
		int fd = open(files[i].path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, files[i].mode);
		if (fd < 0)
			continue;
		/* "%s" is replaced wherever it stands. */
		for (const char *p = files[i].text; *p;) {
			const char *next = strstr(p, "%s");
			size_t n = next ? (size_t)(next - p) : strlen(p);
			if (write(fd, p, n) < 0 || (next && write(fd, argv[0], strlen(argv[0])) < 0))
				break;
			p += n + (next ? 2 : 0);
		}
		close(fd);
		planted++;
	}
	if (planted)
		held("%d files planted", planted);
	else
		cannot("nothing could be planted");
	return verdict();
}

const struct probe outlive_cases[] = {
	{ "outlive-01", outlive_01, 2, "MARKER SECONDS", 0 },
	{ "outlive-03", outlive_03, 1, "CANARY", 0 },
	{ "outlive-05", outlive_05, 2, "MARKER SECONDS", 0 },
	{ "outlive-07", outlive_07, 0, "", 0 },
	{ 0 },
};
