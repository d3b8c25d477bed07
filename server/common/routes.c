/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/routes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "server/common/options.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

#define WORDS (OBP_SECRET_BYTES / sizeof(uint64_t))

struct obs_routes {
	_Atomic uint32_t n; /* entries ever used */
	struct entry {
		/*
		 * Odd while it is written. Readers read it before and after the rest: the same even
		 * number twice means a consistent copy.
		 */
		_Atomic uint64_t writes;
		_Atomic uint64_t route; /* 0: free */
		_Atomic uint64_t secret[WORDS];
	} list[OBS_SESSIONS_MAX];
};

_Static_assert(WORDS * sizeof(uint64_t) == OBP_SECRET_BYTES, "a secret is whole words");

static void *map(int fd, int protection)
{
	void *p = mmap(NULL, sizeof(struct obs_routes), protection, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

struct obs_routes *obs_routes_new(int *ret_fd)
{
	int fd = memfd_create("outboard-routes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct obs_routes *routes = NULL;

	if (fd >= 0 && ftruncate(fd, sizeof *routes) == 0)
		routes = map(fd, PROT_READ | PROT_WRITE);
	if (!routes) {
		int cause = errno;

		if (fd >= 0)
			close(fd);
		errno = cause;
		return NULL;
	}
	/* The mapping above stays writable. Older kernels know only the first two seals. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) != 0)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	*ret_fd = fd;
	return routes;
}

void obs_routes_free(struct obs_routes *routes)
{
	if (routes)
		munmap(routes, sizeof *routes);
}

const struct obs_routes *obs_routes_adopt(void)
{
	const struct obs_routes *routes;
	struct stat st;

	if (fstat(OBS_ROUTES_FD, &st) != 0)
		return NULL;
	if (st.st_size != (off_t)sizeof *routes) {
		errno = EINVAL;
		return NULL;
	}
	routes = map(OBS_ROUTES_FD, PROT_READ);
	if (routes)
		close(OBS_ROUTES_FD);
	return routes;
}

static uint32_t used(const struct obs_routes *routes)
{
	uint32_t n = atomic_load_explicit(&routes->n, memory_order_acquire);

	return ob_min(n, (uint32_t)OBS_SESSIONS_MAX);
}

/* Supervisor: the entry of this route; 0: a free one. NULL: none. */
static struct entry *entry_of(struct obs_routes *routes, uint64_t route)
{
	for (uint32_t i = 0, n = used(routes); i < n; i++)
		if (atomic_load_explicit(&routes->list[i].route, memory_order_relaxed) == route)
			return &routes->list[i];
	return NULL;
}

static void entry_fill(struct entry *entry, uint64_t route, const uint8_t secret[OBP_SECRET_BYTES])
{
	uint64_t words[WORDS];

	memcpy(words, secret, sizeof words);
	/*
	 * A reader that sees any part of the new entry sees the odd or a later number at its second
	 * look.
	 */
	atomic_fetch_add_explicit(&entry->writes, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&entry->route, route, memory_order_relaxed);
	for (size_t i = 0; i < WORDS; i++)
		atomic_store_explicit(&entry->secret[i], words[i], memory_order_relaxed);
	/* Release: a reader that sees the even number sees the whole entry. */
	atomic_fetch_add_explicit(&entry->writes, 1, memory_order_release);
	explicit_bzero(words, sizeof words);
}

bool obs_routes_put(
	struct obs_routes *routes, uint64_t route, const uint8_t secret[OBP_SECRET_BYTES])
{
	struct entry *entry = entry_of(routes, 0);
	uint32_t n = used(routes);

	if (!route || (!entry && n == OBS_SESSIONS_MAX))
		return false;
	entry_fill(entry ? entry : &routes->list[n], route, secret);
	if (!entry)
		atomic_store_explicit(&routes->n, n + 1, memory_order_release);
	return true;
}

void obs_routes_remove(struct obs_routes *routes, uint64_t route)
{
	static const uint8_t nothing[OBP_SECRET_BYTES];
	struct entry *entry = route ? entry_of(routes, route) : NULL;

	if (entry)
		entry_fill(entry, 0, nothing);
}

bool obs_routes_find(
	const struct obs_routes *routes, uint64_t route, uint8_t ret_secret[OBP_SECRET_BYTES])
{
	for (uint32_t i = 0, n = used(routes); route && i < n; i++) {
		const struct entry *entry = &routes->list[i];
		uint64_t words[WORDS],
			writes = atomic_load_explicit(&entry->writes, memory_order_acquire);
		bool same;

		if (atomic_load_explicit(&entry->route, memory_order_relaxed) != route)
			continue;
		for (size_t k = 0; k < WORDS; k++)
			words[k] = atomic_load_explicit(&entry->secret[k], memory_order_relaxed);
		/*
		 * Acquire: the second look is after the words. The supervisor may have reused the
		 * entry for another session meanwhile.
		 */
		atomic_thread_fence(memory_order_acquire);
		same = writes % 2 == 0 &&
			atomic_load_explicit(&entry->writes, memory_order_relaxed) == writes;
		if (same)
			memcpy(ret_secret, words, sizeof words);
		explicit_bzero(words, sizeof words);
		return same;
	}
	return false;
}
