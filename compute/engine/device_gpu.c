/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A GPU accessed through the CUDA driver API. The state of one opening of it (a session: its
 * context, roots, copies of points) is reference-counted. After a failure that makes the context
 * unusable, `revive` opens a new session; copies of points made for the old session are made again
 * by the next product that needs them.
 */
#include "compute/engine/device_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "compute/engine/bases.h"
#include "compute/engine/engine.h"
#include "compute/gpu/gpu.h"
#include "compute/kzg/gpu.h"
#include "compute/msm/gpu.h"
#include "compute/msm/gpu_predict.h"
#include "compute/msm/gpu_measure.h"
#include "compute/msm/gpu_tune.h"
#include "compute/ntt/gpu.h"
#include "compute/rqa/gpu.h"

#define LINK_TRIES  5
#define CELLS_SHARE 16 /* inverse of the share of a device's memory for the table of cell proofs */

struct session {
	_Atomic unsigned refs; /* acq_rel: the last one frees */
	struct obk_gpu *gpu;
	struct obk_ntt_gpu *domain;
};

struct obv_gpu {
	const struct obk_gpu_driver *driver;
	unsigned ordinal;
	uint64_t most; /* most bytes to keep on the device; 0: all free memory */
	bool keep;     /* store profiles on disk */
	/* guards `session` against stats and read, which run on other threads */
	pthread_mutex_t lock;
	struct session *session;
};

/* A handle's points on this device, for products or for the proofs of cells. */
struct copy {
	struct obv_bases_copy link;
	/* acq_rel: the last one frees. Held by the handle and by gpu_plan while it uses the copy */
	_Atomic unsigned refs;
	struct session *session;
	struct obk_msm_gpu_bases *bases;
	struct obk_fk20_gpu *cells;
};

static void session_unref(struct session *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
#ifdef OBV_NTT_GPU
	obk_ntt_gpu_free(s->domain);
#endif
	obk_gpu_close(s->gpu);
	free(s);
}

static struct session *session_ref(struct obv_gpu *g)
{
	struct session *s;

	pthread_mutex_lock(&g->lock);
	s = g->session;
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&g->lock);
	return s;
}

static enum ob_err session_open(struct obv_gpu *g, struct session **ret, struct obk_fault *fault)
{
	struct session *s = calloc(1, sizeof(*s));
	enum ob_err err;

	if (!s)
		return obk_fault_set(
			fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM, "no memory for a device");
	err = obk_gpu_open(g->driver, g->ordinal, &s->gpu, fault);
	if (err) {
		free(s);
		return err;
	}
	atomic_init(&s->refs, 1);
	*ret = s;
	return OB_ERR_NONE;
}

/* Adds the name of the failed device in front of the message. */
static int fail(const struct obv_gpu *g, struct outboard_error *error, enum ob_err err,
	const struct obk_fault *fault)
{
	int status = obv_status_of(err);

	if (status == OUTBOARD_DEVICE && strncmp(fault->text, "GPU ", 4) != 0)
		return obv_fail(error, status, OUTBOARD_NO_ITEM, "GPU %u failed: %s", g->ordinal,
			fault->text);
	return obv_fail_fault(error, err, fault);
}

/* ---- work ---- */

static enum ob_err wait_event(struct session *s, void *event, struct obk_fault *fault)
{
	enum ob_err err = OB_ERR_NONE;

	if (!event)
		return OB_ERR_NONE;
	err = obk_gpu_enter(s->gpu, fault);
	if (err)
		return err;
	err = obk_gpu_check(s->gpu, obk_gpu_driver(s->gpu)->event_wait(event),
		"waiting for the event given as call.after", fault);
	obk_gpu_leave(s->gpu);
	return err;
}

static int gpu_read(void *self, void *to, uint64_t from, size_t bytes, void *after,
	struct outboard_error *error)
{
	struct obv_gpu *g = self;
	struct session *s = session_ref(g);
	struct obk_fault fault;
	enum ob_err err = wait_event(s, after, &fault);
	CUstream stream;

	if (!err)
		err = obk_gpu_enter(s->gpu, &fault);
	if (!err) {
		err = obk_gpu_stream_take(s->gpu, &stream, &fault);
		if (!err) {
			err = obk_gpu_read(s->gpu, stream, to, from, bytes, &fault);
			obk_gpu_stream_give(s->gpu, stream);
		}
		obk_gpu_leave(s->gpu);
	}
	session_unref(s);
	return fail(g, error, err, &fault);
}

#ifdef OBV_MSM_GPU
static void copy_free(struct obv_bases_copy *link)
{
	struct copy *c = (struct copy *)link;

	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	obk_fk20_gpu_free(c->cells);
	obk_msm_gpu_bases_free(c->bases);
	session_unref(c->session);
	free(c);
}

/* ---- measuring for the choice of MSM method ---- */

static void keep_tuning(const struct obv_gpu *g, struct session *s)
{
	struct obk_fault fault;

	if (g->keep && obk_msm_gpu_tune_store(s->gpu, &fault))
		ob_warn("GPU %u: %s; it is used until this process ends", g->ordinal, fault.text);
}

/*
 * Measures the device when a large handle is uploaded, once per device, if it has no profile.
 * Errors are ignored here; the upload will report them. The measurement does not end early when the
 * call is cancelled, so it is not made for calls with a time limit or for points that are used only
 * once (`hurried` in struct obv_msm_work).
 */
static void tune_device(const struct obv_gpu *g, struct session *s, size_t points)
{
	struct obk_msm_gpu_tuning tuning;
	struct obk_fault fault;

	obk_msm_gpu_tuning_get(s->gpu, &tuning);
	if (!g->keep || tuning.measured || points < OBV_TUNE_LAZY_POINTS || !ob_opt_on(OB_OPT_TUNE))
		return;
	if (!obk_msm_gpu_tune_measure(s->gpu, NULL, OBV_TUNE_LAZY_SECONDS, &fault))
		keep_tuning(g, s);
}

/* Afterwards, measures windows, once per size. */
static void tune_size(const struct obv_gpu *g, struct session *s,
	const struct obk_msm_gpu_bases *bases, size_t points)
{
	struct obk_fault fault;
	bool done;

	if (!g->keep || points < OBV_TUNE_LAZY_POINTS || !ob_opt_on(OB_OPT_TUNE))
		return;
	if (!obk_msm_gpu_tune_window(
		    bases, points, NULL, OBV_TUNE_LAZY_SECONDS, false, &done, &fault) &&
		done)
		keep_tuning(g, s);
}

static enum ob_err upload_bases(const struct obv_gpu *g, const struct outboard_bases *b,
	bool hurried, struct copy *c, struct obk_fault *fault)
{
	const struct obk_msm_bases_args args = { .points = b->points,
		.count = b->count,
		.format = OBK_POINT_AFFINE,
		.trust = b->trust,
		.table_bytes = b->table_bytes };
	struct obk_msm_gpu_info info;
	enum ob_err err;

	if (!hurried)
		tune_device(g, c->session, b->count);
	err = obk_msm_gpu_bases_new(c->session->gpu, &args, &c->bases, fault);
	if (!err) {
		if (!hurried)
			tune_size(g, c->session, c->bases, b->count);
		obk_msm_gpu_bases_info(c->bases, &info);
		c->link.bytes = info.bytes;
	}
	return err;
}

static enum ob_err upload_cells(const struct obv_gpu *g, const struct obv_cells_work *work,
	struct copy *c, struct obk_fault *fault)
{
	const struct obk_fk20_gpu_args args = { .points = work->points->points,
		.log_columns = OBK_FK20_LOG_COLUMNS,
		.terms = OBK_FK20_TERMS,
		.window = work->window,
		.table_bytes =
			(g->most ? g->most : obk_gpu_info(c->session->gpu)->memory) / CELLS_SHARE };
	struct obk_fk20_gpu_info info;
	enum ob_err err = obk_fk20_gpu_new(c->session->gpu, &args, &c->cells, fault);

	if (!err) {
		obk_fk20_gpu_info(c->cells, &info);
		c->link.bytes = info.bytes;
	}
	return err;
}

/*
 * The handle's points on this device; uploads them if necessary. Only this device's thread adds or
 * removes its own copy. cells: for the proofs of these cells; NULL: for products. hurried: do not
 * measure the device now.
 */
static enum ob_err copy_get(struct obv_gpu *g, struct session *s, struct outboard_bases *b,
	const struct obv_cells_work *cells, bool hurried, const struct copy **ret,
	struct obk_fault *fault)
{
	struct obv_bases_copy **at;
	struct copy *c = NULL, *stale = NULL;
	enum ob_err err;

	pthread_mutex_lock(&b->lock);
	for (at = &b->copies; *at && (*at)->owner != g; at = &(*at)->next)
		;
	if (*at && ((struct copy *)*at)->session == s) {
		c = (struct copy *)*at;
	} else if (*at) {
		stale = (struct copy *)*at;
		*at = stale->link.next;
	}
	pthread_mutex_unlock(&b->lock);
	if (stale)
		copy_free(&stale->link);
	if (c) {
		*ret = c;
		return OB_ERR_NONE;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for a copy of the points");
	c->session = s;
	atomic_init(&c->refs, 1);
	err = cells ? upload_cells(g, cells, c, fault) : upload_bases(g, b, hurried, c, fault);
	if (err) {
		free(c);
		return err;
	}
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	c->link.owner = g;
	c->link.free = copy_free;
	pthread_mutex_lock(&b->lock);
	c->link.next = b->copies;
	b->copies = &c->link;
	pthread_mutex_unlock(&b->lock);
	*ret = c;
	return OB_ERR_NONE;
}

static void gpu_progress(void *arg, double done)
{
	const struct obv_msm_work *work = arg;

	work->progress(work->progress_arg, done);
}

/*
 * Copies of other handles may fill the device: frees what the memory pool keeps, so that the caller
 * can try once more.
 */
static bool made_room(struct session *s, const struct obv_gpu *g, enum ob_err err)
{
	struct obk_gpu_stats stats;
	struct obk_fault fault;

	obk_gpu_stats(s->gpu, &stats);
	if ((err != OB_ERR_NO_MEMORY && !(g->most && stats.in_use + stats.idle > g->most)) ||
		!stats.idle || obk_gpu_enter(s->gpu, &fault))
		return false;
	obk_gpu_trim(s->gpu);
	obk_gpu_leave(s->gpu);
	return err == OB_ERR_NO_MEMORY;
}

static enum ob_err msm_once(struct obv_gpu *g, struct session *s, const struct obv_msm_work *work,
	struct obk_g1_affine *ret, struct obk_fault *fault)
{
	struct obk_msm_job job = work->job;
	const struct copy *copy = NULL;
	enum ob_err err = copy_get(g, s, work->bases, NULL, work->hurried, &copy, fault);

	if (err)
		return err;
	job.progress = work->progress ? gpu_progress : NULL;
	job.progress_arg = (void *)(uintptr_t)work;
	return obk_msm_gpu_run(copy->bases, &job,
		work->memory ? (CUdeviceptr)(uintptr_t)job.scalars : 0, ret, fault);
}

static int gpu_msm(void *self, const struct obv_msm_work *work, struct obk_g1_affine *ret,
	struct outboard_error *error)
{
	struct obv_gpu *g = self;
	struct session *s = session_ref(g);
	struct obk_fault fault;
	enum ob_err err = work->memory ? wait_event(s, work->after, &fault) : OB_ERR_NONE;

	if (!err) {
		err = msm_once(g, s, work, ret, &fault);
		if (made_room(s, g, err))
			err = msm_once(g, s, work, ret, &fault);
	}
	session_unref(s);
	return fail(g, error, err, &fault);
}

static enum ob_err cells_once(struct obv_gpu *g, struct session *s,
	const struct obv_cells_work *work, struct obk_g1_affine *ret, struct obk_fault *fault)
{
	const struct copy *copy = NULL;
	enum ob_err err = copy_get(g, s, work->points, work, true, &copy, fault);

	return err ? err
		   : obk_fk20_gpu_prove(
			     copy->cells, work->scalars, work->blobs, ret, work->pool, fault);
}

static int gpu_cells(void *self, const struct obv_cells_work *work, struct obk_g1_affine *ret,
	struct outboard_error *error)
{
	struct obv_gpu *g = self;
	struct session *s = session_ref(g);
	struct obk_fault fault;
	enum ob_err err = cells_once(g, s, work, ret, &fault);

	if (made_room(s, g, err))
		err = cells_once(g, s, work, ret, &fault);
	session_unref(s);
	return fail(g, error, err, &fault);
}
#endif

#ifdef OBV_MSM_GPU
#define LEAST_LOG 8
#define MOST_LOG  16

static int gpu_tune(
	void *self, struct outboard_bases *bases, double seconds, struct outboard_error *error)
{
	struct obv_gpu *g = self;
	double weights = seconds / 2 < OBV_TUNE_SECONDS ? seconds / 2 : OBV_TUNE_SECONDS;
	const struct copy *copy = NULL;
	struct obk_fault fault;
	struct session *s;
	enum ob_err err;
	bool done;

	if (!ob_opt_on(OB_OPT_TUNE))
		return OUTBOARD_OK;
	s = session_ref(g);
	err = obk_msm_gpu_tune_measure(s->gpu, NULL, weights, &fault);
	for (unsigned log = LEAST_LOG; log <= MOST_LOG && !err; log += 2) {
		size_t n = (size_t)1 << log;
		uint64_t from = ob_clock_ns();

		err = n > bases->count || copy ? OB_ERR_NONE
					       : copy_get(g, s, bases, NULL, true, &copy, &fault);
		if (!err && copy && n <= bases->count)
			err = obk_msm_gpu_tune_window(
				copy->bases, n, NULL, (seconds - weights) / 2, true, &done, &fault);
		seconds -= (double)(ob_clock_ns() - from) / 1e9;
	}
	if (!err)
		keep_tuning(g, s);
	session_unref(s);
	return fail(g, error, err, &fault);
}

#define BLOB_POINTS 4096

static double gpu_expect(void *self, uint32_t operation, double size)
{
	struct session *s = session_ref(self);
	bool blobs = operation == OUTBOARD_OP_KZG;
	struct obk_msm_gpu_work work = { .n = blobs ? BLOB_POINTS : (size_t)size,
		.products = blobs ? (size_t)size : 1 };
	struct obk_msm_gpu_tuning tuning;
	double seconds = 0;

	obk_msm_gpu_tuning_get(s->gpu, &tuning);
	if (tuning.measured && (operation == OUTBOARD_OP_MSM || blobs)) {
		obk_msm_gpu_plan(&tuning, &work.plan, 1, 0, true, work.n, work.products);
		seconds = obk_msm_gpu_seconds(&tuning, &work);
	}
	session_unref(s);
	return seconds;
}

/* The size of a table for which there is memory besides the points, at most `asked` bytes. */
static enum ob_err table_room(
	struct session *s, size_t points, size_t asked, size_t *ret, struct obk_fault *fault)
{
	size_t room, own = points * sizeof(struct obk_g1_affine);
	enum ob_err err = obk_gpu_enter(s->gpu, fault);

	if (err)
		return err;
	err = obk_gpu_room(s->gpu, &room, fault);
	obk_gpu_leave(s->gpu);
	if (err)
		return err;
	room = room > own ? room - own : 0;
	*ret = asked < room ? asked : room;
	return OB_ERR_NONE;
}

/* The handle's copy in this session, or NULL; release it with copy_free. */
static struct copy *copy_ref(
	const struct obv_gpu *g, const struct session *s, struct outboard_bases *b)
{
	struct obv_bases_copy *at;

	pthread_mutex_lock(&b->lock);
	for (at = b->copies; at && (at->owner != g || ((const struct copy *)at)->session != s);
		at = at->next)
		;
	if (at)
		atomic_fetch_add_explicit(&((struct copy *)at)->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&b->lock);
	return (struct copy *)at;
}

/* Describes the existing copy, or the one that would be made. */
static int gpu_plan(void *self, struct outboard_bases *b, size_t n, size_t batch,
	struct outboard_plan *ret_plan, struct outboard_error *error)
{
	struct obv_gpu *g = self;
	struct session *s = session_ref(g);
	struct copy *at = copy_ref(g, s, b);
	struct obk_msm_gpu_info info = { 0 };
	struct obk_msm_gpu_prediction prediction;
	struct obk_fault fault;
	size_t table;
	enum ob_err err;

	if (at) {
		obk_msm_gpu_bases_info(at->bases, &info);
		err = obk_msm_gpu_predict(at->bases, n, batch, &prediction, &fault);
	} else {
		err = table_room(s, b->count, b->table_bytes, &table, &fault);
		err = err ? err
			  : obk_msm_gpu_predict_new(s->gpu, b->count, b->trust != OBK_TRUST_CURVE,
				    table, n, batch, &info, &prediction, &fault);
	}
	if (!err)
		*ret_plan = (struct outboard_plan){ .method = info.multiples ? OUTBOARD_MULTIPLES
				: info.shifts > 1                            ? OUTBOARD_COPIES
									     : OUTBOARD_BUCKETS,
			.window = prediction.plan.window,
			.copies = info.shifts,
			.measured = prediction.measured,
			.group = prediction.products,
			.bytes = at ? info.bytes : 0,
			.seconds = prediction.seconds };
	if (at)
		copy_free(&at->link);
	session_unref(s);
	return fail(g, error, err, &fault);
}
#endif

#ifdef OBV_NTT_GPU
static int gpu_ntt(void *self, const struct obv_ntt_work *work, struct outboard_error *error)
{
	struct obv_gpu *g = self;
	struct session *s = session_ref(g);
	struct obk_fault fault;
	enum ob_err err = work->on_device ? wait_event(s, work->after, &fault) : OB_ERR_NONE;

	if (!err && !s->domain)
		/* no lock is needed: only this device's thread executes this */
		err = obk_ntt_gpu_new(s->gpu, &s->domain, &fault);
	if (!err && work->on_device)
		err = obk_ntt_gpu_run_device(
			s->domain, &work->job, (CUdeviceptr)(uintptr_t)work->data, NULL, &fault);
	else if (!err)
		err = obk_ntt_gpu_run(s->domain, &work->job, work->data, &fault);
	session_unref(s);
	return fail(g, error, err, &fault);
}
#endif

static int gpu_with(void *self, int (*fn)(void *arg, struct obk_gpu *gpu), void *arg)
{
	struct session *s = session_ref(self);
	int status = fn(arg, s->gpu);

	session_unref(s);
	return status;
}

/* ---- life ---- */

static void gpu_stats(void *self, struct outboard_device *device)
{
	struct session *s = session_ref(self);
	struct obk_gpu_stats stats;

	obk_gpu_stats(s->gpu, &stats);
	device->pool_used = stats.in_use;
	device->pool_kept = stats.idle;
	device->pool_peak = stats.high_water;
	device->pool_requests = stats.taken;
	device->pool_reused = stats.reused;
	session_unref(s);
}

static int gpu_revive(void *self, struct outboard_error *error)
{
	struct obv_gpu *g = self;
	struct session *fresh = NULL, *old;
	struct obk_fault fault;
	enum ob_err err;

	if (!obk_gpu_lost(g->session->gpu))
		return OUTBOARD_OK;
	err = session_open(g, &fresh, &fault);
	if (err)
		return fail(g, error, err, &fault);
	pthread_mutex_lock(&g->lock);
	old = g->session;
	g->session = fresh;
	pthread_mutex_unlock(&g->lock);
	session_unref(old);
	return OUTBOARD_OK;
}

static void gpu_close(void *self)
{
	struct obv_gpu *g = self;

	session_unref(g->session);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

static const struct obv_backend_ops gpu_ops = {
	.close = gpu_close,
	.read = gpu_read,
	.stats = gpu_stats,
	.revive = gpu_revive,
	.with_gpu = gpu_with,
#ifdef OBV_MSM_GPU
	.msm = gpu_msm,
	.tune = gpu_tune,
	.expect = gpu_expect,
	.plan = gpu_plan,
	.cells = gpu_cells,
#endif
#ifdef OBV_NTT_GPU
	.ntt = gpu_ntt,
#endif
};

/* Seconds for a call that waits for an answer: the fastest of several. */
static double measure_link(struct obk_gpu *gpu)
{
	uint64_t best = OB_NEVER;
	struct obk_fault fault;
	size_t room;

	if (obk_gpu_enter(gpu, &fault))
		return 0;
	for (unsigned i = 0; i < LINK_TRIES; i++) {
		uint64_t start = ob_clock_ns(), took;

		if (obk_gpu_room(gpu, &room, &fault))
			break;
		took = ob_clock_ns() - start;
		best = took < best ? took : best;
	}
	obk_gpu_leave(gpu);
	return best == OB_NEVER ? 0 : (double)best / 1e9;
}

unsigned obv_device_gpu_count(const char *driver, struct outboard_error *error)
{
	const struct obk_gpu_driver *d;
	struct obk_fault fault;
	enum ob_err err = obk_gpu_driver_open(driver, &d, &fault);

	if (err) {
		obv_fail_fault(error, err, &fault);
		return 0;
	}
	return d->devices;
}

int obv_device_gpu_open(const char *driver, unsigned ordinal, uint64_t memory, bool keep,
	struct obv_backend *ret_backend, struct outboard_error *error)
{
	struct obv_gpu *g = calloc(1, sizeof(*g));
	const struct obk_gpu_info *info;
	struct obk_fault fault;
	enum ob_err err;

	if (!g)
		return obv_fail(
			error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for a device");
	g->ordinal = ordinal;
	g->most = memory;
	g->keep = keep;
	err = obk_gpu_driver_open(driver, &g->driver, &fault);
	if (!err && ordinal >= g->driver->devices)
		err = obk_fault_set(&fault, OB_ERR_DRIVER, OBK_FAULT_NO_ITEM,
			"the driver shows %u devices", g->driver->devices);
	if (!err)
		err = session_open(g, &g->session, &fault);
	if (err) {
		free(g);
		return obv_fail(error, OUTBOARD_NO_DEVICE, ordinal, "GPU %u cannot be opened: %s",
			ordinal, fault.text);
	}
	pthread_mutex_init(&g->lock, NULL);
#ifdef OBV_MSM_GPU
	if (obk_msm_gpu_tune_load(g->session->gpu, &fault))
		ob_warn("GPU %u: %s; until then, plans of products are estimates", ordinal,
			fault.text);
#endif
	info = obk_gpu_info(g->session->gpu);
	*ret_backend = (struct obv_backend){ .ops = &gpu_ops,
		.self = g,
		.kind = OUTBOARD_GPU,
		.units = info->processors,
		.memory = info->memory,
		.clock = info->clock_khz / 1e6,
		.link = measure_link(g->session->gpu) };
#ifdef OBV_MSM_GPU
	ret_backend->operations |= 1u << OUTBOARD_OP_MSM | 1u << OUTBOARD_OP_KZG;
#endif
#ifdef OBV_NTT_GPU
	ret_backend->operations |= 1u << OUTBOARD_OP_NTT;
#endif
	if (obk_rqa_gpu_built())
		ret_backend->operations |= 1u << OUTBOARD_OP_RQA;
	snprintf(ret_backend->name, sizeof(ret_backend->name), "gpu:%u", ordinal);
	snprintf(ret_backend->what, sizeof(ret_backend->what), "%.120s", info->name);
	return OUTBOARD_OK;
}
