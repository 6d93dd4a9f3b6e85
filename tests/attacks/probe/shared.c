/* leak-07, channels between sandboxes and with the host; leak-08, core dumps. */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The host made a segment of mode 0666 under this key. */
static int leak_07_sysv(int argc, char **argv)
{
	(void)argc;
	key_t key = (key_t)number(argv[0]);
	must_fail("find the host's shared memory", shmget(key, 0, 0));
	must_fail("find the host's message queue", msgget(key, 0));
	must_fail("find the host's semaphores", semget(key, 0, 0));
	return verdict();
}

static int leak_07_shm(int argc, char **argv)
{
	(void)argc;
	char path[512];
	static const char *const folders[] = { "/dev/shm", "/tmp", "/dev/mqueue", "/run/lock" };
	for (size_t i = 0; i < COUNT(folders); i++) {
		snprintf(path, sizeof path, "%s/%s", folders[i], argv[0]);
		must_fail(path, access(path, F_OK));
	}
	/* The queue is asked for by its name without the slash. */
	must_fail("open the message queue", syscall(SYS_mq_open, argv[0], O_RDONLY | O_NONBLOCK, 0, NULL));
	return verdict();
}

static int leak_07_abstract(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		struct sockaddr_un to = { .sun_family = AF_UNIX };
		size_t len = strnlen(argv[i], sizeof to.sun_path - 1);
		memcpy(to.sun_path + 1, argv[i], len);
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0) {
			cannot("socket: %s", err(errno));
			continue;
		}
		must_fail("connect to the abstract socket", connect(fd, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + 1 + len));
		close(fd);
	}
	return verdict();
}

/* The host, or a neighbour, holds an exclusive lock on the file below this one. Being told so is the channel. */
static int leak_07_flock(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			cannot("%s: %s", argv[i], err(errno));
			continue;
		}
		int rc = flock(fd, LOCK_EX | LOCK_NB), e = rc < 0 ? errno : 0;
		if (e == EWOULDBLOCK)
			broke("%s: locked by someone else", argv[i]);
		else if (e)
			held("%s: flock: %s", argv[i], err(e));
		else
			held("%s: the lock is ours alone", argv[i]);
		struct flock read_lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
		if (fcntl(fd, F_GETLK, &read_lock) == 0 && read_lock.l_type != F_UNLCK)
			broke("%s: a record lock of someone else is seen", argv[i]);
		close(fd);
	}
	return verdict();
}

/* 1 is as good as 0, and better where cores are piped: the kernel minds 0 only for files. */
static int leak_08_limit(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct rlimit l;
	if (getrlimit(RLIMIT_CORE, &l) < 0)
		cannot("getrlimit: %s", err(errno));
	else if (l.rlim_max <= 1)
		held("RLIMIT_CORE is %llu", (unsigned long long)l.rlim_max);
	else
		broke("RLIMIT_CORE can be raised to %llu", (unsigned long long)l.rlim_max);
	return verdict();
}

static int crash(void *arg)
{
	(void)arg;
	struct rlimit l;
	if (getrlimit(RLIMIT_CORE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_CORE, &l);
	}
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return SETUP;
}

/* The kernel says in the wait status whether it dumped, also when it piped the core to a program of the host. */
static int leak_08_crash(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int status = in_child(crash, NULL);
	if (!WIFSIGNALED(status))
		cannot("the child did not crash: %#x", status);
	else if (WCOREDUMP(status))
		broke("a core was dumped");
	else
		held("no core was dumped");
	return verdict();
}

const struct probe shared_cases[] = {
	{ "leak-07-sysv", leak_07_sysv, 1, "KEY", 0 },
	{ "leak-07-shm", leak_07_shm, 1, "NAME", 0 },
	{ "leak-07-abstract", leak_07_abstract, 1, "NAME...", 0 },
	{ "leak-07-flock", leak_07_flock, 1, "ROOT_FILE...", 0 },
	{ "leak-08-limit", leak_08_limit, 0, "", 0 },
	{ "leak-08-crash", leak_08_crash, 0, "", 0 },
	{ 0 },
};
