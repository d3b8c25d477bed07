/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/pool_page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

const char *obs_ticket_refusal_name(enum obs_ticket_refusal refusal)
{
	static const char *const names[] = {
#define X(name, text) text,
		OBS_TICKET_REFUSALS(X)
#undef X
	};

	return refusal < ob_count(names) ? names[refusal] : "?";
}

static void *map(int fd, int protection)
{
	void *p = mmap(NULL, sizeof(struct obs_pool_page), protection, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

struct obs_pool_page *obs_pool_page_new(int *ret_fd)
{
	int fd = memfd_create("outboard-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct obs_pool_page *page = NULL;

	if (fd >= 0 && ftruncate(fd, sizeof *page) == 0)
		page = map(fd, PROT_READ | PROT_WRITE);
	if (!page) {
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
	return page;
}

bool obs_pool_page_add(
	struct obs_pool_page *page, const uint8_t key[OBT_SIGN_KEY_BYTES], int64_t ahead_s)
{
	uint32_t n = atomic_load_explicit(&page->n_keys, memory_order_relaxed), i = 0;

	while (i < n && memcmp(page->keys[i], key, OBT_SIGN_KEY_BYTES) != 0)
		i++;
	if (i == OBS_POOL_KEYS_MAX)
		return false;
	atomic_store_explicit(&page->ahead_s[i], ahead_s, memory_order_relaxed);
	if (i < n)
		return true;
	memcpy(page->keys[i], key, OBT_SIGN_KEY_BYTES);
	atomic_store_explicit(&page->n_keys, n + 1, memory_order_release);
	return true;
}

const struct obs_pool_page *obs_pool_page_adopt(void)
{
	const struct obs_pool_page *page;
	struct stat st;

	if (fstat(OBS_POOL_PAGE_FD, &st) != 0)
		return NULL;
	if (st.st_size != (off_t)sizeof *page) {
		errno = EINVAL;
		return NULL;
	}
	page = map(OBS_POOL_PAGE_FD, PROT_READ);
	if (page)
		close(OBS_POOL_PAGE_FD);
	return page;
}
