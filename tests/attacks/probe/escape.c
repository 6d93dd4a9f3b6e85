/* Ways out that are not a forbidden system call: files, descriptors, devices, sockets, and what nobody thought of. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void seek_nonce(const char *path, const char *a, const char *b)
{
	int found = file_has_pair(path, a, b);
	if (found == 1)
		broke("%s has the host's nonce", path);
	else
		held("%s: %s", path, found < 0 ? err(errno) : "another file");
}

/* Nothing but stdin, stdout and stderr may be open; the nonce says so even if a number is reused. */
int escape_01_fds(int argc, char **argv)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
		cannot("getrlimit: %s", err(errno));
		return verdict();
	}
	int most = limit.rlim_cur < 65536 ? (int)limit.rlim_cur : 65536;
	int open_ones = 0;
	for (int fd = 3; fd < most; fd++) {
		char link[64], target[256] = "?", text[4096];
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		open_ones++;
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		ssize_t n = readlink(link, target, sizeof target - 1);
		if (n > 0)
			target[n] = 0;
		/* Read at a place of our own, from regular files only: pipes and sockets belong to whoever left them open. */
		struct stat st;
		n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, text, sizeof text, 0) : 0;
		bool nonce = argc >= 2 && n > 0 && pair_in(text, n, argv[0], argv[1]);
		broke("descriptor %d is open: %s%s", fd, target, nonce ? ", with the host's nonce" : "");
	}
	if (!open_ones)
		held("no descriptor from 3 to %d", most - 1);
	return verdict();
}

/* Looks for a host file through the root and cwd links of every process that has a number here. */
static int escape_01_procroot(int argc, char **argv)
{
	(void)argc;
	static const char *const ways[] = { "root", "root/..", "root/../..", "cwd/../../../.." };
	int tried = 0, found = 0;
	for (int pid = 0; pid <= 512; pid++)
		for (size_t w = 0; w < COUNT(ways); w++) {
			char who[16] = "self", path[PATH_MAX];
			if (pid)
				snprintf(who, sizeof who, "%d", pid);
			snprintf(path, sizeof path, "/proc/%s/%s%s", who, ways[w], argv[0]);
			tried++;
			if (file_has_pair(path, argv[1], argv[2]) == 1) {
				broke("%s has the host's nonce", path);
				found++;
			}
		}
	if (!found)
		held("%d paths through /proc lead nowhere", tried);
	return verdict();
}

/* Looks for a host file above the root, and below every mount, which is where an old root would be left. */
static int escape_01_dotdot(int argc, char **argv)
{
	(void)argc;
	static const char *const above[] = {
		"", "/..", "/../..", "../../../../../../../..", "/proc/self/root/..", "/proc/self/cwd/../../..",
		"/.old", "/.oldroot", "/.old_root", "/oldroot", "/old_root", "/.pivot_root", "/mnt", "/host", "/tmp/..",
	};
	char path[PATH_MAX + 256], line[4096], where[2048];
	for (size_t i = 0; i < COUNT(above); i++) {
		snprintf(path, sizeof path, "%s%s", above[i], argv[0]);
		seek_nonce(path, argv[1], argv[2]);
	}
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	if (!mounts) {
		note("mountinfo: %s", err(errno));
		return verdict();
	}
	while (fgets(line, sizeof line, mounts))
		if (sscanf(line, "%*s %*s %*s %*s %2047s", where) == 1) {
			snprintf(path, sizeof path, "%s/..%s", where, argv[0]);
			seek_nonce(path, argv[1], argv[2]);
			snprintf(path, sizeof path, "%s%s", where, argv[0]);
			seek_nonce(path, argv[1], argv[2]);
		}
	fclose(mounts);
	return verdict();
}

/* One namespace: is it the host's? The host passes what it reads from its own link. */
static int escape_02_same(int argc, char **argv)
{
	char link[64], here[128];
	if (argc % 2) {
		cannot("arguments come in pairs");
		return verdict();
	}
	for (int i = 0; i < argc; i += 2) {
		snprintf(link, sizeof link, "/proc/self/ns/%s", argv[i]);
		ssize_t n = readlink(link, here, sizeof here - 1);
		if (n < 0) {
			cannot("%s: %s", link, err(errno));
			continue;
		}
		here[n] = 0;
		if (strcmp(here, argv[i + 1]))
			held("%s differs from the host's", here);
		else
			broke("%s is the host's", here);
	}
	return verdict();
}

/* A working folder outside the root shows as "(unreachable)", and dots lead out of it. */
static int escape_06_cwd(int argc, char **argv)
{
	(void)argc;
	char cwd[PATH_MAX], path[PATH_MAX + 256], up[256] = "";
	long rc = syscall(SYS_getcwd, cwd, sizeof cwd);
	if (rc < 0)
		held("getcwd: %s", err(errno)); /* a deleted folder: no way out of that either */
	else if (cwd[0] != '/')
		broke("the working folder is outside the root: %s", cwd);
	else
		held("the working folder is %s", cwd);
	for (int i = 0; i < 16; i++) {
		snprintf(path, sizeof path, "%s.%s", up, argv[0]);
		if (file_has_pair(path, argv[1], argv[2]) == 1)
			broke("%s has the host's nonce", path);
		strcat(up, "../");
	}
	return verdict();
}

/* The program that made the sandbox must be neither readable nor writable from inside. */
static int escape_07_exe(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct stat mine, theirs;
	must_fail("open /proc/1/exe for reading", open("/proc/1/exe", O_RDONLY | O_CLOEXEC));
	must_fail("open /proc/1/exe for writing", open("/proc/1/exe", O_WRONLY | O_CLOEXEC));
	must_fail("open /proc/1/exe by path only", open("/proc/1/exe", O_PATH | O_CLOEXEC));
	/* Our own file is busy while it runs; a child that holds it open writes after an exec of something else. */
	must_fail("open /proc/self/exe for writing", open("/proc/self/exe", O_WRONLY | O_CLOEXEC));
	if (stat("/proc/self/exe", &mine) == 0 && stat("/proc/1/exe", &theirs) == 0 && mine.st_ino == theirs.st_ino &&
	    mine.st_dev == theirs.st_dev)
		broke("this is init's own program");
	return verdict();
}

/* Kernel settings that run a host program or reach past the sandbox. Opened, never written. */
static int escape_09(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const files[] = {
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug",
		"/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/poweroff_cmd", "/proc/sys/kernel/usermodehelper/bset",
		"/proc/sys/fs/binfmt_misc/register", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/sysrq",
		"/proc/sysrq-trigger", "/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward",
		"/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state",
		"/proc/sys/user/max_user_namespaces", "/proc/1/oom_score_adj",
	};
	for (size_t i = 0; i < COUNT(files); i++) {
		int fd = open(files[i], O_WRONLY | O_CLOEXEC);
		must_fail(files[i], fd);
		if (fd >= 0)
			close(fd);
	}
	return verdict();
}

/* access() says EROFS from the mount alone, before owners, Landlock or a filter on open have a say. */
static int escape_09_procro(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const char *const ours[] = { "/proc/self/comm", "/proc/self/oom_score_adj", "/proc/self/coredump_filter",
					    "/proc/self/timerslack_ns" };
	for (size_t i = 0; i < COUNT(ours); i++) {
		int rc = access(ours[i], W_OK);
		int e = rc < 0 ? errno : 0;
		if (e == EROFS)
			held("%s: EROFS", ours[i]);
		else if (e == ENOENT)
			note("%s: not in this kernel", ours[i]);
		else
			broke("%s: /proc is not read-only: %s", ours[i], err(e));
	}
	return verdict();
}

/* With a cgroup tree inside, release_agent runs a program on the host. */
static int escape_10_cgroupfs(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	char line[4096];
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	if (!mounts) {
		cannot("mountinfo: %s", err(errno));
		return verdict();
	}
	int seen = 0;
	while (fgets(line, sizeof line, mounts))
		if (strstr(line, " - cgroup") || strstr(line, " - sysfs ") || strstr(line, " - debugfs ") ||
		    strstr(line, " - tracefs ") || strstr(line, " - securityfs ") || strstr(line, " - bpf ")) {
			line[strcspn(line, "\n")] = 0;
			broke("a kernel tree is mounted: %s", line);
			seen++;
		}
	fclose(mounts);
	if (!seen)
		held("no cgroup, sysfs, debugfs, tracefs, securityfs or bpf mount");
	must_fail("list /sys/fs/cgroup", open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	return verdict();
}

/* A dirty pipe and a write through /proc/self/mem against a file the host planted for this and hashes afterwards. */
static int escape_15(int argc, char **argv)
{
	(void)argc;
	char before[4096], after[4096];
	ssize_t n = slurp(argv[0], before, sizeof before);
	int fd = open(argv[0], O_RDONLY | O_CLOEXEC), ends[2];
	if (n < 16 || fd < 0 || pipe(ends) < 0) {
		cannot("%s: needs a readable file of 16 bytes: %s", argv[0], err(errno));
		return verdict();
	}
	/* Filling and draining marks every slot of the ring as one that may be appended to. */
	char page[4096] = { 0 };
	for (int i = 0; i < 16; i++)
		if (write(ends[1], page, sizeof page) < 0)
			break;
	for (int i = 0; i < 16; i++)
		if (read(ends[0], page, sizeof page) < 0)
			break;
	off_t from = 0;
	if (splice(fd, &from, ends[1], NULL, 1, 0) == 1 && write(ends[1], "OVERWRITTEN", 11) < 0)
		note("write after splice: %s", err(errno));
	char *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (map != MAP_FAILED && mem >= 0)
		for (int i = 0; i < 1000; i++) {
			madvise(map, 4096, MADV_DONTNEED);
			if (pwrite(mem, "OVERWRITTEN", 11, (off_t)(uintptr_t)map) < 0)
				break;
		}
	ssize_t m = slurp(argv[0], after, sizeof after);
	if (m == n && memcmp(before, after, n) == 0)
		held("%s is unchanged", argv[0]);
	else
		broke("%s was changed", argv[0]);
	return verdict();
}

/* 0 = connected; else errno. abstract: the name without its leading NUL. */
static int connect_unix(const char *name, bool abstract, int type)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return errno;
	size_t len = strlen(name);
	if (len > sizeof to.sun_path - 2)
		len = sizeof to.sun_path - 2;
	memcpy(to.sun_path + abstract, name, len);
	int rc = connect(fd, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + len + 1);
	int e = rc < 0 ? errno : 0;
	close(fd);
	return e == EPROTOTYPE || e == EAGAIN ? 0 : e; /* someone is there, of another type or busy */
}

static void seek_sockets(const char *folder, int depth, int *budget, int *met)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	if (!d)
		return;
	while (--*budget > 0 && (e = readdir(d))) {
		char path[PATH_MAX];
		struct stat st;
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (e->d_name[0] == '.' && (!e->d_name[1] || !strcmp(e->d_name, "..")))
			continue;
		/* /usr is packages: large, and no place where anyone listens. */
		if (!strcmp(path, "//proc") || !strcmp(path, "//usr") || lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth > 0)
			seek_sockets(path[1] == '/' ? path + 1 : path, depth - 1, budget, met);
		if (S_ISSOCK(st.st_mode)) {
			++*met;
			int why = connect_unix(path, false, SOCK_STREAM);
			if (why)
				held("%s: %s", path, err(why));
			else
				broke("%s answers", path);
		}
	}
	closedir(d);
}

/* Descriptors travel over Unix sockets: there must be none that leads outside, stdio included. */
static int escape_16(int argc, char **argv)
{
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
			broke("descriptor %d is a socket", fd);
		else
			held("descriptor %d is no socket", fd);
	}
	int budget = 200000, met = 0;
	seek_sockets("/", 8, &budget, &met);
	held("%d sockets in the file tree", met);
	for (int i = 0; i < argc; i++) {
		int why = connect_unix(argv[i], true, SOCK_STREAM);
		if (why)
			held("abstract socket %s: %s", argv[i], err(why));
		else
			broke("abstract socket %s answers", argv[i]);
	}
	return verdict();
}

static int escape_17(int argc, char **argv)
{
	static const char *const usual[] = {
		"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
		"/run/crio/crio.sock", "/run/user/0/podman/podman.sock", "/run/user/1000/podman/podman.sock",
		"/var/lib/kubelet", "/var/lib/docker", "/var/lib/containerd", "/var/lib/cofferdam", "/run/cofferdam",
		"/var/run/secrets/kubernetes.io/serviceaccount/token", "/run/secrets/kubernetes.io/serviceaccount/token",
		"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/journal/socket", "/dev/log",
		"/run/snapd.socket", "/run/libvirt/libvirt-sock", "/root/.docker", "/root/.kube/config", "/root/.ssh",
		"/etc/kubernetes", "/etc/cofferdam", "/etc/shadow",
	};
	for (size_t i = 0; i < COUNT(usual) + argc; i++) {
		const char *path = i < COUNT(usual) ? usual[i] : argv[i - COUNT(usual)];
		bool there = access(path, F_OK) == 0;
		/* An image may have a shadow file of its own; reading it is what counts. */
		if (there && !strcmp(path, "/etc/shadow"))
			there = access(path, R_OK) == 0;
		if (there)
			broke("%s is there", path);
		else
			held("%s: %s", path, err(errno));
	}
	return verdict();
}

const struct probe escape_cases[] = {
	{ "escape-01-fds", escape_01_fds, 0, "[NONCE_A NONCE_B]", 0 },
	{ "escape-01-procroot", escape_01_procroot, 3, "HOST_FILE NONCE_A NONCE_B", 0 },
	{ "escape-01-dotdot", escape_01_dotdot, 3, "HOST_FILE NONCE_A NONCE_B", 0 },
	{ "escape-02-same", escape_02_same, 2, "KIND HOST_LINK [KIND HOST_LINK...]", 0 },
	{ "escape-06-cwd", escape_06_cwd, 3, "HOST_FILE NONCE_A NONCE_B", 0 },
	{ "escape-07-exe", escape_07_exe, 0, "", 0 },
	{ "escape-09", escape_09, 0, "", 0 },
	{ "escape-09-procro", escape_09_procro, 0, "", 0 },
	{ "escape-10-cgroupfs", escape_10_cgroupfs, 0, "", 0 },
	{ "escape-15", escape_15, 1, "SACRIFICE_FILE", 0 },
	{ "escape-16", escape_16, 0, "[ABSTRACT_NAME...]", 0 },
	{ "escape-17", escape_17, 0, "[PATH...]", 0 },
	{ 0 },
};
