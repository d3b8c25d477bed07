/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

/*
 * descriptors at and above OB_FD_HIGH that the raised limit allows. If the limit cannot be raised,
 * the search starts ROOM / 4 below it
 */
#define ROOM 256

static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;

static int duplicate(int fd)
{
	struct rlimit old, raised;
	bool raises;
	int high;

	if (getrlimit(RLIMIT_NOFILE, &old) != 0)
		return fcntl(fd, F_DUPFD_CLOEXEC, OB_FD_HIGH);
	raised = old;
	raised.rlim_cur = OB_FD_HIGH + ROOM;
	raises = old.rlim_cur < raised.rlim_cur && old.rlim_max >= raised.rlim_cur &&
		setrlimit(RLIMIT_NOFILE, &raised) == 0;
	high = fcntl(fd, F_DUPFD_CLOEXEC, OB_FD_HIGH);
	if (raises)
		setrlimit(RLIMIT_NOFILE, &old);
	for (rlim_t room = ROOM / 4; high < 0 && room && old.rlim_cur <= OB_FD_HIGH; room /= 4)
		if (old.rlim_cur > 2 * room)
			high = fcntl(fd, F_DUPFD_CLOEXEC, (int)(old.rlim_cur - room));
	return high;
}

int ob_fd_raise(int fd)
{
	int high;

	if (fd < 0 || fd >= OB_FD_HIGH)
		return fd;
	pthread_mutex_lock(&limit_lock);
	high = duplicate(fd);
	pthread_mutex_unlock(&limit_lock);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

struct ob_file ob_fd_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (struct ob_file){ st.st_dev, st.st_ino }
				   : (struct ob_file){ 0, 0 };
}

bool ob_fd_is(int fd, const struct ob_file *file)
{
	struct ob_file now;

	if (!file->ino)
		return true;
	now = ob_fd_file(fd);
	return now.ino == file->ino && now.dev == file->dev;
}
