/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The executor's side of copies whose bytes travel over the stripes (server/worker/stripe.h has an
 * overview).
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/worker/ops/ops.h"
#include "server/worker/stripe.h"

#define LOOK_NS (250 * OB_MS) /* between checks of a transfer for progress */

/* The copy that this thread executes. flying: slots whose device copy was started, oldest first. */
struct pump {
	struct obs_exec *x;
	struct obs_stripes *stripes;
	struct obs_transfer *t;
	CUstream stream;
	CUresult result;
	uint64_t addr, next; /* reads: where the next piece begins */
	struct obs_stripe_queue flying;
};

/* ---- the transfer ---- */

/*
 * Allocates slots for the connected stripes: two each, so that one is filled while the other is
 * copied, and two more.
 */
static uint32_t slots_have(struct obs_stripes *stripes, const struct obs_driver *drv)
{
	uint32_t want = stripes->set ? 2 * stripes->set->n + 2 : 0;

	while (stripes->n_slots < ob_min(want, OBS_STRIPE_SLOTS_MAX)) {
		struct obs_stripe_slot *slot = &stripes->slots[stripes->n_slots];
		void *p = mmap(NULL, OBP_CHUNK_MAX, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			break;
		/* Without the registration copies are slower, not wrong. */
		drv->cuMemHostRegister_v2(p, OBP_CHUNK_MAX, CU_MEMHOSTREGISTER_PORTABLE);
		slot->data = p;
		stripes->n_slots++;
		obs_stripe_put(&stripes->free, slot);
	}
	return stripes->n_slots;
}

/* False: there are no stripes, or another transfer is active; this one then is over. */
static bool transfer_open(
	struct pump *pump, const struct obp_record *rec, uint64_t id, uint64_t size, bool write)
{
	struct obs_stripes *stripes = pump->stripes;
	struct obs_transfer *t = pump->t;
	bool open;

	pthread_mutex_lock(&stripes->lock);
	if (id <= stripes->last || (t->open && id <= t->id)) {
		pthread_mutex_unlock(&stripes->lock);
		obs_violation(
			pump->x, rec, "the number of a transfer is not above that of the last one");
	}
	/* A broken set exists until its last thread has left it. */
	open = !t->open && stripes->set && !atomic_load(&stripes->set->gate.closed) &&
		slots_have(stripes, pump->x->drv) > 0;
	if (open)
		*t = (struct obs_transfer){ .id = id,
			.size = size,
			.touched = ob_clock_ns(),
			.set = stripes->set,
			.open = true,
			.write = write };
	else if (!t->open)
		stripes->last = id;
	pthread_cond_broadcast(&stripes->changed);
	pthread_mutex_unlock(&stripes->lock);
	return open;
}

/* Under the lock. */
static void transfer_close(struct pump *pump)
{
	struct obs_stripes *stripes = pump->stripes;
	struct obs_transfer *t = pump->t;
	struct obs_stripe_slot *slot;

	t->open = false;
	stripes->last = t->id;
	/* its last stripe ended meanwhile and left freeing the set to this thread */
	if (t->set->n == 0)
		free(t->set);
	while ((slot = obs_stripe_get(&stripes->full)))
		obs_stripe_put(&stripes->free, slot);
	pthread_cond_broadcast(&stripes->changed);
}

/* Under the lock: waits for a change. Fails a transfer without progress for OBS_STRIPE_STALL_NS. */
static void transfer_wait(struct pump *pump)
{
	struct obs_transfer *t = pump->t;
	struct timespec until;
	uint64_t moved;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_NS;
	if (until.tv_nsec >= (long)OB_SECOND) {
		until.tv_nsec -= (long)OB_SECOND;
		until.tv_sec++;
	}
	if (pthread_cond_timedwait(&pump->stripes->changed, &pump->stripes->lock, &until) !=
			ETIMEDOUT ||
		t->failed)
		return;
	moved = ob_max(atomic_load(&t->set->gate.moved), t->touched);
	if (ob_clock_ns() > moved + OBS_STRIPE_STALL_NS) {
		ob_info("session %016llx: stripes closed: no byte was moved for %u s",
			(unsigned long long)pump->x->session->id,
			(unsigned)(OBS_STRIPE_STALL_NS / OB_SECOND));
		obs_stripe_break(pump->stripes, t->set);
	}
}

/* ---- copies in the stream ---- */

/* Without the lock: notes that the slot's device copy was started. */
static void slot_fly(struct pump *pump, struct obs_stripe_slot *slot)
{
	const struct obs_driver *drv = pump->x->drv;

	if (!slot->event &&
		drv->cuEventCreate(&slot->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
		slot->event = NULL;
	slot->marked = slot->event && drv->cuEventRecord(slot->event, pump->stream) == CUDA_SUCCESS;
	obs_stripe_put(&pump->flying, slot);
}

/* Without the lock: waits for the oldest device copy. Returns its slot; NULL: none was started. */
static struct obs_stripe_slot *slot_land(struct pump *pump)
{
	const struct obs_driver *drv = pump->x->drv;
	struct obs_stripe_slot *slot = obs_stripe_get(&pump->flying);
	CUresult result;

	if (!slot)
		return NULL;
	result = slot->marked ? drv->cuEventSynchronize(slot->event)
			      : drv->cuStreamSynchronize(pump->stream);
	slot->marked = false;
	if (pump->result == CUDA_SUCCESS)
		pump->result = result;
	return slot;
}

/* Without the lock: true if the oldest device copy is done. */
static bool slot_landed(struct pump *pump)
{
	struct obs_stripe_slot *slot = pump->flying.first;

	return slot && slot->marked && pump->x->drv->cuEventQuery(slot->event) == CUDA_SUCCESS;
}

/*
 * Without the lock. Events belong to the context, which may be destroyed before the next transfer.
 */
static void events_drop(struct pump *pump)
{
	for (uint32_t i = 0; i < pump->stripes->n_slots; i++) {
		if (pump->stripes->slots[i].event)
			pump->x->drv->cuEventDestroy_v2(pump->stripes->slots[i].event);
		pump->stripes->slots[i].event = NULL;
	}
}

static void slot_return(
	struct pump *pump, struct obs_stripe_queue *queue, struct obs_stripe_slot *slot)
{
	pthread_mutex_lock(&pump->stripes->lock);
	pump->t->touched = ob_clock_ns();
	obs_stripe_put(queue, slot);
	pthread_cond_broadcast(&pump->stripes->changed);
	pthread_mutex_unlock(&pump->stripes->lock);
}

/* Waits for all device copies and closes the transfer. True: all bytes were transferred. */
static bool pump_end(struct pump *pump)
{
	struct obs_stripe_slot *slot;
	bool whole;

	while ((slot = slot_land(pump)))
		slot_return(pump, &pump->stripes->free, slot);
	events_drop(pump);
	pthread_mutex_lock(&pump->stripes->lock);
	whole = pump->t->done == pump->t->size;
	transfer_close(pump);
	pthread_mutex_unlock(&pump->stripes->lock);
	return whole;
}

static bool pump_begin(struct pump *pump, struct obs_exec *x)
{
	*pump = (struct pump){
		.x = x, .stripes = &x->session->stripes, .t = &x->session->stripes.transfer
	};
	pump->flying.last = &pump->flying.first;
	return x->context != NULL;
}

/* ---- to the device ---- */

/* The next part that was received; NULL: there will be none. */
static struct obs_stripe_slot *part_next(struct pump *pump)
{
	struct obs_stripes *stripes = pump->stripes;
	struct obs_stripe_slot *slot = NULL, *landed;

	pthread_mutex_lock(&stripes->lock);
	while (!pump->t->failed && pump->t->done < pump->t->size &&
		!(slot = obs_stripe_get(&stripes->full))) {
		/* While nothing is received, slots of finished copies are freed. */
		pthread_mutex_unlock(&stripes->lock);
		landed = slot_land(pump);
		if (landed)
			slot_return(pump, &stripes->free, landed);
		pthread_mutex_lock(&stripes->lock);
		if (!landed && !stripes->full.first && !pump->t->failed)
			transfer_wait(pump);
	}
	if (slot)
		pump->t->done += slot->size;
	pthread_mutex_unlock(&stripes->lock);
	return slot;
}

static void pump_in(struct pump *pump, uint64_t dst)
{
	struct obs_stripe_slot *slot;

	while (pump->result == CUDA_SUCCESS && (slot = part_next(pump))) {
		pump->result = pump->x->drv->cuMemcpyHtoDAsync_v2(
			dst + slot->offset, slot->data, slot->size, pump->stream);
		slot_fly(pump, slot);
		while (slot_landed(pump))
			slot_return(pump, &pump->stripes->free, slot_land(pump));
	}
}

void obs_op_write_striped(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_write_striped_req *req)
{
	struct obp_write_striped_rep rep = { 0 };
	struct pump pump;

	if (!pump_begin(&pump, x))
		pump.result = CUDA_ERROR_INVALID_CONTEXT;
	else if (!obs_memory_check(&x->session->memory, req->dst, req->size))
		pump.result = CUDA_ERROR_INVALID_VALUE;
	else if (!obs_stream_get(x, rec, req->stream, &pump.stream))
		return;
	if (transfer_open(&pump, rec, req->transfer, req->size, true)) {
		if (pump.result == CUDA_SUCCESS)
			pump_in(&pump, req->dst);
		rep.whole = pump_end(&pump) && pump.result == CUDA_SUCCESS;
		if (rep.whole)
			atomic_fetch_add(&x->session->stripes.bytes_in, req->size);
	}
	obs_reply(x, rec, pump.result, &rep, pump.result == CUDA_SUCCESS ? sizeof rep : 0);
}

/* ---- from the device ---- */

/* Starts as many pieces as there are free slots. */
static void pieces_start(struct pump *pump)
{
	struct obs_stripes *stripes = pump->stripes;
	const uint64_t piece =
		obp_packer_cuts(&pump->x->session->packer) ? OBP_PACK_CHUNK : OBP_CHUNK_MAX;

	while (pump->result == CUDA_SUCCESS && pump->next < pump->t->size) {
		struct obs_stripe_slot *slot;

		pthread_mutex_lock(&stripes->lock);
		slot = obs_stripe_get(&stripes->free);
		pthread_mutex_unlock(&stripes->lock);
		if (!slot)
			break;
		slot->offset = pump->next;
		slot->size = (uint32_t)ob_min(piece, pump->t->size - pump->next);
		pump->next += slot->size;
		pump->result = pump->x->drv->cuMemcpyDtoHAsync_v2(
			slot->data, pump->addr + slot->offset, slot->size, pump->stream);
		slot_fly(pump, slot);
	}
}

static bool out_goes_on(struct pump *pump)
{
	const struct obs_transfer *t = pump->t;
	bool more;

	pthread_mutex_lock(&pump->stripes->lock);
	/* All pieces are with the stripes, or wait for slots that the stripes still use. */
	if (!pump->flying.first && !t->failed && t->done < t->size &&
		(pump->next == t->size || !pump->stripes->free.first))
		transfer_wait(pump);
	more = !t->failed && t->done < t->size;
	pthread_mutex_unlock(&pump->stripes->lock);
	return more && pump->result == CUDA_SUCCESS;
}

static void pump_out(struct pump *pump)
{
	bool first = true;

	do {
		struct obs_stripe_slot *slot;

		pieces_start(pump);
		slot = slot_land(pump);
		if (slot && first)
			obs_exec_output(pump->x, pump->result);
		first = first && !slot;
		if (slot)
			slot_return(pump,
				pump->result == CUDA_SUCCESS ? &pump->stripes->full
							     : &pump->stripes->free,
				slot);
	} while (out_goes_on(pump));
}

void obs_op_read_striped(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_read_striped_req *req)
{
	struct obp_read_striped_rep rep = { 0 };
	struct pump pump;

	if (!pump_begin(&pump, x))
		pump.result = CUDA_ERROR_INVALID_CONTEXT;
	else if (!obs_memory_check(&x->session->memory, req->src, req->size))
		pump.result = CUDA_ERROR_INVALID_VALUE;
	else if (!obs_stream_get(x, rec, req->stream, &pump.stream))
		return;
	pump.addr = req->src;
	if (transfer_open(&pump, rec, req->transfer, req->size, false)) {
		if (pump.result == CUDA_SUCCESS)
			pump_out(&pump);
		rep.whole = pump_end(&pump) && pump.result == CUDA_SUCCESS;
		if (rep.whole)
			atomic_fetch_add(&x->session->stripes.bytes_out, req->size);
	}
	if (pump.result != CUDA_SUCCESS)
		obs_exec_output(x, pump.result);
	obs_reply(x, rec, pump.result, &rep, pump.result == CUDA_SUCCESS ? sizeof rep : 0);
}
