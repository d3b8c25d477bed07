/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Texture and surface references: what the driver is told, value by value, and a client that names
 * what it does not have.
 */
#include "transport/digest.h"
#include "tests/unit/server/driver_session.h"
#include "tests/unit/server/fake_driver.h"
#include "tests/unit/server/fake_texrefs.h"

#define MODULE  0x0200000000000001ull
#define FUNC    0x0300000000000001ull
#define ARRAY   0x2000000000000001ull
#define MIP     0x2000000000000002ull
#define IMAGE   0x2200000000000001ull
#define SCREEN  0x2200000000000002ull
#define MADE    0x2200000000000003ull
#define MISSING 0x2200000000000004ull

static uint64_t memory; /* FAKE_TEXREFS_BYTES */

/* The calls that the driver has had since the last look. */
static const char *told(void)
{
	const struct obp_read_req read = { .src = memory, .size = FAKE_TEXREFS_BYTES };
	static char text[FAKE_TEXREFS_BYTES];

	driver_fill_with(0, memory, FAKE_TEXREFS_BYTES, FAKE_TEXREFS);
	peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
	CHECK_INT(peer_reply(&peer)->result, 0);
	memcpy(text, peer.item.body, sizeof text);
	return text;
}

static void module_load(uint64_t id)
{
	static const char ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n";
	struct {
		struct obp_module_load_now_req req;
		char image[(sizeof ptx + 7) / 8 * 8];
	} body = { .req = { .mod = id, .kind = 1, .size = sizeof ptx } };

	memcpy(body.image, ptx, sizeof ptx);
	obt_digest_sha256(ptx, sizeof ptx, body.req.sha256);
	peer_call(&peer, 0, OBP_OP_MODULE_LOAD_NOW, &body, sizeof body.req + obp_pad(sizeof ptx));
	CHECK_INT(peer_reply(&peer)->result, 0);
}

static void open_in(uint64_t module, uint64_t id, uint32_t kind, const char *name)
{
	struct {
		struct obp_texref_open_req req;
		char name[32];
	} body = { .req = { .ref = id,
			   .mod = module,
			   .kind = kind,
			   .name_size = (uint32_t)strlen(name) + 1 } };

	snprintf(body.name, sizeof body.name, "%s", name);
	peer_call(
		&peer, 0, OBP_OP_TEXREF_OPEN, &body, sizeof body.req + obp_pad(body.req.name_size));
}

static void open(uint64_t id, uint32_t kind, const char *name)
{
	open_in(MODULE, id, kind, name);
}

static void array_create(uint64_t id, uint32_t levels)
{
	const struct obp_array_create_req req = { .array = id,
		.width = 8,
		.height = 4,
		.format = 0x20,
		.channels = 1,
		.levels = levels };

	peer_call(&peer, 0, OBP_OP_ARRAY_CREATE, &req, sizeof req);
	CHECK_INT(peer_reply(&peer)->result, 0);
}

/* A session with a module, its references and arrays. */
static void begin(void)
{
	const struct obp_texref_create_req made = { .ref = MADE };

	driver_begin();
	memory = driver_alloc_plain(FAKE_TEXREFS_BYTES);
	module_load(MODULE);
	array_create(ARRAY, 0);
	array_create(MIP, 2);
	open(IMAGE, 0, "image");
	open(SCREEN, 1, "screen");
	peer_call(&peer, 0, OBP_OP_TEXREF_CREATE, &made, sizeof made);
	CHECK_INT(peer_ping(&peer, 0), 0);
	CHECK_STR(told(), "texture image\nsurface screen\ncreate\n");
}

/* The error that the client learns. */
static unsigned set(const struct obp_texref_set_req *req)
{
	peer_call(&peer, 0, OBP_OP_TEXREF_SET, req, sizeof *req);
	return peer_ping(&peer, 0);
}

static unsigned bind(struct obp_texref_bind_req req)
{
	peer_call(&peer, 0, OBP_OP_TEXREF_BIND, &req, sizeof req);
	return peer_ping(&peer, 0);
}

static unsigned set_numbers(uint64_t ref, uint32_t setting, int32_t first, int32_t second)
{
	const struct obp_texref_set_req req = {
		.ref = ref, .setting = setting, .number = { first, second }
	};

	return set(&req);
}

static unsigned set_reals(uint64_t ref, uint32_t setting, const void *real)
{
	struct obp_texref_set_req req = { .ref = ref, .setting = setting };

	memcpy(req.real, real, sizeof req.real);
	return set(&req);
}

TEST(settings)
{
	static const float bias[4] = { -0.75f }, clamp[4] = { 1.5f, 7.25f },
			   color[4] = { 1, -2, 0.5f, 0 };
	static const uint32_t whole[4] = { 7, 0xffffffff, 0x7f800001, 1 };

	begin();
	CHECK_INT(set_numbers(IMAGE, OBP_TEXREF_FORMAT, 0x10, 4), 0);
	CHECK_INT(set_numbers(IMAGE, OBP_TEXREF_ADDRESS_MODE, 2, 3), 0);
	CHECK_INT(set_numbers(MADE, OBP_TEXREF_ADDRESS_MODE, 0, 1), 0);
	CHECK_INT(set_numbers(IMAGE, OBP_TEXREF_FILTER, 1, 0), 0);
	CHECK_INT(set_numbers(MADE, OBP_TEXREF_MIP_FILTER, 1, 0), 0);
	CHECK_INT(set_reals(IMAGE, OBP_TEXREF_MIP_BIAS, bias), 0);
	CHECK_INT(set_reals(IMAGE, OBP_TEXREF_MIP_CLAMP, clamp), 0);
	CHECK_INT(set_numbers(IMAGE, OBP_TEXREF_ANISOTROPY, 16, 0), 0);
	CHECK_INT(set_reals(IMAGE, OBP_TEXREF_BORDER, color), 0);
	CHECK_INT(set_reals(IMAGE, OBP_TEXREF_BORDER, whole), 0);
	CHECK_INT(set_numbers(IMAGE, OBP_TEXREF_FLAGS, 0x32, 0), 0);
	CHECK_STR(told(),
		"format image 16 4\nmode image 2 3\nmode made 0 1\nfilter image 1\n"
		"mip filter made 1\nbias image -0.75\nclamp image 1.5 7.25\n"
		"anisotropy image 16\nborder image 3f800000 c0000000 3f000000 0\n"
		"border image 7 ffffffff 7f800001 1\nflags image 32\n");
	driver_end();
}

TEST(bindings)
{
	const struct obp_texref_bind_req pitched = { .ref = IMAGE,
		.type = 3,
		.addr = memory,
		.width = 16,
		.height = 8,
		.pitch = 128,
		.format = 1,
		.channels = 4 };
	struct obp_texref_bind_req req = pitched;
	char want[512];

	begin();
	CHECK_INT(bind((struct obp_texref_bind_req){ .ref = IMAGE, .array = ARRAY }), 0);
	CHECK_INT(bind((struct obp_texref_bind_req){ .ref = IMAGE, .array = MIP, .type = 1 }), 0);
	CHECK_INT(bind((struct obp_texref_bind_req){ .ref = SCREEN, .array = ARRAY }), 0);
	CHECK_INT(bind((struct obp_texref_bind_req){
			  .ref = MADE, .type = 2, .addr = memory + 20, .size = 64 }),
		0);
	CHECK_INT(bind((struct obp_texref_bind_req){ .ref = MADE, .type = 2 }), 0);
	req.addr = memory;
	CHECK_INT(bind(req), 0);
	snprintf(want, sizeof want,
		"bind image array 1\nbind image mip 1\nbind surface screen array 0\n"
		"linear made %llx 64\nlinear made 0 0\npitched image 16 8 1 4 %llx 128\n",
		(unsigned long long)memory + 20, (unsigned long long)memory);
	CHECK_STR(told(), want);
	driver_end();
}

TEST(parameters)
{
	struct {
		struct obp_func_get_req req;
		char name[8];
	} func = { .req = { .func = FUNC, .mod = MODULE, .name_size = 7 }, .name = "kernel" };
	struct obp_texref_param_req req = { .ref = IMAGE, .func = FUNC };

	begin();
	peer_call(&peer, 0, OBP_OP_FUNC_GET, &func, sizeof func);
	peer_call(&peer, 0, OBP_OP_TEXREF_PARAM, &req, sizeof req);
	CHECK_INT(peer_ping(&peer, 0), 0);
	CHECK_STR(told(), "param kernel -1 image\n");
	req.ref = SCREEN;
	peer_call(&peer, 0, OBP_OP_TEXREF_PARAM, &req, sizeof req);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_STR(told(), "");
	req.func = FUNC + 1;
	peer_call_fatal(&peer, OBP_OP_TEXREF_PARAM, &req, sizeof req);
	driver_end();
}

/* None of these reaches the driver. */
TEST(wrong_values)
{
	struct obp_texref_bind_req pitched = { .ref = IMAGE,
		.type = 3,
		.width = 16,
		.height = 8,
		.pitch = 128,
		.format = 1,
		.channels = 4 };
	const unsigned wrong = CUDA_ERROR_INVALID_VALUE;
	struct obp_texref_bind_req req;

	begin();
	pitched.addr = memory;
	CHECK_INT(set_numbers(IMAGE, 0, 0, 0), wrong);
	CHECK_INT(set_numbers(IMAGE, OBP_TEXREF_ADDRESS_MODE, 3, 0), wrong);
	CHECK_INT(set_numbers(IMAGE, OBP_TEXREF_ADDRESS_MODE, -1, 0), wrong);
	CHECK_INT(set_numbers(SCREEN, OBP_TEXREF_FLAGS, 0, 0), wrong);
	/* an array of the wrong kind, for surfaces too */
	CHECK_INT(bind((struct obp_texref_bind_req){ .ref = IMAGE, .array = MIP }), wrong);
	CHECK_INT(bind((struct obp_texref_bind_req){ .ref = IMAGE, .array = ARRAY, .type = 1 }),
		wrong);
	CHECK_INT(bind((struct obp_texref_bind_req){ .ref = SCREEN, .array = MIP, .type = 1 }),
		wrong);
	CHECK_INT(bind((struct obp_texref_bind_req){
			  .ref = SCREEN, .type = 2, .addr = memory, .size = 64 }),
		wrong);
	CHECK_INT(bind((struct obp_texref_bind_req){ .ref = IMAGE, .type = 4 }), wrong);
	/* memory that is not the session's */
	CHECK_INT(bind((struct obp_texref_bind_req){
			  .ref = IMAGE, .type = 2, .addr = 4096, .size = 64 }),
		wrong);
	CHECK_INT(bind((struct obp_texref_bind_req){
			  .ref = IMAGE, .type = 2, .addr = memory, .size = UINT64_MAX }),
		wrong);
	CHECK_INT(bind((struct obp_texref_bind_req){ .ref = IMAGE, .type = 2, .addr = memory }),
		wrong);
	req = pitched;
	req.width = UINT64_MAX / 4 + 1;
	CHECK_INT(bind(req), wrong);
	req = pitched;
	req.height = OBP_ARRAY_ROWS_MAX;
	CHECK_INT(bind(req), wrong);
	req = pitched;
	req.channels = 3;
	CHECK_INT(bind(req), wrong);
	req = pitched;
	req.height = 0;
	CHECK_INT(bind(req), wrong);
	CHECK_STR(told(), "");
	driver_end();
}

/* The client learns of a failure later; the records that follow are answered. */
TEST(missing)
{
	begin();
	open(MISSING, 0, "missing");
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_NOT_FOUND);
	CHECK_INT(set_numbers(MISSING, OBP_TEXREF_FLAGS, 1, 0), CUDA_ERROR_INVALID_HANDLE);
	CHECK_STR(told(), "texture missing\n");
	driver_end();
}

static void destroy(uint64_t id)
{
	const struct obp_texref_destroy_req req = { .ref = id };

	peer_call(&peer, 0, OBP_OP_TEXREF_DESTROY, &req, sizeof req);
}

TEST(ends)
{
	const struct obp_module_unload_req unload = { .mod = MODULE };
	const struct obp_texref_create_req made = { .ref = MADE };

	begin();
	module_load(MODULE + 1);
	open_in(MODULE + 1, MISSING, 0, "other");
	destroy(MADE);
	destroy(MADE); /* may come twice: its context may have ended it */
	CHECK_INT(peer_ping(&peer, 0), 0);
	CHECK_STR(told(), "texture other\ndestroy made\n");
	/* the id may be used again, and those of a module that has ended; others stay */
	peer_call(&peer, 0, OBP_OP_TEXREF_CREATE, &made, sizeof made);
	peer_call(&peer, 0, OBP_OP_MODULE_UNLOAD, &unload, sizeof unload);
	peer_ping(&peer, 0);
	module_load(MODULE);
	open(IMAGE, 0, "again");
	CHECK_INT(set_numbers(MISSING, OBP_TEXREF_FLAGS, 1, 0), 0);
	CHECK_INT(set_numbers(IMAGE, OBP_TEXREF_FLAGS, 2, 0), 0);
	CHECK_STR(told(), "create\ntexture again\nflags other 1\nflags again 2\n");
	peer_call_fatal(&peer, OBP_OP_TEXREF_SET,
		&(struct obp_texref_set_req){ .ref = SCREEN, .setting = OBP_TEXREF_FLAGS },
		sizeof(struct obp_texref_set_req));
	driver_end();
}

TEST(context_ends)
{
	const struct obp_ctx_destroy_req end = { .ctx = 1 };

	begin();
	peer_call(&peer, 0, OBP_OP_CTX_DESTROY, &end, sizeof end);
	destroy(MADE);
	peer_ping(&peer, 0);
	peer_use_context(&peer, 0, 2);
	peer_call_fatal(&peer, OBP_OP_TEXREF_SET,
		&(struct obp_texref_set_req){ .ref = IMAGE, .setting = OBP_TEXREF_FLAGS },
		sizeof(struct obp_texref_set_req));
	driver_end();
}

/* A thread beyond --max-lanes makes a reference that another thread then uses. */
TEST(made_by_a_thread_that_is_refused)
{
	const struct obp_texref_create_req made = { .ref = MADE };

	server_start(&server, (const char *const[]){ "--max-lanes", "1", NULL });
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	peer_call(&peer, 1, OBP_OP_TEXREF_CREATE, &made, sizeof made);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(set_numbers(MADE, OBP_TEXREF_FLAGS, 1, 0), CUDA_ERROR_INVALID_HANDLE);
	destroy(MADE);
	CHECK_INT(peer_ping(&peer, 0), 0);
	driver_end();
}

/* Each of these ends the session. */
TEST(violations)
{
	const struct obp_texref_destroy_req module_owned = { .ref = IMAGE };
	const struct obp_texref_create_req in_use = { .ref = IMAGE };
	const struct obp_texref_bind_req no_array = { .ref = IMAGE, .array = ARRAY + 7 };
	const struct obp_texref_set_req no_ref = { .ref = IMAGE + 7, .setting = OBP_TEXREF_FLAGS },
					setting = { .ref = IMAGE,
						.setting = OBP_TEXREF_SETTING_MAX + 1 };
	const struct {
		uint16_t op;
		const void *req;
		uint32_t size;
	} all[] = {
		{ OBP_OP_TEXREF_DESTROY, &module_owned, sizeof module_owned },
		{ OBP_OP_TEXREF_CREATE, &in_use, sizeof in_use },
		{ OBP_OP_TEXREF_BIND, &no_array, sizeof no_array },
		{ OBP_OP_TEXREF_SET, &no_ref, sizeof no_ref },
		{ OBP_OP_TEXREF_SET, &setting, sizeof setting },
	};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		begin();
		peer_call_fatal(&peer, all[i].op, all[i].req, all[i].size);
		driver_end();
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
