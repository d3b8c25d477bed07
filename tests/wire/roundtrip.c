/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Round trip of every wire call, from the client's function to the server's and back, without a
 * socket: this test's session log passes each record to the check and to dispatch. Random legal
 * arguments must arrive unchanged, and every shorter or longer body must be rejected. Likewise, the
 * client's check must accept the server's reply and reject it in any other size or form.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/session/log.h"
#include "client-shim/session/transfer.h"
#include "front/front.h"
#include "protocol/format.h"
#include "protocol/obc_calls.h"
#include "protocol/obs_dispatch.h"
#include "tests/test.h"

#define PART_BYTES   (1u << 20)
#define PART_COUNT   OBP_VAR_MAX
#define PREFIX_LIMIT 1024u /* bodies up to this size are tested with every length */
#define CLIENT_KEY   0x1234500000000000u
#define SERVER_KEY   0x0000000000067890u
#define DEVICE_KEY   0x00000005u

#define SAME(a, b, n)               CHECK_MEM(a, b, n)
#define RIGHT(call)                 CHECK((call) == CUDA_SUCCESS)
#define REFUSES(opcode, body, size) CHECK(!obp_check_req((opcode), (body), (uint32_t)(size)))

struct trip {
	uint16_t opcode;
	void (*run)(void);
};

static uint64_t seed = 1;
static bool largest;
static _Alignas(8) uint8_t part[PART_COUNT][PART_BYTES + 8];
static _Alignas(8) uint8_t answer[PART_BYTES], result_bytes[PART_BYTES];
static _Alignas(8) uint8_t record_body[2 * PART_BYTES];
static uint32_t reply_size;
static CUresult reply_result;
static bool replied, violated;
static unsigned n_arrived;
static uint8_t seen[OBP_OPCODE_END];
static struct obs_driver fake_driver;
static CUresult fake_result; /* of every call of the driver */
/* ids of the last handle that the server added and the last that it removed */
static uint64_t put_id, gone_id;
static void *put_handle;

static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1dull;
}

static void *random_fill(void *p, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		((uint8_t *)p)[i] = (uint8_t)(random64() >> 32);
	return p;
}

static void random_text(uint8_t *p, uint64_t size)
{
	for (uint64_t i = 0; i + 1 < size; i++)
		p[i] = (uint8_t)('a' + random64() % 26);
	p[size - 1] = 0;
}

static void saw(uint16_t opcode)
{
	seen[opcode] = 1;
}

/* ---- the session log: passes a record directly to the server's side ---- */

static void refuse_other_lengths(uint16_t opcode, const uint8_t *body, uint32_t size)
{
	if (size > PREFIX_LIMIT)
		return;
	for (uint32_t n = 0; n <= size + 16; n++) {
		/*
		 * Exactly n bytes are allocated, so that a sanitizer detects a read past the end.
		 */
		uint8_t *copy = calloc(1, n ? n : 1);
		CHECK(copy);
		memcpy(copy, body, n < size ? n : size);
		CHECK(obp_check_req(opcode, copy, n) == (n == size));
		free(copy);
	}
}

static void print(uint16_t opcode, const void *body, uint32_t size)
{
	char line[512];
	size_t n = obp_print_call(line, sizeof(line), opcode, body, size);
	CHECK(n == strlen(line) && n + 1 <= sizeof(line));
	CHECK(!strncmp(line, obp_call_info(opcode)->name, strlen(obp_call_info(opcode)->name)));
	char cut[9];
	CHECK(obp_print_call(cut, sizeof(cut), opcode, body, size) == (n < 8 ? n : 8));
}

static void all_zero(const uint8_t *from, const uint8_t *to)
{
	while (from < to)
		CHECK(*from++ == 0);
}

/* The padding between the fields must be zero, so that no other memory of the client is sent. */
static void refuse_dirty_padding(const struct obp_call_info *info, const uint8_t *body)
{
	static const unsigned width[] = { [OBP_U8] = 1, 2, 4, 8, 4, 8, 4, 8, 1, 1 };
	const uint8_t *end = body;
	for (unsigned i = 0; i < info->n_req; i++) {
		const uint8_t *field_end =
			body + info->req[i].offset + width[info->req[i].type] * info->req[i].count;
		end = field_end > end ? field_end : end;
	}
	all_zero(end, body + info->req_size);
	uint64_t bytes[OBP_VAR_MAX];
	CHECK(!info->sizes || info->sizes(body, bytes));
	const uint8_t *at = body + info->req_size;
	for (unsigned i = 0; i < info->n_req_vars; i++) {
		all_zero(at + bytes[i], at + obp_pad(bytes[i]));
		at += obp_pad(bytes[i]);
	}
}

static void arrive(uint16_t opcode, uint32_t size)
{
	struct obp_record rec = {
		.size = (uint32_t)sizeof(rec) + size, .opcode = opcode, .lane = 3
	};
	const struct obp_call_info *info = obp_call_info(opcode);
	CHECK(info && info->opcode == opcode && obp_call_find(info->name) == info);
	CHECK(size % 8 == 0);
	CHECK(obp_check_req(opcode, record_body, size));
	refuse_other_lengths(opcode, record_body, size);
	refuse_dirty_padding(info, record_body);
	print(opcode, record_body, size);
	n_arrived++;
	replied = violated = false;
	obs_dispatch(NULL, &rec, record_body, size);
	CHECK(!violated);
	CHECK(replied);
	CHECK(((info->flags & OBP_CALL_REPLIES) != 0) == (reply_size != UINT32_MAX));
}

void *obc_log_begin(struct obc_slot *slot, uint16_t opcode, uint32_t body_size)
{
	uint32_t padded = (uint32_t)obp_pad(body_size);
	CHECK(padded <= sizeof(record_body));
	memset(record_body, 0xaa, padded);
	slot->body = record_body;
	slot->opcode = opcode;
	slot->size = padded;
	return record_body;
}

CUresult obc_log_commit(struct obc_slot *slot)
{
	arrive(slot->opcode, slot->size);
	CHECK(reply_size == UINT32_MAX);
	return reply_result;
}

static bool reply_fits(uint16_t opcode, struct obp_reply reply, uint64_t got, uint64_t capacity)
{
	return obp_check_reply(opcode, &reply, got, capacity, NULL) == OB_ERR_NONE;
}

/* Checks the server's reply, and changed forms of it that a hostile server could send. */
static void judge(uint16_t opcode, uint64_t capacity)
{
	const struct obp_call_info *info = obp_call_info(opcode);
	const struct obp_reply good = {
		.result = (uint32_t)reply_result, .call = 1, .body = reply_size
	};
	bool streamed = info->flags & OBP_CALL_STREAMED;
	struct obp_reply bad;

	CHECK(reply_size <= capacity);
	CHECK(reply_fits(opcode, good, 0, capacity));
	CHECK(obp_check_rep(opcode, result_bytes, reply_size));
	bad = good;
	bad.body = (uint32_t)capacity + 1;
	CHECK(!reply_fits(opcode, bad, 0, capacity));
	/* earlier parts of the reply already exceed the capacity */
	CHECK(!reply_fits(opcode, good, capacity + 1, capacity));
	CHECK(!reply_fits(opcode, good, UINT64_MAX, capacity));
	bad = good;
	bad.body = info->rep_size - 1u; /* without a fixed part: wraps to UINT32_MAX */
	CHECK(!reply_fits(opcode, bad, 0, capacity) || streamed);
	for (unsigned flags = 1; flags < 16; flags++) {
		bad = good;
		bad.flags = (uint16_t)flags;
		/* a streamed reply is complete here, so OBP_REPLY_MORE is invalid, too */
		CHECK(!reply_fits(opcode, bad, 0, capacity));
	}
	bad = good;
	bad.result = OBP_RESULT_MAX;
	CHECK(reply_fits(opcode, bad, 0, capacity) == (!streamed || !bad.body));
	bad.body = 0;
	CHECK(reply_fits(opcode, bad, 0, capacity)); /* a failure needs no body */
	bad.result = OBP_RESULT_MAX + 1;
	CHECK(!reply_fits(opcode, bad, 0, capacity));
	bad = good;
	bad.deferred = OBP_RESULT_MAX + 1;
	CHECK(!reply_fits(opcode, bad, 0, capacity));
	if (streamed && reply_size > 1) {
		bad = good;
		bad.body = reply_size - 1;
		CHECK(!reply_fits(opcode, bad, 0, capacity));
		bad.flags = OBP_REPLY_MORE;
		CHECK(reply_fits(opcode, bad, 0, capacity));
		bad.deferred = 1;
		CHECK(!reply_fits(opcode, bad, 0, capacity));
		bad = good;
		bad.body = 1;
		CHECK(reply_fits(opcode, bad, capacity - 1, capacity));
		bad.body = 0;
		bad.flags = OBP_REPLY_MORE;
		CHECK(!reply_fits(opcode, bad, 0, capacity)); /* an empty part */
	}
	if (info->rep_bounds) {
		memset(part[0], 0xff, info->rep_size);
		CHECK(!obp_check_rep(opcode, part[0], info->rep_size));
		/* a body that is too short has no values to check */
		CHECK(obp_check_rep(opcode, part[0], info->rep_size - 1u));
	}
}

CUresult obc_log_call(struct obc_slot *slot, void *ret_body, uint32_t capacity, uint32_t *ret_size)
{
	arrive(slot->opcode, slot->size);
	judge(slot->opcode, capacity);
	if (reply_size)
		memcpy(ret_body, result_bytes, reply_size);
	if (ret_size)
		*ret_size = reply_size;
	return reply_result;
}

CUresult obc_transfer_send(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, uint64_t size)
{
	CHECK(head_size + size <= sizeof(record_body));
	memset(record_body, 0, obp_pad(head_size + size));
	memcpy(record_body, head, head_size);
	memcpy(record_body + head_size, data, size);
	arrive(opcode, (uint32_t)obp_pad(head_size + size));
	return reply_result;
}

CUresult obc_log_read(uint16_t opcode, const void *req, uint32_t req_size, void *dst, size_t size)
{
	memcpy(record_body, req, req_size);
	arrive(opcode, req_size);
	CHECK(reply_size == size);
	judge(opcode, size);
	(void)dst; /* the test's destination is result_bytes itself */
	return reply_result;
}

void obc_log_fail(enum ob_err err)
{
	(void)err;
	violated = true;
}

CUresult obc_log_error(void)
{
	return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

CUresult obf_ctx_enter(struct obf_ctx **ret)
{
	*ret = NULL;
	return CUDA_SUCCESS;
}

CUresult obc_wire_stream(CUstream handle, uint64_t *ret_id)
{
	*ret_id = (uintptr_t)handle ^ CLIENT_KEY;
	return CUDA_SUCCESS;
}

/* The client numbers the devices differently from the server. */
CUresult obc_wire_device(CUdevice device, uint32_t *ret_number)
{
	*ret_number = (uint32_t)device ^ DEVICE_KEY;
	return CUDA_SUCCESS;
}

CUdevice obc_program_device(int number)
{
	return (CUdevice)((uint32_t)number ^ DEVICE_KEY);
}

CUresult obc_log_alive(void)
{
	return CUDA_SUCCESS;
}

/* ---- the server's hooks ---- */

void obs_violation(struct obs_exec *x, const struct obp_record *rec, const char *why)
{
	(void)x;
	fprintf(stderr, "0x%04x: %s\n", rec->opcode, why);
	violated = true;
}

bool obs_handle_get(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind,
	uint64_t id, void **ret_handle)
{
	(void)x;
	(void)rec;
	CHECK(kind > 0 && kind < OBS_KIND_END);
	*ret_handle = (void *)(uintptr_t)(id ^ SERVER_KEY);
	return true;
}

/*
 * Returns what the driver must get for a handle of the program. A stream's id on the wire differs
 * from its handle; a handle that generated code makes is its own id.
 */
static inline uint64_t driver_of(enum obs_kind kind, uint64_t handle)
{
	return handle ^ SERVER_KEY ^ (kind == OBS_KIND_STREAM ? CLIENT_KEY : 0);
}

bool obs_handle_vacant(
	struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind, uint64_t id)
{
	(void)x;
	(void)rec;
	CHECK(kind > 0 && kind < OBS_KIND_END && id);
	return true;
}

CUresult obs_handle_room(struct obs_exec *x)
{
	(void)x;
	return CUDA_SUCCESS;
}

void obs_handle_put(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind,
	uint64_t id, void *handle)
{
	(void)x;
	(void)rec;
	CHECK(kind > 0 && kind < OBS_KIND_END);
	put_id = id;
	put_handle = handle;
}

bool obs_handle_drop(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind,
	uint64_t id, void **ret_handle)
{
	return obs_handle_get(x, rec, kind, id, ret_handle);
}

void obs_handle_gone(struct obs_exec *x, enum obs_kind kind, uint64_t id)
{
	(void)x;
	CHECK(kind > 0 && kind < OBS_KIND_END);
	gone_id = id;
}

const struct obs_driver *obs_exec_driver(struct obs_exec *x)
{
	(void)x;
	return &fake_driver;
}

void obs_reply(struct obs_exec *x, const struct obp_record *rec, CUresult result, const void *body,
	uint32_t size)
{
	(void)x;
	CHECK(rec->lane == 3 && !replied && size <= sizeof(result_bytes));
	if (size)
		memcpy(result_bytes, body, size);
	reply_size = size;
	reply_result = result;
	replied = true;
	char line[256];
	CHECK(obp_print_reply(line, sizeof(line), rec->opcode, (uint32_t)result, body, size) ==
		strlen(line));
}

void obs_async_result(struct obs_exec *x, const struct obp_record *rec, CUresult result)
{
	(void)x;
	CHECK(rec->lane == 3 && !replied);
	reply_size = UINT32_MAX;
	reply_result = result;
	replied = true;
}

#include "protocol/roundtrip.inc"

TEST(every_call)
{
	const size_t n = sizeof(trips) / sizeof(trips[0]);

	for (size_t i = 0; i < n; i++) {
		test_subject = obp_call_info(trips[i].opcode)->name;
		for (int round = 0; round < 50; round++)
			trips[i].run();
		largest = true;
		trips[i].run();
		largest = false;
		CHECK(seen[trips[i].opcode]);
	}
	printf("%zu calls, %u records\n", n, n_arrived);
}

TEST(one_past_the_maximum)
{
	past_the_maxima();
}

TEST(unknown_opcodes)
{
	struct obp_record unknown = { .size = 8, .opcode = OBP_OPCODE_END };

	CHECK(!obp_call_info(0) && !obp_call_info(OBP_OPCODE_END) && !obp_call_info(UINT16_MAX));
	CHECK(!obp_check_req(0, NULL, 0) && !obp_check_req(UINT16_MAX, NULL, 0));
	fprintf(stderr, "expected: ");
	obs_dispatch(NULL, &unknown, record_body, 0);
	CHECK(violated);
}

/* If the first argument is a number, it is the seed. */
int main(int argc, char **argv)
{
	char *end = argc > 1 ? argv[1] : "";
	uint64_t given = argc > 1 ? strtoull(argv[1], &end, 0) : 0;
	int used = argc > 1 && end != argv[1] && !*end;

	seed = used ? given | 1 : 0x9e3779b97f4a7c15u;
	set_up();
	argv[used] = argv[0];
	return test_main(argc - used, argv + used);
}
