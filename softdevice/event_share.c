/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/event_share.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "softdevice/context.h"
#include "softdevice/dry_clock.h"
#include "softdevice/sched.h"
#include "softdevice/window.h"

#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SLOTS      64u /* recordings that are known apart */
#define POLL_NS    20000
#define OWNER_NS   (50 * OB_MS) /* between looks for the owner of a recording */
#define OWNER_BITS 24

/*
 * In memory that other processes write: every value may be wrong. Recording n has the slot n %
 * SLOTS. An older one that shares the slot counts as complete when it is.
 */
struct page {
	char magic[8];
	_Atomic uint64_t recorded;     /* number of the last recording; 0: none */
	_Atomic uint32_t participants; /* processes that have recorded */
	struct {
		_Atomic uint64_t done;  /* number of a complete recording */
		_Atomic uint64_t owner; /* number << OWNER_BITS | participant */
	} slots[SLOTS];
};
_Static_assert(sizeof(struct page) <= OBD_PAGE, "one page");

static const char magic[8] = "obd-evt1";

struct obd_shared_event {
	_Atomic int refs;
	int fd; /* passed to other processes; has no lock */
	struct page *page;
	/* this object's participant number, whose byte it has locked; 0: not yet */
	_Atomic uint32_t me;
	/*
	 * The same file, opened anew, because a lock belongs to an open file: it must end neither
	 * later than this process nor when another descriptor is closed. -1: not yet. Under
	 * `owners_lock`, as are the two links.
	 */
	int own_fd;
	struct obd_shared_event *next, **link; /* in `owners` */
};

static struct obd_shared_event *owners; /* the objects that have an own_fd */
static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;

/* A recording, or a wait for one. */
struct event_op {
	struct obd_op op;
	struct obd_shared_event *event; /* one reference */
	uint64_t number;
};

/* ---- objects ---- */

static struct obd_shared_event *event_on(int fd)
{
	struct obd_shared_event *event = calloc(1, sizeof *event);
	void *page = mmap(NULL, OBD_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (!event || page == MAP_FAILED) {
		if (page != MAP_FAILED)
			munmap(page, OBD_PAGE);
		free(event);
		return NULL;
	}
	atomic_init(&event->refs, 1);
	event->fd = fd;
	event->own_fd = -1;
	event->page = page;
	return event;
}

struct obd_shared_event *obd_shared_event_new(void)
{
	int fd = memfd_create("outboard-event", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct obd_shared_event *event = NULL;

	if (fd < 0)
		return NULL;
	if (ftruncate(fd, OBD_PAGE) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		event = event_on(fd);
	if (event)
		memcpy(event->page->magic, magic, sizeof magic);
	else
		close(fd);
	return event;
}

static struct obd_shared_event *event_ref(struct obd_shared_event *event)
{
	atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
	return event;
}

void obd_shared_event_unref(struct obd_shared_event *event)
{
	/* Acquire and release: the last one sees what the others did with the event. */
	if (!event || atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) > 1)
		return;
	pthread_mutex_lock(&owners_lock);
	if (event->own_fd >= 0) {
		close(event->own_fd);
		*event->link = event->next;
		if (event->next)
			event->next->link = event->link;
	}
	pthread_mutex_unlock(&owners_lock);
	munmap(event->page, OBD_PAGE);
	close(event->fd);
	free(event);
}

/* ---- names ---- */

void obd_shared_event_name(const struct obd_shared_event *event, struct obf_share *ret)
{
	ret->id[0] = (uint64_t)getpid();
	ret->id[1] = (uint64_t)event->fd;
}

int obd_shared_event_fd(const CUipcEventHandle *handle)
{
	struct obf_share share;

	memcpy(&share, handle, sizeof share);
	return (int)share.id[1];
}

void obd_shared_event_set_fd(CUipcEventHandle *handle, int fd)
{
	struct obf_share share;

	memcpy(&share, handle, sizeof share);
	share.id[0] = 0;
	share.id[1] = (uint64_t)fd;
	memcpy(handle, &share, sizeof share);
}

static int name_open(const struct obf_share *share)
{
	char path[64];

	if (share->id[0] > INT32_MAX || share->id[1] > INT32_MAX)
		return -1;
	if (share->id[0] == 0)
		return fcntl((int)share->id[1], F_DUPFD_CLOEXEC, 0);
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)share->id[0], (int)share->id[1]);
	return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Whether the file is an event of a software device, whose size no process can change any more. */
static bool is_event(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	char found[sizeof magic];
	struct stat stat;

	return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &stat) == 0 &&
		stat.st_size == (off_t)OBD_PAGE &&
		pread(fd, found, sizeof found, 0) == (ssize_t)sizeof found &&
		memcmp(found, magic, sizeof magic) == 0;
}

CUresult obd_shared_event_open(const struct obf_share *share, struct obd_shared_event **ret)
{
	int fd;

	if (share->id[0] == (uint64_t)getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	fd = name_open(share);
	if (fd < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = is_event(fd) ? event_on(fd) : NULL;
	if (*ret)
		return CUDA_SUCCESS;
	close(fd);
	return CUDA_ERROR_INVALID_HANDLE;
}

/* ---- recordings ---- */

static bool is_done(const struct obd_shared_event *event, uint64_t number)
{
	/* Acquire: what the recording's stream has written before is seen now. */
	return atomic_load_explicit(
		       &event->page->slots[number % SLOTS].done, memory_order_acquire) >= number;
}

/* Whether the process that made the recording has ended without completing it. */
static bool is_orphan(const struct obd_shared_event *event, uint64_t number)
{
	uint64_t owner = atomic_load(&event->page->slots[number % SLOTS].owner);
	uint32_t participant = (uint32_t)(owner & ((1u << OWNER_BITS) - 1));
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = participant, .l_len = 1
	};

	return owner >> OWNER_BITS == number && participant != atomic_load(&event->me) &&
		fcntl(event->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

static void before_fork(void)
{
	pthread_mutex_lock(&owners_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&owners_lock);
}

/* The child has the parent's open files, and must not keep their locks. */
static void in_child(void)
{
	for (struct obd_shared_event *event = owners; event; event = event->next) {
		close(event->own_fd);
		event->own_fd = -1;
	}
	owners = NULL;
	pthread_mutex_unlock(&owners_lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

/* Takes the number's byte. Under owners_lock. */
static bool own(struct obd_shared_event *event, uint32_t number)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1
	};
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", event->fd);
	event->own_fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (event->own_fd < 0)
		return false;
	event->next = owners;
	event->link = &owners;
	if (owners)
		owners->link = &event->next;
	owners = event;
	return fcntl(event->own_fd, F_OFD_SETLK, &lock) == 0;
}

/* This object's number. 0: none could be taken; then a recording has no owner that can end. */
static uint32_t participant(struct obd_shared_event *event)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t me = atomic_load(&event->me);

	if (me)
		return me;
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&owners_lock);
	me = atomic_load(&event->me);
	if (!me && event->own_fd < 0) {
		me = atomic_fetch_add(&event->page->participants, 1) + 1;
		me = me < 1u << OWNER_BITS && own(event, me) ? me : 0;
		atomic_store(&event->me, me);
	}
	pthread_mutex_unlock(&owners_lock);
	return me;
}

static void record_fini(struct obd_op *base)
{
	struct event_op *op = (struct event_op *)base;
	_Atomic uint64_t *done = &op->event->page->slots[op->number % SLOTS].done;
	uint64_t now = atomic_load(done);

	/* Release: see is_done. */
	while (now < op->number &&
		!atomic_compare_exchange_weak_explicit(
			done, &now, op->number, memory_order_release, memory_order_relaxed))
		;
	obd_shared_event_unref(op->event);
}

static void wait_fini(struct obd_op *base)
{
	obd_shared_event_unref(((struct event_op *)base)->event);
}

static void record_run(struct obd_op *op)
{
	obd_dry_wait(op->ready_ns, &op->ctx->abort); /* other processes see the event */
}

static void number_wait(
	const struct obd_shared_event *event, uint64_t number, const struct obd_ctx *ctx)
{
	uint64_t look = ob_clock_ns() + OWNER_NS;

	while (!is_done(event, number) &&
		!atomic_load_explicit(&ctx->abort, memory_order_relaxed) && !obd_ctx_failed(ctx)) {
		if (ob_clock_ns() > look) {
			if (is_orphan(event, number))
				return;
			look = ob_clock_ns() + OWNER_NS;
		}
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	}
}

static void wait_run(struct obd_op *base)
{
	const struct event_op *op = (struct event_op *)base;

	number_wait(op->event, op->number, base->ctx);
}

static struct event_op *op_new(struct obd_shared_event *event, struct obd_stream *stream)
{
	struct event_op *op = obd_op_new(sizeof *op, OBD_OP_COPY, stream->ctx);

	if (op)
		op->event = event_ref(event);
	return op;
}

CUresult obd_shared_event_record(struct obd_shared_event *event, struct obf_stream *base)
{
	struct obd_stream *stream = obd_stream_of(base);
	uint32_t me = participant(event);
	struct event_op *op = op_new(event, stream);
	CUresult result;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = record_run;
	op->op.fini = record_fini;
	op->number = atomic_fetch_add(&event->page->recorded, 1) + 1;
	if (me)
		atomic_store(&event->page->slots[op->number % SLOTS].owner,
			op->number << OWNER_BITS | me);
	result = obd_sched_submit(&op->op, stream, NULL);
	obd_op_unref(&op->op);
	return result;
}

CUresult obd_shared_event_query(const struct obd_shared_event *event)
{
	uint64_t number = atomic_load(&event->page->recorded);

	return is_done(event, number) || is_orphan(event, number) ? CUDA_SUCCESS
								  : CUDA_ERROR_NOT_READY;
}

void obd_shared_event_wait(const struct obd_shared_event *event, struct obd_ctx *ctx)
{
	number_wait(event, atomic_load(&event->page->recorded), ctx);
}

CUresult obd_shared_event_stream_wait(struct obd_shared_event *event, struct obf_stream *base)
{
	struct obd_stream *stream = obd_stream_of(base);
	uint64_t number = atomic_load(&event->page->recorded);
	struct event_op *op;
	CUresult result;

	if (is_done(event, number))
		return CUDA_SUCCESS;
	op = op_new(event, stream);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = wait_run;
	op->op.fini = wait_fini;
	op->op.unbounded_wait = true; /* another process determines how long the wait takes */
	op->number = number;
	result = obd_sched_submit(&op->op, stream, NULL);
	obd_op_unref(&op->op);
	return result;
}
