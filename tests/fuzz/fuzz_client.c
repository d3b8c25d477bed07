/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The client's handling of a server's messages other than replies. The first byte chooses: messages
 * on the control connection, made of fields or raw; a welcome with random fields; the answer to a
 * join; a server's load report. The client's source file is included, for its inner functions.
 */
#define obc_control_on_callback fuzz_control_on_callback
#define obc_control_quality     fuzz_control_quality
#define obc_control_start       fuzz_control_start
#define obc_control_stop        fuzz_control_stop
#define obc_control_give_up     fuzz_control_give_up
#define obc_control_forget      fuzz_control_forget
#define obc_resume_init         fuzz_resume_init
#define obc_resume_grace        fuzz_resume_grace
#define obc_resume_stop         fuzz_resume_stop
#define obc_dial_begin          fuzz_dial_begin
#define obc_dial_join           fuzz_dial_join
#define obc_dial_once           fuzz_dial_once
#define obc_dial_run            fuzz_dial_run
/* Before the sources, which give names such as `terms` a meaning of their own. */
#include <fcntl.h>

#include "client-shim/cuda/heap.h"
#include "client-shim/session/log_inside.h"
#include "loadbalancer/ask.h"
#include "loadbalancer/place.h"
#include "protocol/welcome.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_stream.h"

#include "client-shim/session/control.c"
#include "client-shim/session/dial.c"

#define MESSAGES_MAX 64u

static uint64_t a_number(void)
{
	static const uint64_t numbers[] = { 0, 1, 2, 999, 1000, 1u << 20, 2u << 20, 1u << 31,
		UINT32_MAX, 1ull << 40, 0x200000000000, 0x300000000000, 1ull << 63, UINT64_MAX };

	return fuzz_take(2) ? fuzz_take(255) : numbers[fuzz_take(ob_count(numbers))];
}

static void text_fill(char *text, size_t size)
{
	size_t n = fuzz_take(40);

	fuzz_take_bytes(text, ob_min(n, size - 1));
}

/* ---- messages of the server ---- */

static void encode(const struct obp_message *m)
{
	fuzz_wire_clear();
	fuzz_wire_put_message(m);
	for (unsigned i = fuzz_take(4); i == 3 && !fuzz_used_up() && fuzz_wire.size;
		i = fuzz_take(4))
		fuzz_take_change(fuzz_wire.data, fuzz_wire.size, 256);
}

static void raw(void)
{
	size_t n = (size_t)fuzz_take(256) * 16;
	const uint8_t *bytes = fuzz_take_span(n, &n);

	fuzz_wire_clear();
	fuzz_wire_put(bytes, n);
}

static void message_fill(struct obp_message *m)
{
	memset(m, 0, sizeof *m);
	m->type = (enum obp_message_type)(1 + fuzz_take(11));
	m->value = a_number();
	m->code = (uint32_t)a_number();
	m->shm = fuzz_take(3);
	m->received = a_number();
	m->sent = a_number();
	m->bytes = a_number();
	text_fill(m->text, sizeof m->text);
	if (m->type == OBP_MSG_WELCOME)
		m->welcome.route = 1;
}

/* ---- the control connection ---- */

static void callback(uint64_t id, CUresult status)
{
	(void)id;
	if ((unsigned)status > OBP_RESULT_MAX)
		abort();
}

static void log_reset(void)
{
	memset(&obc_log_state, 0, sizeof obc_log_state);
	obc_log_state.stream = (struct obt_stream){ .ops = &fuzz_stream_ops, .fd = -1 };
	atomic_store(&obc_log_state.ring.sent_number, (uint64_t)fuzz_take(255));
}

static void fuzz_control(void)
{
	static struct obp_message m;
	enum verdict verdict = GOOD;

	log_reset();
	control = (struct control_state){ .dead_ns = OB_SECOND,
		.link = { .lock = PTHREAD_MUTEX_INITIALIZER,
			.stream = { .ops = &fuzz_stream_ops, .fd = -1 },
			.connected = true,
			.fd = -1 } };
	callback_fn = callback;
	if (obp_conn_init(&control.conn, OBP_ACCEPT_CONTROL))
		exit(1);
	for (unsigned i = 0; i < MESSAGES_MAX && verdict == GOOD && !fuzz_used_up(); i++) {
		if (fuzz_take(4)) {
			message_fill(&m);
			encode(&m);
		} else {
			raw();
		}
		if (fuzz_take(4) == 3)
			ping(ob_clock_ns());
		while (verdict == GOOD && fuzz_wire.at < fuzz_wire.size)
			verdict = control_read();
	}
	obp_conn_fini(&control.conn);
}

/* ---- the welcome ---- */

static CUresult grow(void *user, uint64_t addr, uint64_t size)
{
	const struct obp_range *range = user;

	if (addr < range->base || !ob_span_inside(addr - range->base, size, range->size))
		abort();
	return CUDA_SUCCESS;
}

static void trim(void *user, uint64_t addr, uint64_t size)
{
	grow(user, addr, size);
}

/*
 * Uses a device's addresses as a client does. None may lie outside the offered ranges or those that
 * the client will try to reserve.
 */
static void device_use(const struct obp_welcome *welcome, struct obp_range *range, uint64_t grant)
{
	static const struct obc_heap_ops ops = { grow, trim };
	struct obc_block *block = NULL;
	struct obc_heap heap;
	uint64_t addr;

	if (range->base < welcome->range.base ||
		!ob_span_inside(
			range->base - welcome->range.base, range->size, welcome->range.size))
		abort();
	if (!obc_heap_init(
		    &heap, range->base, range->size, grant, OBP_MEMORY_UNIT_MAX, &ops, range))
		abort();
	if (obc_heap_alloc(&heap, 4096, &addr, &block) == CUDA_SUCCESS) {
		grow(range, addr, 4096);
		obc_heap_free(&heap, block);
	}
	obc_heap_fini(&heap);
}

static void welcome_use(const struct obp_message *hello, struct obp_message *m)
{
	struct obp_welcome *welcome = &m->welcome;
	bool offered = false;

	if (welcome->codecs & ~hello->hello.codecs || (m->shm && m->shm != hello->shm) ||
		welcome->n_devices > OBP_DEVICE_MAX)
		abort();
	for (uint32_t i = 0; !welcome->vmm && i < welcome->n_devices; i++) {
		const struct obp_range *slab = &welcome->devices[i].range;

		if (slab->size &&
			(!hello->hello.slabs || slab->base % OBP_SLAB_PAGE ||
				slab->size % OBP_SLAB_PAGE || slab->size > OBP_SLAB_MAX ||
				slab->base + slab->size < slab->base))
			abort();
	}
	if (!welcome->vmm || !welcome->range.size)
		return;
	for (uint32_t i = 0; i < hello->hello.n_ranges; i++)
		offered = offered ||
			memcmp(&hello->hello.ranges[i], &welcome->range, sizeof welcome->range) ==
				0;
	if (welcome->range_ok && !offered)
		abort();
	for (uint32_t i = 0; i < welcome->n_devices; i++)
		device_use(welcome, &welcome->devices[i].range, welcome->devices[i].grant);
}

static void range_fill(struct obp_range *range)
{
	range->base = a_number();
	range->base += (uint64_t)fuzz_take(8) * (2u << 20);
	range->size = fuzz_take(2) ? a_number() : (uint64_t)fuzz_take(64) << 20;
	if (range->size > UINT64_MAX - range->base)
		range->size = 0;
}

static void fuzz_welcome(void)
{
	static struct obp_message hello, m, got;
	static struct obp_device devices[OBP_DEVICE_MAX];
	const struct obp_frame *frame = (const struct obp_frame *)fuzz_wire.data;
	struct obp_welcome *welcome = &m.welcome;

	memset(&hello, 0, sizeof hello);
	hello.type = OBP_MSG_HELLO;
	hello.shm = fuzz_take(2);
	hello.hello.codecs = fuzz_take(16);
	hello.hello.n_ranges = fuzz_take(3);
	hello.hello.slabs = fuzz_take(2);
	hello.hello.ranges[0] = (struct obp_range){ 0x200000000000, 1ull << 40 };
	hello.hello.ranges[1] = (struct obp_range){ 0x300000000000, 32u << 20 };
	memset(&m, 0, sizeof m);
	memset(devices, 0, sizeof devices);
	m.type = fuzz_take(8) == 7 ? OBP_MSG_JOINED : OBP_MSG_WELCOME;
	m.shm = fuzz_take(3);
	welcome->route = fuzz_take(8) == 7 ? 0 : 1;
	welcome->codecs = fuzz_take(2) ? hello.hello.codecs : fuzz_take(32);
	welcome->grace_s = (uint32_t)a_number();
	welcome->vmm = fuzz_take(4) != 3;
	welcome->range_ok = fuzz_take(2);
	welcome->slabs = fuzz_take(4) == 3 ? a_number() : fuzz_take(2) * OBP_SLAB_MAX;
	if (fuzz_take(2))
		welcome->range = hello.hello.ranges[fuzz_take(2)];
	else
		range_fill(&welcome->range);
	welcome->n_devices = fuzz_take(4) == 3 ? fuzz_take(OBP_DEVICE_MAX + 1) : fuzz_take(3);
	welcome->devices = devices;
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		unsigned attr = fuzz_take(OBP_ATTR_MAX);

		if (fuzz_take(4) == 3)
			range_fill(&devices[i].range);
		else
			devices[i].range = (struct obp_range){ welcome->range.base +
					(uint64_t)i * (welcome->range.size / welcome->n_devices),
				welcome->range.size / welcome->n_devices };
		devices[i].grant = fuzz_take(4) == 3 ? devices[i].range.size
			: fuzz_take(2)               ? 4u << 20
						     : a_number();
		devices[i].attr_known[attr] = true;
		devices[i].attr[attr] = (int32_t)a_number();
		text_fill(devices[i].name, sizeof devices[i].name);
	}
	encode(&m);
	if (fuzz_wire.size > sizeof *frame &&
		obp_message_decode(frame + 1,
			ob_min(fuzz_wire.size - sizeof *frame, (size_t)frame->raw_size),
			&got) == OB_ERR_NONE) {
		if (!obp_welcome_check(&hello, &got, NULL))
			welcome_use(&hello, &got);
		obp_message_fini(&got);
	}
}

/* ---- the answer to a join ---- */

static void fuzz_join(void)
{
	struct obt_stream stream = { .ops = &fuzz_stream_ops, .fd = -1 };
	static struct obp_message m;
	uint64_t received = 0;

	if (fuzz_take(4)) {
		message_fill(&m);
		encode(&m);
	} else {
		raw();
	}
	answer_await(&stream, ob_clock_ns() + OB_SECOND, &received);
}

/* ---- load ---- */

static void fuzz_load(void)
{
	static struct obl_answer answers[4];
	struct obl_server servers[4];
	struct obl_request request = { .memory = a_number() };
	struct obl_state state = { .turn = a_number() };
	struct obl_choice choice;
	char why[512];
	uint32_t n = 0;

	state.random = 1 + a_number();
	for (; n < 4 && !fuzz_used_up(); n++) {
		size_t size = (size_t)fuzz_take(256) * 8;
		const uint8_t *bytes = fuzz_take_span(size, &size);

		answers[n] = (struct obl_answer){ .cause.code = obp_load_decode(
							  bytes, size, &answers[n].load),
			.took_ns = a_number() };
		obl_server_from(&answers[n], &servers[n]);
	}
	if (n &&
		!obl_place(servers, n, &request, (enum obl_policy)fuzz_take(OBL_POLICY_COUNT),
			&state, &choice))
		obl_explain(&choice, servers, &request, why, sizeof why);
	for (uint32_t i = 0; i < n; i++)
		obp_load_fini(&answers[i].load);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const parts[])(void) = { fuzz_control, fuzz_welcome, fuzz_join, fuzz_load };
	static bool started;

	if (!started) {
		struct obc_resume_terms own = { .grace_ns = OB_SECOND, .timeout_ns = OB_SECOND };

		started = true;
		ob_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
		obc_resume_init(&own);
	}
	fuzz_input_start(data, ob_min(size, (size_t)8192));
	parts[fuzz_take(ob_count(parts))]();
	return 0;
}
