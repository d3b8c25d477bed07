/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/reservation_page.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct obs_reservation_page *obs_reservation_page;

bool obs_reservation_page_adopt(int fd)
{
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		st.st_size == (off_t)sizeof *obs_reservation_page)
		p = mmap(NULL, sizeof *obs_reservation_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return false;
	obs_reservation_page = p;
	return true;
}

struct obs_reservation_page *obs_reservation_page_new(int *ret_fd)
{
	int fd = memfd_create("outboard-reservation", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p = MAP_FAILED;

	/* Sealed: a worker that shrank the file would end the supervisor by SIGBUS. */
	if (fd >= 0 && ftruncate(fd, sizeof *obs_reservation_page) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		p = mmap(NULL, sizeof *obs_reservation_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			0);
	if (p == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	*ret_fd = fd;
	return p;
}

void obs_reservation_page_free(struct obs_reservation_page *page)
{
	if (page)
		munmap(page, sizeof *page);
}
