/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A worker's thread of a stripe, and a client that sends and requests parts of transfers that are
 * open, have ended, or never existed. This file takes the executor's part at each frame: slots are
 * returned, a transfer ends, another begins. No part may lie outside its transfer, no slot may be
 * lost, and each requested part must be sent once. Where a wrong frame would end the process (the
 * linker wraps the exit), the run ends. The worker's source file is included.
 */
#include "server/worker/stripe.c"

#include <setjmp.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_peer.h"
#include "tests/fuzz/fuzz_stream.h"

#define SLOTS      4u
#define FRAMES_MAX 64u

_Noreturn void __wrap_obs_session_fatal(
	struct obs_session *session, enum ob_err code, const char *format, ...);

static struct obs_session session;
static struct obs_options options;
static struct obs_stripe_set *set;
static jmp_buf over;
static unsigned frames;
static uint64_t asked; /* bytes of the transfer to the client that are in slots or sent */

_Noreturn void __wrap_obs_session_fatal(
	struct obs_session *s, enum ob_err code, const char *format, ...)
{
	(void)s;
	(void)code;
	(void)format;
	longjmp(over, 1);
}

/* ---- the executor ---- */

static void transfer_begin(void)
{
	static const uint64_t sizes[] = { 1, 4096, 100000, OBP_CHUNK_MAX, 3 * OBP_CHUNK_MAX + 5,
		1ull << 40 };
	struct obs_transfer *t = &session.stripes.transfer;

	*t = (struct obs_transfer){ .id = session.stripes.last + 1,
		.size = sizes[fuzz_take(ob_count(sizes))],
		.set = set,
		.open = true };
	t->write = fuzz_take(2);
	asked = 0;
}

static void transfer_end(void)
{
	session.stripes.last = session.stripes.transfer.id;
	session.stripes.transfer.open = false;
}

/* Copies the full slots of a transfer to the device, fills the free slots of a transfer from it. */
static void slots_move(void)
{
	struct obs_stripes *stripes = &session.stripes;
	const struct obs_transfer *t = &stripes->transfer;
	struct obs_stripe_slot *slot;

	while (t->write && (slot = obs_stripe_get(&stripes->full))) {
		if (slot->size == 0 || !ob_span_inside(slot->offset, slot->size, t->size) ||
			slot->size > OBP_CHUNK_MAX)
			abort();
		obs_stripe_put(&stripes->free, slot);
	}
	while (t->open && !t->write && asked < t->size && (slot = obs_stripe_get(&stripes->free))) {
		slot->offset = asked;
		slot->size = (uint32_t)ob_min(t->size - asked, (uint64_t)OBP_CHUNK_MAX);
		asked += slot->size;
		obs_stripe_put(&stripes->full, slot);
	}
}

/*
 * The executor acts between two frames. It must not leave a thread waiting for it, because no other
 * thread could wake it.
 */
static void executor(void)
{
	struct obs_stripes *stripes = &session.stripes;
	struct obs_stripe_slot *slot;
	struct obs_transfer *t = &stripes->transfer;
	unsigned what = fuzz_take(8);

	slots_move();
	if (t->open && (what == 7 || (!t->write && !stripes->full.first)))
		transfer_end();
	while (!t->open && (slot = obs_stripe_get(&stripes->full)))
		obs_stripe_put(&stripes->free, slot);
	if (!t->open && what != 6)
		transfer_begin();
	slots_move();
	if (what == 5)
		atomic_store(&set->gate.closed, true);
}

/* ---- the client ---- */

static void frame_put(void)
{
	const struct obs_transfer *t = &session.stripes.transfer;
	struct obp_frame frame;
	uint64_t offset = fuzz_take(4) ? (uint64_t)fuzz_take(256) * (t->size / 256) : fuzz_number();
	uint64_t id = t->id - (fuzz_take(8) == 7);
	enum obp_frame_type type = fuzz_take(4) == 3 ? OBP_FRAME_GIVE : OBP_FRAME_PART;
	uint32_t n = (uint32_t)(fuzz_take(4) ? fuzz_take(256) * 64u : fuzz_number());

	if (fuzz_take(4))
		n = (uint32_t)ob_min((uint64_t)n, t->size - ob_min(t->size, offset));
	obp_stripe_fill(&frame, type, id, type == OBP_FRAME_PART ? offset : 0,
		type == OBP_FRAME_PART ? n : 0);
	if (fuzz_take(8) == 7) {
		frame.flags = (uint16_t)fuzz_take(5);
		frame.size = fuzz_take(64) * 8;
	}
	if (fuzz_take(8) == 7)
		fuzz_spoil(&frame, sizeof frame);
	/*
	 * A part of a transfer that has not begun would block: the stripe's thread waits for the
	 * executor, which runs on this thread.
	 */
	if (frame.sequence > session.stripes.last && frame.sequence != t->id)
		frame.sequence = session.stripes.last;
	if (!t->open && frame.sequence > session.stripes.last)
		frame.sequence = session.stripes.last;
	fuzz_wire_clear();
	fuzz_wire_put(&frame, sizeof frame);
	/*
	 * The payload is what earlier frames left in the buffer. A packed one begins with bytes of
	 * the input.
	 */
	fuzz_wire.size = ob_min(sizeof frame + frame.size, sizeof frame + OBP_CHUNK_MAX + 64);
	if (frame.flags)
		fuzz_take_bytes(fuzz_wire.data + sizeof frame,
			ob_min(fuzz_wire.size - sizeof frame, (size_t)64));
}

static ssize_t client_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	if (fuzz_wire.at == fuzz_wire.size) {
		if (fuzz_used_up() || frames++ == FRAMES_MAX)
			return 0;
		executor();
		frame_put();
	}
	return fuzz_stream_recv(stream, data, size, block);
}

/*
 * Called while a slot is sent. If it was the last full one, fills more, or ends the transfer so
 * that no thread waits.
 */
static ssize_t client_send(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	if (!session.stripes.full.first) {
		slots_move();
		if (session.stripes.transfer.open && !session.stripes.full.first)
			transfer_end();
	}
	return fuzz_stream_send(stream, iov, n, block);
}

/* ---- */

static void start(void)
{
	char *argv[] = { "outboard-server", "--worker", "--driver", "null", "--upload-cache", "0",
		NULL };

	ob_log_set_level(OB_LOG_ERROR);
	if (obs_options_parse(&options, 6, argv))
		exit(1);
	session.options = &options;
	obs_stripes_init(&session.stripes);
	for (unsigned i = 0; i < SLOTS; i++) {
		session.stripes.slots[i].data = malloc(OBP_CHUNK_MAX);
		if (!session.stripes.slots[i].data)
			exit(1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct obt_ops ops = {
		.name = "fuzz", .send = client_send, .recv = client_recv, .close = fuzz_stream_close
	};
	const struct obt_stream stream = { .ops = &ops, .fd = -1 };
	struct obs_stripes *stripes = &session.stripes;
	struct obs_stripe *stripe = calloc(1, sizeof *stripe);
	unsigned slots = 0;
	bool ended = false;

	if (!session.options)
		start();
	set = calloc(1, sizeof *set);
	if (!set || !stripe)
		exit(1);
	fuzz_input_start(data, ob_min(size, (size_t)4096));
	fuzz_wire_clear();
	frames = 0;
	queue_init(&stripes->free);
	queue_init(&stripes->full);
	for (unsigned i = 0; i < SLOTS; i++)
		obs_stripe_put(&stripes->free, &stripes->slots[i]);
	stripes->transfer = (struct obs_transfer){ .open = false };
	stripes->last = 10;
	stripes->set = set;
	stripes->threads = 1;
	stripe->session = &session;
	stripe->set = set;
	set->members[set->n++] = stripe;
	obt_stripe_init(&stripe->link, &set->gate, &stream, OBZ_ALL_CODECS, 0);
	transfer_begin();
	slots_move();
	if (setjmp(over) == 0)
		stripe_main(stripe);
	else
		ended = true;
	/* If the process continues, no slot may be missing. */
	while (!ended && obs_stripe_get(&stripes->free))
		slots++;
	while (!ended && obs_stripe_get(&stripes->full))
		slots++;
	if (!ended && (slots != SLOTS || stripes->threads != 0))
		abort();
	if (ended) {
		obt_stripe_fini(&stripe->link);
		free(stripe);
	}
	if (ended || stripes->transfer.open)
		free(set);
	return 0;
}
