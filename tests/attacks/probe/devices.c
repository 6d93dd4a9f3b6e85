/* escape-13, device nodes and the folder they live in; escape-21, calls at random. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* Device 1:3 is /dev/null, so that a node that can be opened does no harm; 0:0 is an overlay whiteout. */
static int escape_13(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const places[] = { "/workspace", "/tmp", "/dev/shm", "/run", "/var/tmp", "/dev", "." };
	const struct {
		const char *name;
		mode_t mode;
		dev_t dev;
	} kinds[] = { { "null", S_IFCHR, makedev(1, 3) }, { "whiteout", S_IFCHR, makedev(0, 0) },
		      { "loop disk", S_IFBLK, makedev(7, 0) } };
	for (size_t p = 0; p < COUNT(places); p++)
		for (size_t k = 0; k < COUNT(kinds); k++) {
			char path[128];
			snprintf(path, sizeof path, "%s/probe-node-%d", places[p], getpid());
			if (mknod(path, kinds[k].mode | 0600, kinds[k].dev) < 0) {
				held("mknod %s in %s: %s", kinds[k].name, places[p], err(errno));
				continue;
			}
			int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
			broke("mknod %s in %s: made, opening it: %s", kinds[k].name, places[p], fd < 0 ? err(errno) : "worked");
			unlink(path);
		}
	return verdict();
}

/* Numbers, not names: a node called null can be anything. */
static bool harmless_device(mode_t mode, dev_t dev)
{
	if (!S_ISCHR(mode))
		return false;
	if (major(dev) == 1)
		return minor(dev) == 3 || minor(dev) == 5 || minor(dev) == 7 || minor(dev) == 8 || minor(dev) == 9;
	/* a terminal, where one was asked for */
	return major(dev) == 136 || (major(dev) == 5 && (minor(dev) == 0 || minor(dev) == 2));
}

static int escape_13_dev(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const usual[] = { "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "console",
					     "shm", "mqueue", "fd", "stdin", "stdout", "stderr", "core" };
	DIR *d = opendir("/dev");
	struct dirent *e;
	if (!d) {
		cannot("/dev: %s", err(errno));
		return verdict();
	}
	while ((e = readdir(d))) {
		struct stat st;
		bool known = e->d_name[0] == '.';
		for (size_t i = 0; i < COUNT(usual); i++)
			known |= !strcmp(e->d_name, usual[i]);
		if (!known)
			broke("/dev/%s is there", e->d_name);
		else if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))) {
			if (harmless_device(st.st_mode, st.st_rdev))
				held("/dev/%s is %u:%u", e->d_name, major(st.st_rdev), minor(st.st_rdev));
			else
				broke("/dev/%s is %u:%u", e->d_name, major(st.st_rdev), minor(st.st_rdev));
		}
	}
	closedir(d);
	return verdict();
}

/* Nodes that a machine lets anyone open: with the devices cgroup even these are EPERM. Needs the machine's /dev. */
static int escape_13_cgroup(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const open_to_all[] = { "/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/vsock", "/dev/vhost-vsock",
						   "/dev/autofs", "/dev/userfaultfd", "/dev/rfkill", "/dev/udmabuf" };
	int asked = 0;
	for (size_t i = 0; i < COUNT(open_to_all); i++) {
		int fd = open(open_to_all[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		int e = fd < 0 ? errno : 0;
		if (fd >= 0)
			close(fd);
		if (e == ENOENT || e == EACCES) /* absent, or its owner says no: the cgroup was not asked */
			continue;
		asked++;
		if (e == EPERM)
			held("%s: EPERM", open_to_all[i]);
		else
			broke("%s: the driver was reached: %s", open_to_all[i], err(e));
	}
	if (!asked)
		cannot("no device here that anyone may open: leave out minimal_dev");
	return verdict();
}

/* xorshift: the same seed tries the same calls, so that a find can be repeated. */
static uint64_t state;
static uint64_t random_number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static long random_argument(void)
{
	static char scratch[4096];
	static const long odd[] = { 0, 1, -1, 2, 3, 4096, 0x7fffffff, -4096, 1L << 32, 1L << 62, 0x541b, 0x10000000 };
	switch (random_number() % 4) {
	case 0: return odd[random_number() % COUNT(odd)];
	case 1: return (long)(uintptr_t)(scratch + random_number() % 4000);
	case 2: return (long)(random_number() % 64);
	default: return (long)random_number();
	}
}

static bool spares_others(long number, const long *a)
{
	/* Whatever happens to this child is fine; signals and limits for others would only hide what is looked for. */
	switch (number) {
	case SYS_kill: case SYS_tgkill: case SYS_tkill: case SYS_rt_sigqueueinfo: case SYS_rt_tgsigqueueinfo:
	case SYS_setpriority: case SYS_prlimit64: case SYS_sched_setaffinity: case SYS_sched_setscheduler:
	case SYS_sched_setparam: case SYS_sched_setattr: case SYS_ioprio_set: case SYS_setpgid:
	case 424: /* pidfd_send_signal */
		return false;
	case SYS_clone: case SYS_fork: case SYS_vfork: case 435: /* grows without end */
		return false;
	case SYS_fcntl: /* F_SETOWN sends signals */
		return a[1] != F_SETOWN && a[1] != F_SETSIG;
	case SYS_pause: case SYS_rt_sigsuspend: case SYS_nanosleep: case SYS_clock_nanosleep: case SYS_exit: case SYS_exit_group:
		return false;
	default: return true;
	}
}

static void fuzz_child(uint64_t seed)
{
	state = seed | 1;
	/* Own files to damage, own output gone, own time; nothing that someone else left open. */
	syscall(436, 3, ~0U, 0); /* close_range */
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	setpgid(0, 0);
	alarm(2);
	for (int i = 0; i < 2000; i++) {
		long number = (long)(random_number() % 480), a[6];
		for (int k = 0; k < 6; k++)
			a[k] = random_argument();
		if (spares_others(number, a))
			syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	_exit(0);
}

/* A random call may wait for ever, and may have taken the child's own alarm away. True if it ended by a signal. */
static bool end_within(pid_t pid, double seconds)
{
	int status = 0;
	double end = now() + seconds;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now() > end)
			kill(pid, SIGKILL);
		usleep(500);
	}
	return WIFSIGNALED(status);
}

/* The host reads its log afterwards; here it only has to end with this process alive. */
static int escape_21(int argc, char **argv)
{
	(void)argc;
	uint64_t seed = (uint64_t)number(argv[0]) * 0x9e3779b97f4a7c15u;
	long seconds = number(argv[1]);
	alarm((unsigned)seconds + 30);
	/* On a bare host, and as root, random calls would do harm: the filter must be there. */
	char status[8192];
	if (geteuid() == 0 || slurp("/proc/self/status", status, sizeof status) < 0 || !strstr(status, "Seccomp:\t2")) {
		cannot("runs only under a filter and not as root");
		return verdict();
	}
	long children = 0, killed = 0;
	for (double end = now() + seconds; now() < end; children++) {
		pid_t pid = fork();
		if (pid < 0) {
			usleep(10000); /* the limit on processes: earlier children are being reaped */
			continue;
		}
		if (pid == 0)
			fuzz_child(seed + children);
		killed += end_within(pid, 0.25);
	}
	held("%ld children, %ld of them killed, this process alive", children, killed);
	return verdict();
}

const struct probe devices_cases[] = {
	{ "escape-13", escape_13, 0, "", 0 },
	{ "escape-13-dev", escape_13_dev, 0, "", 0 },
	{ "escape-13-cgroup", escape_13_cgroup, 0, "", 0 },
	{ "escape-21", escape_21, 2, "SEED SECONDS", 0 },
	{ 0 },
};
