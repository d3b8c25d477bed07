/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/asker.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

bool obs_asker_print(int fd, char *ret, size_t size)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	socklen_t length = sizeof addr;
	struct ucred cred;
	char host[48], port[8];

	snprintf(ret, size, "?");
	if (getpeername(fd, (struct sockaddr *)&addr, &length) != 0)
		return false;
	if (addr.ss_family == AF_UNIX) {
		length = sizeof cred;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) == 0)
			snprintf(ret, size, "user %u", cred.uid);
		return true;
	}
	if (getnameinfo((struct sockaddr *)&addr, length, host, sizeof host, port, sizeof port,
		    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(ret, size, addr.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	if (addr.ss_family == AF_INET)
		return ntohl(((struct sockaddr_in *)&addr)->sin_addr.s_addr) >> 24 == 127;
	return addr.ss_family == AF_INET6 &&
		IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&addr)->sin6_addr);
}

void obs_asker_find(int fd, struct obs_asker *ret)
{
	ret->local = obs_asker_print(fd, ret->who, sizeof ret->who);
}

/* The length of "10.0.0.7" in "10.0.0.7:41234". */
static size_t address_length(const char *who)
{
	const char *port = strrchr(who, ':');

	return port ? (size_t)(port - who) : strlen(who);
}

bool obs_asker_shares(const struct obs_asker *asker, const struct obs_proc *proc)
{
	size_t n = address_length(asker->who);

	if (asker->local)
		return proc->identity.local;
	return !proc->identity.proved && !proc->identity.local && asker->who[0] != '?' &&
		address_length(proc->client) == n && memcmp(asker->who, proc->client, n) == 0;
}
