/* Gaining rights: setuid files, init, and the channel that carries the exit status. */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_option(const char *list, const char *option)
{
	size_t n = strlen(option);
	for (const char *p = list; (p = strstr(p, option)); p += n)
		if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == 0))
			return true;
	return false;
}

/* nosuid and nodev on every mount; where devices are, nodev cannot be, so nothing may be added there. */
static int mountflags(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	char line[4096], where[2048], options[512];
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	if (!mounts) {
		cannot("mountinfo: %s", err(errno));
		return verdict();
	}
	while (fgets(line, sizeof line, mounts)) {
		struct stat st;
		if (sscanf(line, "%*s %*s %*s %*s %2047s %511s", where, options) != 2)
			continue;
		/* A single device bound in has to be without nodev; devpts is devices only. */
		bool devices = (lstat(where, &st) == 0 && S_ISCHR(st.st_mode)) || strstr(line, " - devpts ");
		/* /dev itself, and what it covers of /proc: the same filesystem, which cannot be written. */
		struct stat dev;
		bool of_dev = stat("/dev", &dev) == 0 && stat(where, &st) == 0 && (dev.st_dev == st.st_dev || S_ISCHR(st.st_mode));
		devices |= of_dev && has_option(options, "ro");
		if (!has_option(options, "nosuid"))
			broke("%s is not nosuid: %s", where, options);
		else if (!devices && !has_option(options, "nodev"))
			broke("%s is not nodev: %s", where, options);
		else
			held("%s: %s", where, options);
	}
	fclose(mounts);
	return verdict();
}

static int run_gained(void *path)
{
	char *const args[] = { path, "--gained", NULL }, *const none[] = { NULL };
	execve(path, args, none);
	return SETUP;
}

/* Each file is a copy of this program that the host made setuid, setgid, or gave a capability. */
static int suid(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		int e = how_it_ended(in_child(run_gained, argv[i]));
		if (e == HELD)
			held("%s gained nothing", argv[i]);
		else if (e == BROKE)
			broke("%s gained rights", argv[i]);
		else
			cannot("%s did not run: %d", argv[i], e);
	}
	return verdict();
}

/*
 * A descriptor that can be written is a way to forge a status. Nothing is written and no flag is changed: what is
 * behind it belongs to whoever started us, and where the wall is missing that must not be disturbed.
 */
static int priv_04(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct rlimit l;
	int found = 0, most = getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < 65536 ? (int)l.rlim_cur : 65536;
	for (int fd = 3; fd < most; fd++) {
		int flags = fcntl(fd, F_GETFL);
		if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
			continue;
		broke("descriptor %d is open for writing", fd);
		found++;
	}
	if (!found)
		held("nothing but stdio to write to");
	return verdict();
}

/* Signal 0 asks for permission only. Init has another uid, so the answer is no. */
static int signal_init(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	must_fail("signal init", kill(1, 0));
	struct rlimit l;
	must_fail("read init's limits", prlimit(1, RLIMIT_NOFILE, NULL, &l));
	return verdict();
}

/* What needs the right to trace init. Nothing is read or written: being able to open is enough. */
static int init_files(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const struct {
		const char *path;
		int flags;
	} rows[] = {
		{ "/proc/1/mem", O_RDWR }, { "/proc/1/mem", O_RDONLY }, { "/proc/1/environ", O_RDONLY },
		{ "/proc/1/maps", O_RDONLY }, { "/proc/1/fd", O_RDONLY | O_DIRECTORY }, { "/proc/1/fd/0", O_PATH },
		{ "/proc/1/root", O_PATH | O_DIRECTORY }, { "/proc/1/cwd", O_PATH | O_DIRECTORY }, { "/proc/1/exe", O_RDONLY },
		{ "/proc/1/ns/mnt", O_RDONLY }, { "/proc/1/auxv", O_RDONLY }, { "/proc/1/stack", O_RDONLY },
		{ "/proc/1/syscall", O_RDONLY }, { "/proc/1/pagemap", O_RDONLY },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		int fd = open(rows[i].path, rows[i].flags | O_CLOEXEC);
		must_fail(rows[i].path, fd);
		if (fd >= 0)
			close(fd);
	}
	return verdict();
}

/*
 * The files of a process that may not be dumped belong to the machine's root, which has no number in here. Visible
 * from inside only where hidepid is left out.
 */
static int dumpable(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct stat folder, status;
	if (stat("/proc/1", &folder) < 0 || stat("/proc/1/status", &status) < 0) {
		held("init's files cannot be seen: %s", err(errno));
		return verdict();
	}
	/* The folder keeps init's own uid whatever happens, so the two differ exactly if it is not dumpable. */
	if (folder.st_uid == status.st_uid)
		broke("init can be dumped: its files belong to %u", status.st_uid);
	else
		held("init cannot be dumped: its files belong to %u, itself to %u", status.st_uid, folder.st_uid);
	return verdict();
}

const struct probe priv_cases[] = {
	{ "priv-01-mountflags", mountflags, 0, "", 0 },
	{ "priv-01-suid", suid, 1, "COPY...", 0 },
	{ "priv-04", priv_04, 0, "", 0 },
	{ "priv-05-signal", signal_init, 0, "", 0 },
	{ "priv-05-files", init_files, 0, "", 0 },
	{ "priv-05-dumpable", dumpable, 0, "", 0 },
	{ 0 },
};
