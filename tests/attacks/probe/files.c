/*
 * What a program leaves for the host to trip over: links, pipes, names, and folders that change while they are read.
 * These plant or race and say "held" when that was done; the host judges by what its own side did with it.
 */
#include "probe.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define EXCHANGE 2 /* RENAME_EXCHANGE */

/* The folder that the host collects from; made if need be, and then the working folder. */
static void enter(const char *folder)
{
	if ((mkdir(folder, 0755) < 0 && errno != EEXIST) || chdir(folder) < 0) {
		cannot("%s: %s", folder, err(errno));
		exit(SETUP);
	}
}

static int planted;

static void count(const char *what, int rc)
{
	if (rc < 0)
		note("%s: %s", what, err(errno));
	else
		planted++;
}

static int done(void)
{
	if (planted)
		held("%d things planted", planted);
	else
		cannot("nothing could be planted");
	return verdict();
}

static int make_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -1;
	ssize_t n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* Links where an upload would write, in the last part of the path and in the middle of it. */
static int files_01(int argc, char **argv)
{
	(void)argc;
	char parent[PATH_MAX];
	enter(argv[0]);
	snprintf(parent, sizeof parent, "%s", argv[1]);
	char *slash = strrchr(parent, '/');
	if (slash && slash != parent)
		*slash = 0;
	count("link to the file", symlink(argv[1], "upload"));
	count("link to its folder", symlink(parent, "folder"));
	count("link to /", symlink("/", "root"));
	count("link upwards", symlink("../../../../../../..", "up"));
	count("link to nothing", symlink("/tmp/probe-not-there", "dangling"));
	count("link to itself", symlink("loop", "loop"));
	return done();
}

/* A hard link to a file of the root would carry the host's chown or chmod to it. */
static int files_02(int argc, char **argv)
{
	(void)argc;
	enter(argv[0]);
	count("soft link", symlink(argv[1], "chown-me"));
	for (int follow = 0; follow < 2; follow++) {
		char name[32];
		snprintf(name, sizeof name, "hard-%d", follow);
		must_fail("hard link to a file of the root", linkat(AT_FDCWD, argv[1], AT_FDCWD, name, follow ? AT_SYMLINK_FOLLOW : 0));
	}
	return done();
}

static int files_03(int argc, char **argv)
{
	(void)argc;
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "socket" };
	enter(argv[0]);
	count("FIFO", mkfifo("fifo", 0666));
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	count("socket", s < 0 ? -1 : bind(s, (struct sockaddr *)&at, sizeof at));
	count("folder with the name of a file", mkdir("result.json", 0755));
	count("link to the FIFO", symlink("fifo", "report.txt"));
	count("link to a terminal", symlink("/dev/tty", "terminal"));
	count("link without an end", symlink("/dev/zero", "endless"));
	must_fail("device", mknod("device", S_IFCHR | 0666, 0));
	return done();
}

/* The folder the host works in is another one at every look. */
static int files_04(int argc, char **argv)
{
	(void)argc;
	long seconds = number(argv[2]), turns = 0;
	alarm((unsigned)seconds + 30);
	enter(argv[0]);
	if (mkdir("work", 0755) < 0 || make_file("work/file", "inside\n") < 0 || symlink(argv[1], "elsewhere") < 0) {
		cannot("set-up: %s", err(errno));
		return verdict();
	}
	for (double end = now() + seconds; now() < end; turns++) {
		rename("work", "moved");
		if (symlink(argv[1], "work") == 0)
			planted++;
		unlink("work");
		rename("moved", "work");
		syscall(SYS_renameat2, AT_FDCWD, "work", AT_FDCWD, "elsewhere", EXCHANGE);
		syscall(SYS_renameat2, AT_FDCWD, "work", AT_FDCWD, "elsewhere", EXCHANGE);
	}
	note("%ld turns", turns);
	return done();
}

/* A regular file and a link to TARGET change places as fast as they can. */
static int files_05(int argc, char **argv)
{
	(void)argc;
	long seconds = number(argv[2]), turns = 0;
	alarm((unsigned)seconds + 30);
	enter(argv[0]);
	unlink("swap");
	unlink("swap-other");
	if (make_file("swap", "harmless\n") < 0 || symlink(argv[1], "swap-other") < 0) {
		cannot("set-up: %s", err(errno));
		return verdict();
	}
	for (double end = now() + seconds; now() < end;)
		for (int i = 0; i < 1000; i++, turns++)
			if (syscall(SYS_renameat2, AT_FDCWD, "swap", AT_FDCWD, "swap-other", EXCHANGE) < 0) {
				cannot("exchange: %s", err(errno));
				return verdict();
			}
	held("%ld exchanges", turns);
	return verdict();
}

/* Links that mean another place to whoever follows them. */
static int files_06(int argc, char **argv)
{
	(void)argc;
	static const char *const through[] = { "/proc/self/root", "/proc/1/root", "/proc/thread-self/root", "/proc/self/cwd/../../..",
					       "/proc/self/fd/3", "/proc/self/fd/0", "/dev/fd/3", "/proc/self/exe", "/proc/self/environ" };
	enter(argv[0]);
	for (size_t i = 0; i < COUNT(through); i++) {
		char name[32], to[PATH_MAX];
		snprintf(name, sizeof name, "magic-%zu", i);
		count(through[i], symlink(through[i], name));
		snprintf(name, sizeof name, "magic-%zu-file", i);
		snprintf(to, sizeof to, "%s%s", through[i], argv[1]);
		count(to, symlink(to, name));
	}
	return done();
}

static int files_07(int argc, char **argv)
{
	(void)argc;
	static const char *const names[] = {
		"%2e%2e", "%2e%2e%2fetc%2fpasswd", "..%00", "new\nline", "carriage\rreturn", "tab\tname", "-rf", "--help", "-",
		"\xe2\x80\xae" "gpj.exe", "a\xe2\x80\x8b" "b", "bad\xff\xfeutf8", "\xc0\xae\xc0\xae", "...", " ", "trailing ", "trailing.",
		"quote\"'`", "$(id)", ";id", "|id", "back\\slash", "c:\\windows", "\x1b[31mred", "\x1b]52;c;eA==\x07", "CON", "nul.txt",
		"*", "?", "[a]", "{a,b}", "~", "~root", "e\xcc\x81", "\xc3\xa9", "x\r\nSet-Cookie: a=b", "<script>", "a:b",
	};
	char longest[256], deep[4096] = "";
	enter(argv[0]);
	for (size_t i = 0; i < COUNT(names); i++)
		count(names[i], make_file(names[i], "x"));
	memset(longest, 'n', 255);
	longest[255] = 0;
	count("name of 255 bytes", make_file(longest, "x"));
	/* A path of almost 4 KiB, part by part. */
	while (strlen(deep) + 202 < sizeof deep) {
		size_t n = strlen(deep);
		memset(deep + n, 'p', 200);
		deep[n + 200] = 0;
		if (mkdir(deep, 0755) < 0)
			break;
		strcat(deep, "/");
	}
	note("a path of %zu bytes", strlen(deep));
	return done();
}

/* A deep tree that goes on changing while the host deletes it. */
static int files_09(int argc, char **argv)
{
	(void)argc;
	long levels = number(argv[1]), seconds = number(argv[2]), n = 0;
	alarm((unsigned)seconds + 60);
	enter(argv[0]);
	int top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (n < levels && mkdir("d", 0755) == 0 && chdir("d") == 0)
		n++;
	note("%ld levels: %s", n, n < levels ? err(errno) : "complete");
	planted += n > 0;
	for (double end = now() + seconds; now() < end;) {
		/* What was moved to the top is found where the walk has been already. */
		if (mkdirat(top, "e", 0755) == 0)
			renameat(top, "e", AT_FDCWD, "e");
		renameat(AT_FDCWD, "e", top, "e");
		make_file("again", "x");
		unlinkat(top, "e", AT_REMOVEDIR);
	}
	return done();
}

const struct probe files_cases[] = {
	{ "files-01", files_01, 2, "FOLDER TARGET", 0 },
	{ "files-02", files_02, 2, "FOLDER ROOT_FILE", 0 },
	{ "files-03", files_03, 1, "FOLDER", 0 },
	{ "files-04", files_04, 3, "FOLDER TARGET SECONDS", 0 },
	{ "files-05", files_05, 3, "FOLDER TARGET SECONDS", 0 },
	{ "files-06", files_06, 2, "FOLDER TARGET", 0 },
	{ "files-07", files_07, 1, "FOLDER", 0 },
	{ "files-09", files_09, 3, "FOLDER LEVELS SECONDS", 0 },
	{ 0 },
};
