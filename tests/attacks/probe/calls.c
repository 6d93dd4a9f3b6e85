/*
 * Forbidden system calls: escape-02, -03, -04, -11, -12, -14.
 *
 * Every row has arguments that do nothing if the call gets through, even for root on a bare host, and wherever
 * the kernel allows it they are such that its own answer (EFAULT, EINVAL, EBADF, success) differs from the
 * filter's. So an answer other than EPERM or ENOSYS means that the filter let the call through.
 */
#include "probe.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
/* Numbers of x86-64; the headers of Debian 12 end at 450. */
enum {
	NR_io_uring_setup = 425,
	NR_io_uring_enter = 426,
	NR_io_uring_register = 427,
	NR_open_tree = 428,
	NR_move_mount = 429,
	NR_fsopen = 430,
	NR_fsconfig = 431,
	NR_fsmount = 432,
	NR_fspick = 433,
	NR_clone3 = 435,
	NR_pidfd_getfd = 438,
	NR_process_madvise = 440,
	NR_mount_setattr = 442,
	NR_quotactl_fd = 443,
	NR_memfd_secret = 447,
	NR_statmount = 457,
	NR_listmount = 458,
	NR_open_tree_attr = 467,
};

#define BAD 1L          /* an address that is never mapped */
#define JUNK 0x7fffffffL
#define HIGH (1L << 33) /* the kernel drops these bits: a filter that compares 64 bits is fooled by them */

/* CLONE_THREAD without CLONE_SIGHAND is EINVAL before any permission is looked at. */
#define CLONES(flag) { "clone(" #flag ")", SYS_clone, { flag | CLONE_THREAD }, EPERM }, \
		     { "clone(" #flag " | 1<<33)", SYS_clone, { flag | CLONE_THREAD | HIGH }, EPERM }
/* 1 is no flag: EINVAL if the call is reached. */
#define UNSHARES(flag) { "unshare(" #flag ")", SYS_unshare, { flag | 1 }, EPERM }
#define SETNSES(flag) { "setns(" #flag ")", SYS_setns, { -1, flag }, EPERM }

static const struct call namespaces[] = {
	CLONES(CLONE_NEWUSER), CLONES(CLONE_NEWNS), CLONES(CLONE_NEWPID), CLONES(CLONE_NEWNET),
	CLONES(CLONE_NEWIPC), CLONES(CLONE_NEWUTS), CLONES(CLONE_NEWCGROUP),
	UNSHARES(CLONE_NEWUSER), UNSHARES(CLONE_NEWNS), UNSHARES(CLONE_NEWPID), UNSHARES(CLONE_NEWNET),
	UNSHARES(CLONE_NEWIPC), UNSHARES(CLONE_NEWUTS), UNSHARES(CLONE_NEWCGROUP), UNSHARES(CLONE_NEWTIME),
	SETNSES(0), SETNSES(CLONE_NEWUSER), SETNSES(CLONE_NEWNS), SETNSES(CLONE_NEWPID), SETNSES(CLONE_NEWNET),
	{ "clone3", NR_clone3, { BAD, 0 }, ENOSYS },
	{ "clone3 with a size", NR_clone3, { BAD, 88 }, ENOSYS },
};

static const struct call mounts[] = {
	{ "mount", SYS_mount, { BAD, BAD, BAD, 0, BAD }, EPERM },
	{ "umount2", SYS_umount2, { BAD, JUNK }, EPERM },
	{ "pivot_root", SYS_pivot_root, { BAD, BAD }, EPERM },
	{ "chroot", SYS_chroot, { BAD }, EPERM },
	{ "open_tree", NR_open_tree, { -1, BAD, 0 }, EPERM },
	{ "move_mount", NR_move_mount, { -1, BAD, -1, BAD, JUNK }, EPERM },
	{ "fsopen", NR_fsopen, { BAD, JUNK }, EPERM },
	{ "fsconfig", NR_fsconfig, { -1, JUNK, BAD, BAD, -1 }, EPERM },
	{ "fsmount", NR_fsmount, { -1, JUNK, JUNK }, EPERM },
	{ "fspick", NR_fspick, { -1, BAD, JUNK }, EPERM },
	{ "mount_setattr", NR_mount_setattr, { -1, BAD, JUNK, BAD, 0 }, EPERM },
	{ "open_tree_attr", NR_open_tree_attr, { -1, BAD, JUNK, BAD, 0 }, EPERM },
	{ "statmount", NR_statmount, { BAD, BAD, 0, JUNK }, ENOSYS },
	{ "listmount", NR_listmount, { BAD, BAD, 0, JUNK }, ENOSYS },
};

static const struct call uring[] = {
	{ "io_uring_setup", NR_io_uring_setup, { 1, BAD }, ENOSYS },
	{ "io_uring_enter", NR_io_uring_enter, { -1, 0, 0, 0, 0, 0 }, ENOSYS },
	{ "io_uring_register", NR_io_uring_register, { -1, JUNK, 0, 0 }, ENOSYS },
	{ "io_setup", SYS_io_setup, { 0, BAD }, ENOSYS },
	{ "io_submit", SYS_io_submit, { 0, 1, BAD }, ENOSYS },
	{ "io_destroy", SYS_io_destroy, { 0 }, ENOSYS },
};

static const struct call kernel_surface[] = {
	{ "bpf", SYS_bpf, { JUNK, BAD, 8 }, ENOSYS },
	{ "perf_event_open", SYS_perf_event_open, { BAD, 0, -1, -1, JUNK }, ENOSYS },
	{ "userfaultfd", SYS_userfaultfd, { JUNK }, ENOSYS },
	{ "memfd_secret", NR_memfd_secret, { JUNK }, ENOSYS },
	{ "keyctl", SYS_keyctl, { JUNK }, ENOSYS },
	{ "add_key", SYS_add_key, { BAD, BAD, BAD, 1, 0 }, ENOSYS },
	{ "request_key", SYS_request_key, { BAD, BAD, BAD, 0 }, ENOSYS },
	{ "fanotify_init", SYS_fanotify_init, { JUNK, 0 }, ENOSYS },
	{ "fanotify_mark", SYS_fanotify_mark, { -1, JUNK, 0, -1, BAD }, ENOSYS },
	{ "mq_open", SYS_mq_open, { BAD, 0, 0, 0 }, ENOSYS },
	{ "mq_unlink", SYS_mq_unlink, { BAD }, ENOSYS },
	{ "mq_timedsend", SYS_mq_timedsend, { -1, BAD, 0, 0, 0 }, ENOSYS },
	{ "mq_getsetattr", SYS_mq_getsetattr, { -1, 0, 0 }, ENOSYS },
	{ "ptrace(TRACEME)", SYS_ptrace, { PTRACE_TRACEME }, EPERM },
	{ "ptrace(ATTACH)", SYS_ptrace, { PTRACE_ATTACH, JUNK }, EPERM },
	{ "process_vm_readv", SYS_process_vm_readv, { JUNK, 0, 0, 0, 0, 1 }, EPERM },
	{ "process_vm_writev", SYS_process_vm_writev, { JUNK, 0, 0, 0, 0, 1 }, EPERM },
	{ "pidfd_getfd", NR_pidfd_getfd, { -1, -1, 0 }, EPERM },
	{ "process_madvise", NR_process_madvise, { -1, BAD, 1, 0, JUNK }, EPERM },
	{ "kcmp", SYS_kcmp, { JUNK, JUNK, 0, 0, 0 }, EPERM },
};

static const struct call handles[] = {
	{ "open_by_handle_at", SYS_open_by_handle_at, { -1, BAD, 0 }, EPERM },
	{ "name_to_handle_at", SYS_name_to_handle_at, { -1, BAD, BAD, BAD, JUNK }, ENOSYS },
};

static const struct call machine[] = {
	{ "init_module", SYS_init_module, { BAD, 0, BAD }, EPERM },
	{ "finit_module", SYS_finit_module, { -1, BAD, 0 }, EPERM },
	{ "delete_module", SYS_delete_module, { BAD, JUNK }, EPERM },
	{ "kexec_load", SYS_kexec_load, { 0, JUNK, BAD, JUNK }, EPERM },
	{ "kexec_file_load", SYS_kexec_file_load, { -1, -1, 0, BAD, JUNK }, EPERM },
	{ "reboot with wrong magic", SYS_reboot, { 1, 2, 3, 0 }, EPERM },
	{ "swapon", SYS_swapon, { BAD, JUNK }, EPERM },
	{ "swapoff", SYS_swapoff, { BAD }, EPERM },
	{ "iopl(0)", SYS_iopl, { 0 }, EPERM },
	{ "ioperm of nothing", SYS_ioperm, { 0, 0, 0 }, EPERM },
	{ "modify_ldt read of nothing", SYS_modify_ldt, { 0, 0, 0 }, EPERM },
	{ "settimeofday", SYS_settimeofday, { BAD, 0 }, EPERM },
	{ "clock_settime", SYS_clock_settime, { 0, BAD }, EPERM },
	{ "sethostname", SYS_sethostname, { BAD, -1 }, EPERM },
	{ "setdomainname", SYS_setdomainname, { BAD, -1 }, EPERM },
	{ "acct", SYS_acct, { BAD }, EPERM },
	{ "quotactl", SYS_quotactl, { JUNK, BAD, 0, BAD }, EPERM },
	{ "quotactl_fd", NR_quotactl_fd, { -1, JUNK, 0, BAD }, EPERM },
	{ "syslog", SYS_syslog, { -1, 0, 0 }, EPERM },
};

/* Allowed calls of which some arguments are not. -1 as the descriptor: EBADF if the call is reached. */
static const struct call arguments[] = {
	{ "ioctl TIOCSTI", SYS_ioctl, { -1, 0x5412, BAD }, EPERM },
	{ "ioctl TIOCSTI | 1<<33", SYS_ioctl, { -1, 0x5412 | HIGH, BAD }, EPERM },
	{ "ioctl TIOCLINUX", SYS_ioctl, { -1, 0x541c, BAD }, EPERM },
	{ "ioctl TIOCCONS", SYS_ioctl, { -1, 0x541d, 0 }, EPERM },
	{ "ioctl TIOCSETD", SYS_ioctl, { -1, 0x5423, BAD }, EPERM },
	{ "ioctl TIOCSETD | 1<<33", SYS_ioctl, { -1, 0x5423 | HIGH, BAD }, EPERM },
	{ "setsockopt TCP_ULP", SYS_setsockopt, { -1, 6, 31, BAD, 3 }, EPERM },
	{ "setsockopt TCP_ULP | 1<<33", SYS_setsockopt, { -1, 6 | HIGH, 31 | HIGH, BAD, 3 }, EPERM },
	{ "setsockopt SOL_TLS", SYS_setsockopt, { -1, 282, 1, BAD, 4 }, EPERM },
	{ "setsockopt UDP_ENCAP", SYS_setsockopt, { -1, 17, 100, BAD, 4 }, EPERM },
	{ "personality ADDR_NO_RANDOMIZE", SYS_personality, { ADDR_NO_RANDOMIZE }, EPERM },
	{ "personality READ_IMPLIES_EXEC", SYS_personality, { READ_IMPLIES_EXEC }, EPERM },
	/* A fifth argument is refused before the capability is looked at. */
	{ "prctl PR_SET_MM", SYS_prctl, { PR_SET_MM, PR_SET_MM_BRK, 0, 0, 1 }, EPERM },
	{ "prctl PR_SET_MM | 1<<33", SYS_prctl, { PR_SET_MM | HIGH, PR_SET_MM_BRK, 0, 0, 1 }, EPERM },
	/* Device 0:0 is an overlay whiteout, which the kernel lets anyone make; BAD as the path stops it. */
	{ "mknod character device", SYS_mknod, { BAD, S_IFCHR | 0600, 0 }, EPERM },
	{ "mknod block device", SYS_mknod, { BAD, S_IFBLK | 0600, 0 }, EPERM },
	{ "mknodat character device", SYS_mknodat, { -1, BAD, S_IFCHR | 0600, 0 }, EPERM },
	{ "mknodat block device | 1<<33", SYS_mknodat, { -1, BAD, S_IFBLK | 0600 | HIGH, 0 }, EPERM },
};

static void refused(const struct call *c)
{
	int e = call_errno(c);
	if (e == EPERM || e == ENOSYS || e == -SIGSYS)
		held("%s: %s", c->name, e < 0 ? "SIGSYS" : err(e));
	else
		broke("%s: the kernel was reached: %s", c->name, e < 0 ? strsignal(-e) : err(e));
}

#define TABLE_CASE(function, table)                          \
	static int function(int argc, char **argv)           \
	{                                                    \
		(void)argc;                                  \
		(void)argv;                                  \
		for (size_t i = 0; i < COUNT(table); i++)    \
			refused(&table[i]);                  \
		return verdict();                            \
	}
TABLE_CASE(escape_02, namespaces)
TABLE_CASE(escape_03, mounts)
TABLE_CASE(escape_04, uring)
TABLE_CASE(escape_11, kernel_surface)
TABLE_CASE(escape_11_args, arguments)
TABLE_CASE(escape_12, handles)
TABLE_CASE(escape_14, machine)

/* The exact answer matters to libc, which falls back on ENOSYS only. */
static int escape_11_errno(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const struct {
		const struct call *row;
		size_t count;
	} tables[] = {
		{ namespaces, COUNT(namespaces) }, { mounts, COUNT(mounts) },   { uring, COUNT(uring) },
		{ kernel_surface, COUNT(kernel_surface) }, { handles, COUNT(handles) },
		{ machine, COUNT(machine) }, { arguments, COUNT(arguments) },
	};
	for (size_t t = 0; t < COUNT(tables); t++)
		for (size_t i = 0; i < tables[t].count; i++) {
			const struct call *c = &tables[t].row[i];
			int e = call_errno(c);
			if (e == c->want)
				held("%s: %s", c->name, err(e));
			else
				broke("%s: %s instead of %s", c->name, e < 0 ? strsignal(-e) : err(e), err(c->want));
		}
	return verdict();
}

/*
 * Numbers that a kernel has and an older list does not know, and some that none has yet: a filter that allows what it
 * does not know is open to the next one. Not 335 and 336 (uretprobe, uprobe): recent kernels pass them around every
 * filter and answer with SIGILL.
 */
static int escape_11_unknown(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const struct call rows[] = {
		{ "lsm_get_self_attr", 459, { JUNK, BAD, BAD, JUNK }, ENOSYS },
		{ "lsm_set_self_attr", 460, { JUNK, BAD, 0, JUNK }, ENOSYS },
		{ "lsm_list_modules", 461, { BAD, BAD, JUNK }, ENOSYS },
		{ "file_setattr", 469, { -1, BAD, BAD, 0, JUNK }, ENOSYS },
		{ "number 511", 511, { -1, -1, -1, -1, -1, -1 }, ENOSYS },
		{ "number 600", 600, { -1, -1, -1, -1, -1, -1 }, ENOSYS },
		{ "number 4095", 4095, { -1, -1, -1, -1, -1, -1 }, ENOSYS },
		{ "number 0x3fffffff", 0x3fffffff, { -1, -1, -1, -1, -1, -1 }, ENOSYS },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		refused(&rows[i]);
	return verdict();
}

static int x32_getpid(void *arg)
{
	(void)arg;
	return syscall(0x40000000 | SYS_getpid) < 0 ? errno : 0;
}

static int x32_low(void *arg)
{
	/* 512 to 547 were x32's own and still reach 64-bit entry points on old kernels. */
	(void)arg;
	return syscall(0x40000000 | 514, -1, 0, 0) < 0 ? errno : 0;
}

static int int80_getpid(void *arg)
{
	(void)arg;
	long rc = 20;
	__asm__ volatile("int $0x80" : "+a"(rc) : : "memory", "r8", "r9", "r10", "r11");
	return rc < 0 ? (int)-rc : 0;
}

/* The other ways into the kernel have other numbers, so a table for one of them says nothing there. */
static int escape_11_arch(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const struct {
		const char *name;
		int (*f)(void *);
	} ways[] = { { "x32 getpid", x32_getpid }, { "x32 ioctl", x32_low }, { "int 0x80 getpid", int80_getpid } };
	for (size_t i = 0; i < COUNT(ways); i++) {
		int e = how_it_ended(in_child(ways[i].f, NULL));
		if (e == -SIGSYS)
			held("%s: SIGSYS", ways[i].name);
		else if (e == -SIGSEGV && ways[i].f == int80_getpid)
			held("%s: SIGSEGV, this kernel has no 32-bit calls", ways[i].name);
		else
			broke("%s: not killed: %s", ways[i].name, e < 0 ? strsignal(-e) : err(e));
	}
	return verdict();
}

static int really_unshare(void *arg)
{
	return unshare(*(int *)arg) < 0 ? errno : 0;
}

/* What stands behind the filter: the user namespace's own limits. Only success counts here. */
static int escape_02_limits(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static struct {
		const char *name;
		int flag;
	} kinds[] = {
		{ "user", CLONE_NEWUSER }, { "user and mount", CLONE_NEWUSER | CLONE_NEWNS },
		{ "user and net", CLONE_NEWUSER | CLONE_NEWNET }, { "user and pid", CLONE_NEWUSER | CLONE_NEWPID },
	};
	for (size_t i = 0; i < COUNT(kinds); i++) {
		int e = how_it_ended(in_child(really_unshare, &kinds[i].flag));
		if (e)
			held("new %s namespace: %s", kinds[i].name, e < 0 ? strsignal(-e) : err(e));
		else
			broke("new %s namespace: made", kinds[i].name);
	}
	return verdict();
}

static int really_mount(void *arg)
{
	const char *place = arg;
	if (mount("none", place, "tmpfs", MS_NOSUID | MS_NODEV, "size=4k") < 0)
		return errno;
	umount2(place, MNT_DETACH);
	return 0;
}

static int really_chroot(void *arg)
{
	return chroot(arg) < 0 ? errno : 0;
}

/* What stands behind the filter: no capabilities. */
static int escape_03_caps(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	char place[] = "probe-mount-here";
	if (mkdir(place, 0700) < 0 && errno != EEXIST) {
		cannot("mkdir: %s", err(errno));
		return verdict();
	}
	int e = how_it_ended(in_child(really_mount, place));
	if (e)
		held("mount of a tmpfs: %s", e < 0 ? strsignal(-e) : err(e));
	else
		broke("mount of a tmpfs: worked");
	e = how_it_ended(in_child(really_chroot, place));
	if (e)
		held("chroot: %s", e < 0 ? strsignal(-e) : err(e));
	else
		broke("chroot: worked");
	rmdir(place);
	return verdict();
}

const struct probe calls_cases[] = {
	{ "escape-02", escape_02, 0, "", 0 },
	{ "escape-02-limits", escape_02_limits, 0, "", 0 },
	{ "escape-03", escape_03, 0, "", 0 },
	{ "escape-03-caps", escape_03_caps, 0, "", 0 },
	{ "escape-04", escape_04, 0, "", 0 },
	{ "escape-11", escape_11, 0, "", 0 },
	{ "escape-11-args", escape_11_args, 0, "", 0 },
	{ "escape-11-errno", escape_11_errno, 0, "", 0 },
	{ "escape-11-unknown", escape_11_unknown, 0, "", 0 },
	{ "escape-11-arch", escape_11_arch, 0, "", 0 },
	{ "escape-12", escape_12, 0, "", 0 },
	{ "escape-14", escape_14, 0, "", 0 },
	{ 0 },
};
