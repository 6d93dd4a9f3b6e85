/* priv-02: what a process can see of its own walls. One property each, so that one left-out step flips one probe. */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The text after "Name:" in a status file; NULL if it cannot be had. */
static const char *status_field(const char *path, const char *name)
{
	static char text[16384];
	char key[64];
	if (slurp(path, text, sizeof text) < 0) {
		cannot("%s: %s", path, err(errno));
		return NULL;
	}
	snprintf(key, sizeof key, "\n%s:", name);
	char *at = strstr(text, key);
	if (!at) {
		cannot("%s has no %s", path, name);
		return NULL;
	}
	at += strlen(key);
	at[strcspn(at, "\n")] = 0;
	return at + strspn(at, " \t");
}

/* Calls f with every extent of a map: inside, outside, count. */
static void each_extent(const char *path, void (*f)(const char *, unsigned, unsigned, unsigned, void *), void *arg)
{
	unsigned in, out, count;
	FILE *map = fopen(path, "re");
	if (!map) {
		cannot("%s: %s", path, err(errno));
		return;
	}
	while (fscanf(map, "%u %u %u", &in, &out, &count) == 3)
		f(path, in, out, count, arg);
	fclose(map);
}

static void not_whole(const char *path, unsigned in, unsigned out, unsigned count, void *arg)
{
	(void)arg;
	if (in == out && count > 1)
		broke("%s: %u %u %u: ids are the host's own", path, in, out, count);
	else
		held("%s: %u %u %u", path, in, out, count);
}

static int userns(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	each_extent("/proc/self/uid_map", not_whole, NULL);
	each_extent("/proc/self/gid_map", not_whole, NULL);
	return verdict();
}

struct range {
	unsigned long first, count;
};

static void in_range(const char *path, unsigned in, unsigned out, unsigned count, void *arg)
{
	const struct range *r = arg;
	if (out < r->first || (unsigned long)out + count > r->first + r->count)
		broke("%s: %u %u %u: outside the range set aside", path, in, out, count);
	else
		held("%s: %u %u %u", path, in, out, count);
}

static int hostuid(int argc, char **argv)
{
	(void)argc;
	struct range r = { number(argv[0]), number(argv[1]) };
	each_extent("/proc/self/uid_map", in_range, &r);
	each_extent("/proc/self/gid_map", in_range, &r);
	return verdict();
}

static int caps(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	for (size_t i = 0; i < COUNT(sets); i++) {
		const char *text = status_field("/proc/self/status", sets[i]);
		if (!text)
			continue;
		if (strtoull(text, NULL, 16))
			broke("%s is %s", sets[i], text);
		else
			held("%s is empty", sets[i]);
	}
	return verdict();
}

static int securebits(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const struct {
		const char *name;
		int bit;
	} locks[] = { { "noroot", 1 }, { "no_setuid_fixup", 3 }, { "keep_caps", 5 }, { "no_cap_ambient_raise", 7 } };
	int bits = prctl(PR_GET_SECUREBITS);
	if (bits < 0) {
		cannot("PR_GET_SECUREBITS: %s", err(errno));
		return verdict();
	}
	for (size_t i = 0; i < COUNT(locks); i++)
		if (bits & (1 << locks[i].bit))
			held("%s is locked", locks[i].name);
		else
			broke("%s is not locked (securebits %#x)", locks[i].name, bits);
	return verdict();
}

static int nnp(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	int on = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	if (on == 1)
		held("no_new_privs is set");
	else if (on == 0)
		broke("no_new_privs is not set");
	else
		cannot("PR_GET_NO_NEW_PRIVS: %s", err(errno));
	return verdict();
}

static int filter_of(const char *path)
{
	const char *mode = status_field(path, "Seccomp");
	if (mode && !strcmp(mode, "2"))
		held("%s: a filter is in force", path);
	else if (mode)
		broke("%s: Seccomp is %s", path, mode);
	return verdict();
}

static int seccomp(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return filter_of("/proc/self/status");
}

/* Visible from inside only where hidepid is left out. */
static int initseccomp(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return filter_of("/proc/1/status");
}

static int groups(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	gid_t list[256];
	int n = getgroups(256, list);
	if (n < 0)
		cannot("getgroups: %s", err(errno));
	else if (n == 0)
		held("no supplementary group");
	for (int i = 0; i < n; i++)
		broke("supplementary group %u", list[i]);
	return verdict();
}

/* A session of someone outside shows as 0, init's as 1. The harness must exec the probe itself, not a shell. */
static int session(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	pid_t sid = getsid(0), me = getpid();
	if (sid == me && getpgrp() == me)
		held("leads its own session");
	else
		broke("session %d, group %d, process %d", sid, getpgrp(), me);
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	must_fail("open the controlling terminal", tty);
	return verdict();
}

static int oomscore(int argc, char **argv)
{
	char text[64];
	long want = argc > 0 ? number(argv[0]) : 1000;
	if (slurp("/proc/self/oom_score_adj", text, sizeof text) < 0)
		cannot("oom_score_adj: %s", err(errno));
	else if (atol(text) == want)
		held("oom_score_adj is %ld", want);
	else
		broke("oom_score_adj is %ld: others would be killed first", atol(text));
	return verdict();
}

static int limits(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	/* The hard limit counts: the soft one can be raised to it. Numbers are the most that is reasonable. */
	static const struct {
		const char *name;
		int what;
		rlim_t most;
	} rows[] = {
		{ "NOFILE", RLIMIT_NOFILE, 4096 }, { "MSGQUEUE", RLIMIT_MSGQUEUE, 0 }, { "RTPRIO", RLIMIT_RTPRIO, 0 },
		{ "MEMLOCK", RLIMIT_MEMLOCK, 64 << 20 }, { "SIGPENDING", RLIMIT_SIGPENDING, 16384 },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rlimit l;
		if (getrlimit(rows[i].what, &l) < 0)
			cannot("%s: %s", rows[i].name, err(errno));
		else if (l.rlim_max <= rows[i].most)
			held("%s is %llu", rows[i].name, (unsigned long long)l.rlim_max);
		else
			broke("%s is %llu", rows[i].name, (unsigned long long)l.rlim_max);
	}
	return verdict();
}

/* mkdir says EROFS before it looks at owners, so this tells the mount from the permissions on it. */
static int rootro(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const folders[] = { "/", "/etc", "/usr", "/usr/bin", "/bin", "/lib", "/var", "/home", "/opt", "/root" };
	for (size_t i = 0; i < COUNT(folders); i++) {
		char path[128];
		struct stat st;
		if (stat(folders[i], &st) < 0)
			continue;
		snprintf(path, sizeof path, "%s/probe-%d", folders[i], getpid());
		int rc = mkdir(path, 0700), e = rc < 0 ? errno : 0;
		if (rc == 0)
			rmdir(path);
		if (e == EROFS)
			held("%s: EROFS", folders[i]);
		else
			broke("%s is not read-only: %s", folders[i], err(e));
	}
	return verdict();
}

/* Made for this: its mode and its mount let anyone write, so only Landlock says no. */
static int landlock_canary(int argc, char **argv)
{
	(void)argc;
	int fd = open(argv[0], O_WRONLY | O_CLOEXEC), e = fd < 0 ? errno : 0;
	if (e == EACCES)
		held("open %s for writing: EACCES", argv[0]);
	else if (e)
		cannot("open %s for writing: %s", argv[0], err(e));
	else
		broke("open %s for writing: worked", argv[0]);
	return verdict();
}

static int hidepid(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct stat st;
	must_fail("stat /proc/1", stat("/proc/1", &st));
	must_fail("open /proc/1/status", open("/proc/1/status", O_RDONLY | O_CLOEXEC));
	return verdict();
}

/* Signal 0 only asks. The host passes the number of a process of its own, larger than any in here. */
static int pidns(int argc, char **argv)
{
	(void)argc;
	long pid = number(argv[0]);
	int rc = kill((pid_t)pid, 0), e = rc < 0 ? errno : 0;
	if (e == ESRCH)
		held("process %ld of the host: ESRCH", pid);
	else
		broke("process %ld of the host is known here: %s", pid, err(e));
	return verdict();
}

const struct probe posture_cases[] = {
	{ "priv-01-nnp", nnp, 0, "", 0 },
	{ "priv-02-userns", userns, 0, "", 0 },
	{ "priv-02-hostuid", hostuid, 2, "FIRST COUNT", 0 },
	{ "priv-02-caps", caps, 0, "", 0 },
	{ "priv-02-securebits", securebits, 0, "", 0 },
	{ "priv-02-seccomp", seccomp, 0, "", 0 },
	{ "priv-02-initseccomp", initseccomp, 0, "", 0 },
	{ "priv-02-session", session, 0, "", 0 },
	{ "priv-02-oomscore", oomscore, 0, "[SCORE]", 0 },
	{ "priv-02-rlimits", limits, 0, "", 0 },
	{ "priv-02-rootro", rootro, 0, "", 0 },
	{ "priv-02-landlock", landlock_canary, 1, "CANARY", 0 },
	{ "priv-02-hidepid", hidepid, 0, "", 0 },
	{ "priv-02-pidns", pidns, 1, "HOST_PID", 0 },
	{ "priv-03", groups, 0, "", 0 },
	{ 0 },
};
