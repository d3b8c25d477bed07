/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/stats_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct obs_stats_page own;
struct obs_stats_page *obs_stats_page = &own;

void obs_stats_page_adopt(void)
{
	struct stat st;
	void *p;

	if (fstat(OBS_STATS_PAGE_FD, &st) != 0 || !S_ISREG(st.st_mode) ||
		st.st_size != (off_t)sizeof own)
		return;
	p = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, OBS_STATS_PAGE_FD, 0);
	if (p != MAP_FAILED)
		obs_stats_page = p;
	close(OBS_STATS_PAGE_FD);
}

struct obs_stats_page *obs_stats_page_new(int *ret_fd)
{
	int fd = memfd_create("outboard-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p = MAP_FAILED;

	/*
	 * Sealed: if a worker could shrink the file, reading it would end the supervisor by SIGBUS.
	 */
	if (fd >= 0 && ftruncate(fd, sizeof own) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		p = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	*ret_fd = fd;
	return p;
}

void obs_stats_page_free(struct obs_stats_page *page)
{
	if (page)
		munmap(page, sizeof *page);
}
