/* escape-05: which sockets can be had at all. A wrong jump in a filter shows only here, so every family is tried. */
#include "probe.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAMILIES 46
#define NO_SUCH_TYPE 15 /* the kernel answers EINVAL before it looks the family up, so no module is loaded */

static const int inet_protocols[] = { 0, 1, 6, 17, 58 };
/* Every low number, then those that have code behind them in some kernel; 262 is MPTCP. */
static const int more_protocols[] = { 22, 27, 33, 41, 46, 47, 50, 51, 58, 59, 89, 92, 94, 98, 103, 108,
				      112, 115, 118, 124, 132, 133, 136, 137, 138, 143, 144, 254, 255, 256, 262 };

static bool allowed(int family, int protocol)
{
	if (family == AF_UNIX)
		return true;
	if (family == AF_NETLINK)
		return protocol == 0;
	if (family != AF_INET && family != AF_INET6)
		return false;
	for (size_t i = 0; i < COUNT(inet_protocols); i++)
		if (protocol == inet_protocols[i])
			return true;
	return false;
}

static int protocol_at(size_t i)
{
	return i <= 20 ? (int)i : more_protocols[i - 21];
}
#define PROTOCOLS (21 + COUNT(more_protocols))

/* Opens for real: what comes out must be on the list. */
static int escape_05(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_DCCP, SOCK_PACKET };
	int tried = 0, opened = 0;
	for (int family = 0; family < FAMILIES; family++) {
		for (size_t t = 0; t < COUNT(types); t++)
			for (size_t p = 0; p < PROTOCOLS; p++) {
				int protocol = protocol_at(p);
				int fd = socket(family, types[t] | SOCK_CLOEXEC, protocol);
				tried++;
				if (fd >= 0) {
					close(fd);
					opened++;
					if (!allowed(family, protocol))
						broke("socket(%d, %d, %d) opened", family, types[t], protocol);
				} else if (errno == EAFNOSUPPORT && p == 0) {
					break; /* no such family: asking again only makes the kernel look for modules */
				}
			}
		int pair[2];
		if (family != AF_UNIX && socketpair(family, SOCK_STREAM, 0, pair) == 0)
			broke("socketpair(%d) opened", family);
	}
	if (opened == 0)
		cannot("not even AF_UNIX opened: the matrix says nothing");
	held("%d combinations tried, %d opened", tried, opened);
	return verdict();
}

static long raw_socket(long family, long type, long protocol)
{
	return syscall(SYS_socket, family, type, protocol);
}

static void filtered(long family, long protocol, const char *kind)
{
	errno = 0;
	long fd = raw_socket(family, NO_SUCH_TYPE, protocol);
	int e = errno;
	if (fd >= 0)
		close(fd);
	if (fd < 0 && (e == EPERM || e == EACCES || e == EAFNOSUPPORT || e == EPROTONOSUPPORT || e == ENOSYS))
		held("%s family %ld protocol %ld: %s", kind, family & 0xffff, protocol & 0xffff, err(e));
	else
		broke("%s family %ld protocol %ld: the kernel was reached: %s", kind, family & 0xffff, protocol & 0xffff,
		      err(e));
}

/* Says whether the filter stops it, also where this kernel happens to lack the module. */
static int escape_05_filter(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	const long high = 1L << 33; /* dropped by the kernel, which takes ints */
	for (long family = 0; family < FAMILIES; family++) {
		if (family == AF_UNIX)
			continue;
		if (family != AF_INET && family != AF_INET6 && family != AF_NETLINK) {
			filtered(family, 0, "plain");
			filtered(family | high, 0, "high bits");
			continue;
		}
		for (size_t p = 0; p < PROTOCOLS; p++) {
			if (allowed(family, protocol_at(p)))
				continue;
			filtered(family, protocol_at(p), "plain");
			filtered(family, protocol_at(p) | high, "high bits");
		}
	}
	return verdict();
}

const struct probe sockets_cases[] = {
	{ "escape-05", escape_05, 0, "", 120 },
	{ "escape-05-filter", escape_05_filter, 0, "", 0 },
	{ 0 },
};
