/* What can be learnt about the host, the server and other sandboxes. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char **environ;

static void seek(const char *path, const char *a, const char *b)
{
	int found = file_has_pair(path, a, b);
	if (found == 1)
		broke("nonce in %s", path);
	else
		held("%s: %s", path, found < 0 ? err(errno) : "no nonce");
}

/* The nonce was planted in the server's environment. */
static int leak_01_env(int argc, char **argv)
{
	(void)argc;
	int found = 0;
	for (char **e = environ; *e; e++)
		if (pair_in(*e, strlen(*e), argv[0], argv[1])) {
			broke("nonce in the variable %.*s", (int)strcspn(*e, "="), *e);
			found++;
		}
	if (!found)
		held("no nonce in the environment");
	for (int pid = 0; pid <= 512; pid++) {
		char path[64];
		snprintf(path, sizeof path, pid ? "/proc/%d/environ" : "/proc/self/environ", pid);
		if (file_has_pair(path, argv[0], argv[1]) == 1)
			broke("nonce in %s", path);
	}
	return verdict();
}

/* Names that nobody asked for are a leak as well; the harness passes those that it set. */
static int leak_01_names(int argc, char **argv)
{
	static const char *const usual[] = { "HOME", "USER", "LOGNAME", "PATH", "LANG", "TZ", "TERM", "HOSTNAME", "PWD", "SHELL", "TMPDIR" };
	for (char **e = environ; *e; e++) {
		int n = (int)strcspn(*e, "=");
		bool known = !strncmp(*e, "CYNODE_", 7);
		for (size_t i = 0; i < COUNT(usual) + argc; i++) {
			const char *name = i < COUNT(usual) ? usual[i] : argv[i - COUNT(usual)];
			known |= (int)strlen(name) == n && !strncmp(name, *e, n);
		}
		if (!known)
			broke("variable %.*s", n, *e);
	}
	held("the names in the environment were looked at");
	return verdict();
}

/* Init is a copy of the launcher: the nonce stands in the launcher's command line. */
static int leak_01_cmdline(int argc, char **argv)
{
	(void)argc;
	seek("/proc/1/cmdline", argv[0], argv[1]);
	seek("/proc/1/comm", argv[0], argv[1]);
	for (int pid = 2; pid <= 512; pid++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
		if (file_has_pair(path, argv[0], argv[1]) == 1)
			broke("nonce in %s", path);
	}
	return verdict();
}

static int leak_01_files(int argc, char **argv)
{
	(void)argc;
	static const char *const folders[] = { "/etc", "/run", "/tmp", "/workspace", "/var", "/home", "/root", "/opt", "/srv", "/mnt", "/dev/shm" };
	int budget = 100000;
	for (size_t i = 0; i < COUNT(folders); i++)
		if (!tree_has_pair(folders[i], argv[0], argv[1], 6, &budget))
			held("no nonce below %s", folders[i]);
	return verdict();
}

/* Our own pages, which the kernel or the launcher may have filled; init's, if they can be had. */
static int leak_01_memory(int argc, char **argv)
{
	(void)argc;
	static const char *const who[] = { "self", "1" };
	static char page[1 << 16];
	for (size_t w = 0; w < COUNT(who); w++) {
		char path[64], line[512];
		snprintf(path, sizeof path, "/proc/%s/mem", who[w]);
		int mem = open(path, O_RDONLY | O_CLOEXEC);
		snprintf(path, sizeof path, "/proc/%s/maps", who[w]);
		FILE *maps = mem < 0 ? NULL : fopen(path, "re");
		if (!maps) {
			held("memory of %s: %s", who[w], err(errno));
			continue;
		}
		unsigned long from, to;
		int found = 0;
		while (fgets(line, sizeof line, maps)) {
			if (sscanf(line, "%lx-%lx", &from, &to) != 2 || to - from > (64UL << 20))
				continue;
			for (; from < to; from += sizeof page - 256) {
				/* The buffer must not find itself. */
				if (from < (unsigned long)page + sizeof page && from + sizeof page > (unsigned long)page)
					continue;
				ssize_t n = pread(mem, page, to - from < sizeof page ? to - from : sizeof page, (off_t)from);
				found += n > 0 && pair_in(page, n, argv[0], argv[1]);
			}
		}
		fclose(maps);
		close(mem);
		if (found)
			broke("nonce in the memory of %s", who[w]);
		else
			held("no nonce in the memory of %s", who[w]);
	}
	return verdict();
}

static const char *const shared_places[] = { "/workspace", "/tmp", "/dev/shm", "/run", "/var/tmp" };

/* First tenant: leaves its secret wherever it can. Always "held"; leak-02-seek gives the verdict. */
static int leak_02_plant(int argc, char **argv)
{
	(void)argc;
	int planted = 0;
	for (size_t i = 0; i < COUNT(shared_places); i++) {
		char path[256];
		snprintf(path, sizeof path, "%s/.left-behind", shared_places[i]);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0)
			continue;
		planted += dprintf(fd, "%s%s\n", argv[0], argv[1]) > 0;
		fchmod(fd, 0666);
		close(fd);
	}
	if (planted)
		held("planted in %d places", planted);
	else
		cannot("no place to plant in");
	return verdict();
}

static int leak_02_seek(int argc, char **argv)
{
	(void)argc;
	int budget = 100000;
	for (size_t i = 0; i < COUNT(shared_places); i++)
		if (!tree_has_pair(shared_places[i], argv[0], argv[1], 6, &budget))
			held("no nonce below %s", shared_places[i]);
	return verdict();
}

/* Masked: not there, not readable, or empty. */
static void masked_file(const char *path)
{
	char text[256];
	ssize_t n = slurp(path, text, sizeof text);
	if (n > 0)
		broke("%s can be read", path);
	else
		held("%s: %s", path, n < 0 ? err(errno) : "empty");
}

static void masked_folder(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	if (!d) {
		held("%s: %s", path, err(errno));
		return;
	}
	do
		e = readdir(d);
	while (e && e->d_name[0] == '.');
	if (e)
		broke("%s has %s", path, e->d_name);
	else
		held("%s: empty", path);
	closedir(d);
}

static void masked_all(const char *const *names, size_t count, void (*look)(const char *))
{
	for (size_t i = 0; i < count; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/%s", names[i]);
		look(path);
	}
}

static int leak_03_files(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const files[] = { "kcore", "keys", "kallsyms", "kmsg", "sysrq-trigger", "sched_debug", "timer_list", "slabinfo",
					     "vmallocinfo", "iomem", "ioports", "modules", "interrupts", "config.gz", "cmdline" };
	masked_all(files, COUNT(files), masked_file);
	return verdict();
}

static int leak_03_folders(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const folders[] = { "scsi", "acpi", "asound", "bus", "fs", "irq", "sys" };
	masked_all(folders, COUNT(folders), masked_folder);
	return verdict();
}

/* "And the like": not named in the threat list, so on their own; /proc/locks shows locks of others. */
static int leak_03_more(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const files[] = { "key-users", "kpagecount", "kpageflags", "latency_stats", "pagetypeinfo", "locks" };
	masked_all(files, COUNT(files), masked_file);
	return verdict();
}

/* Who this machine is. The machine's own id comes in halves, as an image may have an id of its own. */
static int leak_03_identity(int argc, char **argv)
{
	static const char *const files[] = { "/sys/class/dmi/id/product_name", "/sys/class/dmi/id/product_uuid", "/sys/kernel/notes",
					     "/sys/hypervisor/uuid", "/sys/firmware/dmi/tables/DMI", "/sys/kernel/vmcoreinfo", "/dev/kmsg",
					     "/dev/mem", "/proc/device-tree/model" };
	for (size_t i = 0; i < COUNT(files); i++)
		masked_file(files[i]);
	if (argc >= 2) {
		seek("/etc/machine-id", argv[0], argv[1]);
		seek("/var/lib/dbus/machine-id", argv[0], argv[1]);
		seek("/proc/sys/kernel/random/boot_id", argv[0], argv[1]);
	}
	return verdict();
}

enum { KEYCTL_SEARCH_ = 10, KEYCTL_READ_ = 11, SESSION_KEYRING = -3, USER_KEYRING = -4, USER_SESSION_KEYRING = -5 };

/* A "user" key that the host put into its session keyring under this name. */
static int leak_05(int argc, char **argv)
{
	(void)argc;
	static const int rings[] = { SESSION_KEYRING, USER_KEYRING, USER_SESSION_KEYRING };
	for (size_t i = 0; i < COUNT(rings); i++) {
		char secret[256];
		long key = syscall(SYS_keyctl, KEYCTL_SEARCH_, rings[i], "user", argv[0], 0);
		if (key < 0) {
			held("keyring %d: %s", rings[i], err(errno));
			continue;
		}
		long n = syscall(SYS_keyctl, KEYCTL_READ_, key, secret, sizeof secret);
		broke("keyring %d has the key, reading it: %s", rings[i], n < 0 ? err(errno) : "worked");
	}
	return verdict();
}

/* Host paths and ids of other jobs, which the host passes, in what a process can read about itself. */
static int leak_06_strings(int argc, char **argv)
{
	static const char *const files[] = { "mountinfo", "mounts", "mountstats", "cgroup", "maps", "cpuset", "cmdline", "uid_map" };
	static const char *const links[] = { "exe", "cwd", "root", "fd/0", "fd/1", "fd/2" };
	static char text[1 << 20];
	for (size_t i = 0; i < COUNT(files) + COUNT(links); i++) {
		bool file = i < COUNT(files);
		const char *name = file ? files[i] : links[i - COUNT(files)];
		char path[64];
		snprintf(path, sizeof path, "/proc/self/%s", name);
		ssize_t n = file ? slurp(path, text, sizeof text) : readlink(path, text, sizeof text - 1);
		if (n < 0) {
			note("%s: %s", path, err(errno));
			continue;
		}
		text[n] = 0;
		if (file && !strcmp(name, "cmdline"))
			n = (ssize_t)strlen(text); /* the strings to look for stand in the rest of it */
		int found = 0;
		for (int a = 0; a < argc; a++)
			if (memmem(text, n, argv[a], strlen(argv[a]))) {
				broke("%s has %s", path, argv[a]);
				found++;
			}
		if (!found)
			held("%s has none of them", path);
	}
	return verdict();
}

/* Seen from the sandbox's own cgroup namespace a path is "/" or a step to a neighbouring leaf, never a way down from the top. */
static int leak_06_cgroup(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	char line[4096];
	FILE *f = fopen("/proc/self/cgroup", "re");
	if (!f) {
		cannot("/proc/self/cgroup: %s", err(errno));
		return verdict();
	}
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		char *path = strchr(line, ':');
		path = path ? strchr(path + 1, ':') : NULL;
		int names = 0;
		bool up = path && !strncmp(path + 1, "/..", 3);
		for (char *part = path ? strtok(strdupa(path + 1), "/") : NULL; part; part = strtok(NULL, "/"))
			names += strcmp(part, "..") != 0;
		if (names > (up ? 1 : 0))
			broke("%s", line);
		else
			held("%s", line);
	}
	fclose(f);
	return verdict();
}

static int leak_06_hostname(int argc, char **argv)
{
	(void)argc;
	struct utsname u;
	if (uname(&u) < 0)
		cannot("uname: %s", err(errno));
	else if (!strcmp(u.nodename, argv[0]))
		broke("the name of the machine is the host's: %s", u.nodename);
	else
		held("the name of the machine is %s", u.nodename);
	return verdict();
}

const struct probe leak_cases[] = {
	{ "leak-01-env", leak_01_env, 2, "NONCE_A NONCE_B", 0 },
	{ "leak-01-names", leak_01_names, 0, "[NAME...]", 0 },
	{ "leak-01-cmdline", leak_01_cmdline, 2, "NONCE_A NONCE_B", 0 },
	{ "leak-01-files", leak_01_files, 2, "NONCE_A NONCE_B", 0 },
	{ "leak-01-memory", leak_01_memory, 2, "NONCE_A NONCE_B", 0 },
	{ "leak-02-plant", leak_02_plant, 2, "NONCE_A NONCE_B", 0 },
	{ "leak-02-seek", leak_02_seek, 2, "NONCE_A NONCE_B", 0 },
	{ "leak-03-files", leak_03_files, 0, "", 0 },
	{ "leak-03-folders", leak_03_folders, 0, "", 0 },
	{ "leak-03-more", leak_03_more, 0, "", 0 },
	{ "leak-03-identity", leak_03_identity, 0, "[ID_A ID_B]", 0 },
	{ "leak-04", escape_01_fds, 0, "[NONCE_A NONCE_B]", 0 },
	{ "leak-05", leak_05, 1, "DESCRIPTION", 0 },
	{ "leak-06-strings", leak_06_strings, 1, "STRING...", 0 },
	{ "leak-06-cgroup", leak_06_cgroup, 0, "", 0 },
	{ "leak-06-hostname", leak_06_hostname, 1, "HOST_NAME", 0 },
	{ 0 },
};
