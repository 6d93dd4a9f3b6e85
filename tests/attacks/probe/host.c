/* What the harness runs on the host: a launcher with secrets to leak, shared memory, and a heart that can be watched. */
#include "probe.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { JOIN_SESSION_KEYRING = 1, SESSION_KEYRING = -3 };

static int fail(const char *what)
{
	fprintf(stderr, "probe: %s: %s\n", what, err(errno));
	return SETUP;
}

/* Where the planted descriptors go: clear of what a launcher opens for itself. */
enum { PLANTED_READ = 40, PLANTED_WRITE = 41 };

/*
 * --plant KEY SECRET FILE PROGRAM ARGS...: becomes PROGRAM with what a careless server would pass on. A key in the
 * session keyring, descriptors without close-on-exec, supplementary groups, and no resource limits.
 */
static int plant(char **argv)
{
	static const int raised[] = { RLIMIT_NOFILE, RLIMIT_CORE, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING, RLIMIT_RTPRIO, RLIMIT_NICE };
	gid_t extra[] = { 4, 27 };
	int null[2];
	if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL) < 0)
		return fail("session keyring");
	if (syscall(SYS_add_key, "user", argv[0], argv[1], strlen(argv[1]), SESSION_KEYRING) < 0)
		return fail("key");
	null[0] = open(argv[2], O_RDONLY);
	null[1] = open(argv[2], O_RDWR);
	if (null[0] < 0 || null[1] < 0 || dup2(null[0], PLANTED_READ) < 0 || dup2(null[1], PLANTED_WRITE) < 0)
		return fail(argv[2]);
	close(null[0]);
	close(null[1]);
	/* An ordinary user has those that it logged in with. */
	if (geteuid() == 0 && setgroups(COUNT(extra), extra) < 0)
		return fail("groups");
	/* As far as this host may: some machines have a ceiling. */
	for (size_t i = 0; i < COUNT(raised); i++) {
		struct rlimit most = { 100000, 100000 }, now;
		setrlimit(raised[i], &most);
		if (getrlimit(raised[i], &now) == 0) {
			now.rlim_cur = now.rlim_max;
			setrlimit(raised[i], &now);
		}
	}
	execv(argv[3], argv + 3);
	return fail(argv[3]);
}

/* --shm make KEY or --shm drop KEY. */
static int shm(const char *verb, const char *key)
{
	int make = !strcmp(verb, "make");
	int id = shmget((key_t)number(key), make ? 4096 : 0, make ? IPC_CREAT | IPC_EXCL | 0666 : 0);
	if (id < 0 || (!make && shmctl(id, IPC_RMID, NULL) < 0))
		return fail("shared memory");
	return 0;
}

/* --beat MILLISECONDS: a byte each time, until nobody listens. */
static int beat(const char *milliseconds)
{
	long wait = number(milliseconds) * 1000;
	while (write(STDOUT_FILENO, ".", 1) == 1)
		usleep((useconds_t)wait);
	return 0;
}

int host_main(int argc, char **argv)
{
	if (argc >= 6 && !strcmp(argv[1], "--plant"))
		return plant(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "--shm"))
		return shm(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "--beat"))
		return beat(argv[2]);
	return -1;
}
