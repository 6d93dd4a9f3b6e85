/* Shared by all probes: how a result is said, and the few helpers every group needs. */
#ifndef PROBE_H
#define PROBE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The exit codes that the harness reads. */
enum { HELD = 0, SETUP = 3, BROKE = 10 };

struct probe {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the first argument after the name */
	int min_args;
	const char *usage;
	unsigned seconds; /* alarm; 0 = one minute */
};

/* Each group ends with a row without a name. */
extern const struct probe escape_cases[], devices_cases[], calls_cases[], sockets_cases[], posture_cases[], priv_cases[], leak_cases[], shared_cases[],
	exhaust_cases[], fill_cases[], outlive_cases[], files_cases[], net_cases[];

/* What outlive-01 and -05 become. */
int linger_main(const char *seconds);

/* The modes that the harness itself uses; -1 if it is none of them. */
int host_main(int argc, char **argv);

/* Shared by escape-01-fds and leak-04. */
int escape_01_fds(int argc, char **argv);

/* One line each; the verdict is the worst that was said. */
void held(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void broke(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cannot(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int verdict(void);

/* "EPERM" for EPERM; "success" for 0. */
const char *err(int number);

/* rc < 0 with errno: held whatever the error was; else broke. */
void must_fail(const char *what, long rc);

/* Runs f in a child and returns the wait status, so that a kill or a change of state stays there. */
int in_child(int (*f)(void *), void *arg);
/* A child's exit code or -signal. */
int how_it_ended(int status);

/* One system call with arguments chosen so that nothing happens if it gets through. */
struct call {
	const char *name;
	long number;
	long arg[6];
	int want; /* what our own filter answers: EPERM or ENOSYS */
};
/* The errno of the call made in a child, 0 = it worked, -SIGSYS = killed. */
int call_errno(const struct call *c);

/* A nonce comes as two halves so that our own argv never holds it whole. */
bool pair_in(const void *buf, size_t len, const char *a, const char *b);
/* Reads at most cap-1 bytes and ends them with NUL; -1 with errno on failure. */
ssize_t slurp(const char *path, char *buf, size_t cap);
/* 1 found, 0 not found, -1 unreadable (errno). */
int file_has_pair(const char *path, const char *a, const char *b);
/* Searches the files below a folder, bounded in depth and in number. */
int tree_has_pair(const char *folder, const char *a, const char *b, int depth, int *budget);

long number(const char *text);
double now(void);

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#endif
