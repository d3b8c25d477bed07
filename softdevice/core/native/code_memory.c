/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/native/code_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/opt.h"

#define TOTAL ((size_t)64 << 20)
#define GRAIN ((size_t)4096)

/* A free range, as offsets; the list is sorted, and no two ranges touch. */
struct range {
	size_t from, to;
	struct range *next;
};

static struct {
	char *write, *run;
	struct range *free;
	pthread_mutex_t lock;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

#if defined(__x86_64__)
static void reserve(void)
{
	void *write = MAP_FAILED, *run = MAP_FAILED;
	struct rlimit file_size;

	/* above this limit ftruncate raises SIGXFSZ, also for memory */
	if (getrlimit(RLIMIT_FSIZE, &file_size) || file_size.rlim_cur < TOTAL)
		return;
	int fd = memfd_create("outboard-code", MFD_CLOEXEC);
	struct range *all = malloc(sizeof(*all));

	if (fd >= 0 && all && !ftruncate(fd, (off_t)TOTAL)) {
		write = mmap(NULL, TOTAL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		run = mmap(NULL, TOTAL, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	}
	if (fd >= 0)
		close(fd);
	if (write == MAP_FAILED || run == MAP_FAILED) {
		if (write != MAP_FAILED)
			munmap(write, TOTAL);
		if (run != MAP_FAILED)
			munmap(run, TOTAL);
		free(all);
		return;
	}
	/* the memory is shared, and a child must not share it */
	madvise(write, TOTAL, MADV_DONTFORK);
	madvise(run, TOTAL, MADV_DONTFORK);
	madvise(write, TOTAL, MADV_DONTDUMP);
	*all = (struct range){ 0, TOTAL, NULL };
	memory.write = write;
	memory.run = run;
	memory.free = all;
}

static void before_fork(void)
{
	pthread_mutex_lock(&memory.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&memory.lock);
}

/* A child process makes its own code, for programs that it loads. */
static void in_child(void)
{
	memory.write = memory.run = NULL;
	for (struct range *r = memory.free, *next; r; r = next) {
		next = r->next;
		free(r);
	}
	memory.free = NULL;
	pthread_mutex_init(&memory.lock, NULL);
	reserve();
}

__attribute__((constructor)) static void start(void)
{
	/* without the handlers a child would take the parent's range for its own */
	if (ob_opt_on(OB_OPT_JIT) && !pthread_atfork(before_fork, in_parent, in_child))
		reserve();
}
#endif

bool obd_code_memory_ready(void)
{
	return memory.run != NULL;
}

static size_t rounded(size_t size)
{
	return (size + GRAIN - 1) & ~(GRAIN - 1);
}

void *obd_code_memory_add(const void *code, size_t size)
{
	size_t n = rounded(size), at = TOTAL;

	if (!memory.run || !size || size > TOTAL)
		return NULL;
	pthread_mutex_lock(&memory.lock);
	for (struct range **p = &memory.free; *p; p = &(*p)->next) {
		struct range *r = *p;

		if (r->to - r->from < n)
			continue;
		at = r->from;
		r->from += n;
		if (r->from == r->to) {
			*p = r->next;
			free(r);
		}
		break;
	}
	pthread_mutex_unlock(&memory.lock);
	if (at == TOTAL)
		return NULL;
	memcpy(memory.write + at, code, size);
	return memory.run + at;
}

void obd_code_memory_remove(void *p, size_t size)
{
	size_t at = (size_t)((char *)p - memory.run), end = at + rounded(size);
	struct range **link = &memory.free, *fresh = malloc(sizeof(*fresh));

	/* gives the memory of the pages back */
	madvise(memory.write + at, end - at, MADV_REMOVE);
	pthread_mutex_lock(&memory.lock);
	while (*link && (*link)->to < at)
		link = &(*link)->next;
	if (*link && (*link)->to == at) {
		struct range *next = (*link)->next;

		(*link)->to = end;
		if (next && next->from == end) {
			(*link)->to = next->to;
			(*link)->next = next->next;
			free(next);
		}
	} else if (*link && (*link)->from == end) {
		(*link)->from = at;
	} else if (fresh) {
		*fresh = (struct range){ at, end, *link };
		*link = fresh;
		fresh = NULL;
	} /* else the range is lost to later code */
	pthread_mutex_unlock(&memory.lock);
	free(fresh);
}
