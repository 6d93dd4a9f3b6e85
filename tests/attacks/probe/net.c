/* net-04, -05, -10: with no network there is a loopback of our own and nothing else. */
#include "probe.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static socklen_t address(const char *text, int port, struct sockaddr_storage *to)
{
	struct sockaddr_in *four = (struct sockaddr_in *)to;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	memset(to, 0, sizeof *to);
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		return sizeof *four;
	}
	if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		return sizeof *six;
	}
	cannot("no address: %s", text);
	exit(SETUP);
}

/* 0 = connected; EINPROGRESS = on its way and no answer in time; else the error. */
static int dial(const char *text, int port, int type, int wait_ms)
{
	struct sockaddr_storage to;
	socklen_t len = address(text, port, &to), elen = sizeof(int);
	int fd = socket(to.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), e = 0;
	if (fd < 0)
		return errno;
	if (connect(fd, (struct sockaddr *)&to, len) < 0)
		e = errno;
	if (e == EINPROGRESS) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		if (poll(&p, 1, wait_ms) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &elen) < 0)
			e = errno;
	}
	close(fd);
	return e;
}

/* Connecting a datagram socket sends nothing: it only asks whether there is a way. */
static int net_04_routes(int argc, char **argv)
{
	static const char *const usual[] = { "192.0.2.1", "8.8.8.8", "10.0.0.1", "172.17.0.1", "192.168.0.1", "169.254.169.254",
					     "100.100.100.200", "224.0.0.1", "255.255.255.255", "2001:db8::1", "fd00:ec2::254",
					     "fe80::1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2606:4700:4700::1111" };
	for (size_t i = 0; i < COUNT(usual) + argc; i++) {
		const char *to = i < COUNT(usual) ? usual[i] : argv[i - COUNT(usual)];
		int e = dial(to, 53, SOCK_DGRAM, 0);
		if (e)
			held("way to %s: %s", to, err(e));
		else
			broke("way to %s: there is one", to);
	}
	/* Addresses set aside for documentation: nobody is disturbed where there is a way. */
	int e = dial("192.0.2.1", 80, SOCK_STREAM, 0);
	if (e == EINPROGRESS || e == 0)
		broke("TCP to 192.0.2.1: sent");
	else
		held("TCP to 192.0.2.1: %s", err(e));
	struct sockaddr_storage to;
	socklen_t len = address("192.0.2.1", 0, &to);
	int ping = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);
	static const char echo[8] = { 8 };
	must_fail("ping 192.0.2.1", ping < 0 ? -1 : sendto(ping, echo, sizeof echo, 0, (struct sockaddr *)&to, len));
	return verdict();
}

static int net_04_interfaces(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct if_nameindex *all = if_nameindex();
	if (!all) {
		cannot("if_nameindex: %s", err(errno));
		return verdict();
	}
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (struct if_nameindex *i = all; i->if_index; i++) {
		struct ifreq r = { 0 };
		strncpy(r.ifr_name, i->if_name, IFNAMSIZ - 1);
		if (ioctl(s, SIOCGIFFLAGS, &r) < 0)
			cannot("%s: %s", i->if_name, err(errno));
		else if (r.ifr_flags & IFF_LOOPBACK)
			held("%s is the loopback", i->if_name);
		else if (r.ifr_flags & IFF_UP)
			broke("%s is up", i->if_name);
		else
			held("%s is down", i->if_name); /* kernels put tunnel ends into every new namespace */
	}
	close(s);
	if_freenameindex(all);
	return verdict();
}

/* Programs need a loopback; without the step that sets it up there is none. */
static int net_04_loopback(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct sockaddr_storage at;
	socklen_t len = address("127.0.0.1", 0, &at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 1) < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
		broke("no listener on 127.0.0.1: %s", err(errno));
		return verdict();
	}
	int e = dial("127.0.0.1", ntohs(((struct sockaddr_in *)&at)->sin_port), SOCK_STREAM, 1000);
	if (e)
		broke("the loopback does not work: %s", err(e));
	else
		held("the loopback works");
	return verdict();
}

/* Listeners of the host: the store, the worker's API, metrics, /v1, or one planted for this. */
static int listener(int argc, char **argv)
{
	static const char *const us[] = { "127.0.0.1", "::1", "127.0.0.2", "0.0.0.0", "::ffff:127.0.0.1" };
	for (int a = 0; a < argc; a++)
		for (size_t i = 0; i < COUNT(us); i++) {
			int e = dial(us[i], (int)number(argv[a]), SOCK_STREAM, 500);
			if (e)
				held("%s port %s: %s", us[i], argv[a], err(e));
			else
				broke("%s port %s: connected", us[i], argv[a]);
		}
	return verdict();
}

const struct probe net_cases[] = {
	{ "net-04-routes", net_04_routes, 0, "[ADDRESS...]", 0 },
	{ "net-04-interfaces", net_04_interfaces, 0, "", 0 },
	{ "net-04-loopback", net_04_loopback, 0, "", 0 },
	{ "net-04-listener", listener, 1, "PORT...", 0 },
	{ "net-10", listener, 1, "PORT...", 0 },
	{ 0 },
};
