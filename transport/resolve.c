/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

#define NAMES_MAX 8
#define HOST_MAX  256
#define PORT_MAX  32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known {
	char host[HOST_MAX], port[PORT_MAX];
	struct obt_addresses addresses;
} known[NAMES_MAX];
static unsigned n_known;

/* True if address and port are numeric. */
static bool numeric(const char *host, const char *port, struct obt_addresses *ret)
{
	struct sockaddr_in *four = (struct sockaddr_in *)&ret->list[0].address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&ret->list[0].address;
	uint64_t number;

	*ret = (struct obt_addresses){ .n = 1 };
	if (!ob_text_parse_number(port, 0, UINT16_MAX, &number))
		return false;
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)number);
		ret->list[0].length = sizeof *four;
		return true;
	}
	if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)number);
		ret->list[0].length = sizeof *six;
		return true;
	}
	return false;
}

/* Under the lock. NULL: the name is not remembered. */
static struct known *known_find(const char *host, const char *port)
{
	for (unsigned i = 0; i < ob_min(n_known, (unsigned)NAMES_MAX); i++)
		if (strcmp(known[i].host, host) == 0 && strcmp(known[i].port, port) == 0)
			return &known[i];
	return NULL;
}

/*
 * Never waits for the lock: after fork() it may be held by a thread that does not exist in the
 * child.
 */
static bool kept_take(const char *host, const char *port, struct obt_addresses *ret)
{
	const struct known *entry;

	if (pthread_mutex_trylock(&lock) != 0)
		return false;
	entry = known_find(host, port);
	if (entry)
		*ret = entry->addresses;
	pthread_mutex_unlock(&lock);
	ret->kept = true;
	return entry != NULL;
}

static void keep(const char *host, const char *port, const struct obt_addresses *addresses)
{
	struct known *entry;

	if (strlen(host) >= HOST_MAX || strlen(port) >= PORT_MAX ||
		pthread_mutex_trylock(&lock) != 0)
		return;
	entry = known_find(host, port);
	if (!entry)
		entry = &known[n_known++ % NAMES_MAX]; /* replaces the oldest */
	memcpy(entry->host, host, strlen(host) + 1);
	memcpy(entry->port, port, strlen(port) + 1);
	entry->addresses = *addresses;
	pthread_mutex_unlock(&lock);
}

static enum ob_err failed(int result, const char *host, struct ob_cause *ret_cause)
{
	int system = result == EAI_SYSTEM ? errno
		: result == EAI_AGAIN     ? EAGAIN
		: result == EAI_MEMORY    ? ENOMEM
					  : ENOENT;

	return ob_cause_set_system(
		ret_cause, OB_ERR_RESOLVE, system, "the name '%.255s' cannot be resolved", host);
}

enum ob_err obt_resolve(const char *host, const char *port, bool fresh, struct obt_addresses *ret,
	struct ob_cause *ret_cause)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG },
			*list = NULL;
	struct obt_addresses found;
	int result;

	if (numeric(host, port, &found) || (!fresh && kept_take(host, port, &found))) {
		*ret = found;
		return OB_ERR_NONE;
	}
	found = (struct obt_addresses){ .n = 0 };
	result = getaddrinfo(host, port, &hints, &list);
	if (result)
		return failed(result, host, ret_cause);
	for (const struct addrinfo *a = list; a && found.n < OBT_ADDRESSES_MAX; a = a->ai_next) {
		memcpy(&found.list[found.n].address, a->ai_addr, a->ai_addrlen);
		found.list[found.n++].length = a->ai_addrlen;
	}
	freeaddrinfo(list);
	keep(host, port, &found);
	*ret = found;
	return OB_ERR_NONE;
}
