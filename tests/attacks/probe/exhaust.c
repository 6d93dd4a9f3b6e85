/*
 * Using up processes, memory, time and output. Every flood has a number at which it stops by itself and says that the
 * wall is missing, so that a run without a limit ends too.
 */
#include "probe.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_bool stop;

static void *spin(void *arg)
{
	volatile unsigned n = 0;
	while (!stop)
		n++;
	return arg;
}

static double cpu_seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int exhaust_01(int argc, char **argv)
{
	(void)argc;
	long threads = number(argv[0]), seconds = number(argv[1]), most = number(argv[2]), made = 0;
	alarm((unsigned)seconds + 30);
	double began = now(), used = cpu_seconds();
	for (pthread_t t; made < threads && pthread_create(&t, NULL, spin, NULL) == 0; made++)
		pthread_detach(t);
	while (now() - began < seconds)
		usleep(50000);
	double percent = 100 * (cpu_seconds() - used) / (now() - began);
	stop = true;
	if (!made)
		cannot("no thread could be made");
	else if (percent > most)
		broke("%ld threads used %.0f%% of a processor, more than %ld%%", made, percent, most);
	else
		held("%ld threads used %.0f%% of a processor", made, percent);
	return verdict();
}

/* Opens until it is refused. The number comes first so that a missing limit ends the flood. */
static void flood(const char *what, int (*make)(void), long most)
{
	long n = 0;
	int *fds = calloc(most, sizeof *fds), e = 0;
	while (n < most) {
		int fd = make();
		if (fd < 0) {
			e = errno;
			break;
		}
		fds[n++] = fd;
	}
	for (long i = 0; i < n; i++)
		close(fds[i]);
	free(fds);
	if (n == most)
		broke("%ld %s were had", n, what);
	else
		held("%s end at %ld: %s", what, n, err(e));
}

static int make_fd(void) { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
static int make_udp(void) { return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }
static int make_unix(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static int make_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }
static int make_inotify(void) { return inotify_init1(IN_CLOEXEC); }

static int exhaust_02(int argc, char **argv)
{
	(void)argc;
	long most = number(argv[0]);
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	flood("descriptors", make_fd, most);
	flood("UDP sockets", make_udp, most);
	flood("Unix sockets", make_unix, most);
	flood("epolls", make_epoll, most);
	return verdict();
}

/* A whole tree that stops itself. One child stays awake: if it ends, the deadline did not, and it tidies up. */
static int exhaust_03(int argc, char **argv)
{
	(void)argc;
	long seconds = number(argv[0]);
	pid_t stopped[8], me = getpid();
	alarm((unsigned)seconds + 30);
	for (size_t i = 0; i < COUNT(stopped); i++) {
		stopped[i] = fork();
		if (stopped[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			raise(SIGSTOP);
			_exit(0);
		}
	}
	pid_t awake = fork();
	if (awake == 0) {
		sleep((unsigned)seconds);
		for (size_t i = 0; i < COUNT(stopped); i++)
			if (stopped[i] > 0)
				kill(stopped[i], SIGKILL);
		kill(me, SIGCONT);
		_exit(0);
	}
	if (awake < 0) {
		cannot("fork: %s", err(errno));
		return verdict();
	}
	raise(SIGSTOP);
	while (wait(NULL) > 0) {
	}
	broke("a stopped tree lived for %ld s", seconds);
	return verdict();
}

/* Children that only wait, up to a number. */
static int exhaust_04(int argc, char **argv)
{
	(void)argc;
	long most = number(argv[0]), n = 0;
	pid_t *made = calloc(most, sizeof *made);
	int e = 0;
	while (n < most) {
		pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
		if (pid < 0) {
			e = errno;
			break;
		}
		made[n++] = pid;
	}
	for (long i = 0; i < n; i++)
		kill(made[i], SIGKILL);
	for (long i = 0; i < n; i++)
		waitpid(made[i], NULL, 0);
	free(made);
	if (n == most)
		broke("%ld processes were made", n);
	else
		held("processes end at %ld: %s", n, err(e));
	return verdict();
}

/* Each child forks on. The shared count bounds it where no limit does; every process ends by its own alarm. */
static int exhaust_04_bomb(int argc, char **argv)
{
	(void)argc;
	long most = number(argv[0]), seconds = number(argv[1]);
	struct count {
		atomic_long made, refused;
	} *c = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c == MAP_FAILED) {
		cannot("mmap: %s", err(errno));
		return verdict();
	}
	pid_t first = fork();
	if (first == 0) {
		signal(SIGALRM, SIG_DFL);
		double end = now() + seconds;
		while (now() < end) {
			alarm((unsigned)seconds + 1); /* children do not inherit it: each sets its own */
			if (atomic_fetch_add(&c->made, 1) >= most || fork() < 0) {
				atomic_fetch_sub(&c->made, 1);
				atomic_fetch_add(&c->refused, 1);
				usleep(2000);
			}
		}
		_exit(0);
	}
	if (first < 0) {
		cannot("fork: %s", err(errno));
		return verdict();
	}
	sleep((unsigned)seconds + 2);
	waitpid(first, NULL, 0);
	if (c->made >= most)
		broke("%ld processes were made", (long)c->made);
	else
		held("the bomb ended at %ld processes, refused %ld times", (long)c->made, (long)c->refused);
	return verdict();
}

static long mebibytes;

static int touch_memory(void *arg)
{
	(void)arg;
	for (long i = 0; i < mebibytes; i++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return 1;
		for (int k = 0; k < 1 << 20; k += 4096)
			p[k] = (char)(i + k + 1);
	}
	return 0;
}

static int touch_memfd(void *arg)
{
	(void)arg;
	static char block[1 << 20];
	int fd = (int)syscall(SYS_memfd_create, "probe", 0);
	for (long i = 0; fd >= 0 && i < mebibytes; i++)
		if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
			return 1;
	return fd < 0;
}

/* In a child, so that the one that is killed need not be the one that tells. */
static int memory_bomb(int argc, char **argv, int (*touch)(void *))
{
	(void)argc;
	mebibytes = number(argv[0]);
	int e = how_it_ended(in_child(touch, NULL));
	if (e == 0)
		broke("%ld MiB were had", mebibytes);
	else if (e < 0)
		held("%ld MiB: killed by %s", mebibytes, strsignal(-e));
	else
		held("%ld MiB: refused", mebibytes);
	return verdict();
}

static int exhaust_05(int argc, char **argv) { return memory_bomb(argc, argv, touch_memory); }
static int exhaust_05_memfd(int argc, char **argv) { return memory_bomb(argc, argv, touch_memfd); }

/* Kernel memory that no process owns: full pipes, kept by as many children as it takes. */
static int hold_pipes(void *arg)
{
	long *share = arg; /* in KiB; a pipe holds 64 */
	static char block[65536];
	for (long kib = 0; kib < *share; kib += 64) {
		int ends[2];
		if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0 || write(ends[1], block, sizeof block) != (ssize_t)sizeof block)
			return 1;
	}
	return 0;
}

static int hold_buffers(void *arg)
{
	long *share = arg;
	static char block[4096];
	for (long kib = 0; kib < *share;) {
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
			return 1;
		long before = kib;
		while (write(pair[0], block, sizeof block) > 0)
			kib += 4;
		if (kib == before)
			return 1;
	}
	return 0;
}

static void hold(const char *what, int (*f)(void *), long total_mib)
{
	long share = 32 * 1024, children = total_mib / 32 + 1; /* 32 MiB each stays below the limit on descriptors */
	int ready[2], refused = 0;
	if (pipe(ready) < 0) {
		cannot("pipe: %s", err(errno));
		return;
	}
	pid_t *made = calloc(children, sizeof *made);
	long n = 0;
	for (; n < children; n++) {
		made[n] = fork();
		if (made[n] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			char said = (char)f(&share);
			if (write(ready[1], &said, 1) == 1)
				pause(); /* keeps what it holds */
			_exit(0);
		}
		if (made[n] < 0)
			break;
		char said = 1;
		/* A child killed for its memory says nothing: stop there. */
		struct timespec tick = { 0, 1000000 };
		fcntl(ready[0], F_SETFL, O_NONBLOCK);
		int waited = 0;
		while (read(ready[0], &said, 1) != 1 && waitpid(made[n], NULL, WNOHANG) == 0 && waited++ < 20000)
			nanosleep(&tick, NULL);
		if (said) {
			refused = 1;
			n++;
			break;
		}
	}
	for (long i = 0; i < n; i++)
		kill(made[i], SIGKILL);
	for (long i = 0; i < n; i++)
		waitpid(made[i], NULL, 0);
	free(made);
	close(ready[0]);
	close(ready[1]);
	if (n == children && !refused)
		broke("%ld MiB of %s were held", total_mib, what);
	else
		held("%s end below %ld MiB", what, n * 32);
}

static int exhaust_06(int argc, char **argv)
{
	(void)argc;
	hold("full pipes", hold_pipes, number(argv[0]));
	hold("socket buffers", hold_buffers, number(argv[0]));
	return verdict();
}

static int exhaust_06_timers(int argc, char **argv)
{
	(void)argc;
	long most = number(argv[0]), n = 0;
	timer_t t;
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	while (n < most && timer_create(CLOCK_MONOTONIC, &none, &t) == 0)
		n++;
	if (n == most)
		broke("%ld timers were had", n);
	else
		held("timers end at %ld: %s", n, err(errno));
	return verdict();
}

/* One sandbox takes all it can get and keeps it; meanwhile -need runs in another. */
static int exhaust_06_inotify_hog(int argc, char **argv)
{
	(void)argc;
	long seconds = number(argv[0]), n = 0;
	alarm((unsigned)seconds + 30);
	while (n < 100000 && make_inotify() >= 0)
		n++;
	held("%ld inotify instances taken", n);
	sleep((unsigned)seconds);
	return verdict();
}

static int exhaust_06_inotify_need(int argc, char **argv)
{
	(void)argc;
	long need = number(argv[0]), n = 0;
	while (n < need && make_inotify() >= 0)
		n++;
	if (n < need)
		broke("a neighbour left only %ld inotify instances: %s", n, err(errno));
	else
		held("%ld inotify instances were had", n);
	return verdict();
}

const struct probe exhaust_cases[] = {
	{ "exhaust-01", exhaust_01, 3, "THREADS SECONDS MOST_PERCENT", 0 },
	{ "exhaust-02", exhaust_02, 1, "MOST", 0 },
	{ "exhaust-03", exhaust_03, 1, "SECONDS", 0 },
	{ "exhaust-04", exhaust_04, 1, "MOST", 0 },
	{ "exhaust-04-bomb", exhaust_04_bomb, 2, "MOST SECONDS", 0 },
	{ "exhaust-05", exhaust_05, 1, "MIB", 0 },
	{ "exhaust-05-memfd", exhaust_05_memfd, 1, "MIB", 0 },
	{ "exhaust-06", exhaust_06, 1, "MIB", 120 },
	{ "exhaust-06-timers", exhaust_06_timers, 1, "MOST", 0 },
	{ "exhaust-06-inotify-hog", exhaust_06_inotify_hog, 1, "SECONDS", 0 },
	{ "exhaust-06-inotify-need", exhaust_06_inotify_need, 1, "COUNT", 0 },
	{ 0 },
};
