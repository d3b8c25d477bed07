/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The server's tables of modules and functions, over the null driver. */
#include "server/common/stats_page.h"
#include "server/layers/driver.h"
#include "server/worker/ops/ops.h"
#include "tests/steps.h"
#include "transport/digest.h"

#define MODULE   0x2100000000000000u
#define FUNCTION 0x2200000000000000u
#define FEW      50u
#define MANY     5000u
#define EACH     2u /* functions of a module */

static struct obs_session session;
static struct obs_lane lane = { .context = &session.contexts[0] };
static struct obs_exec x = { .session = &session, .lane = &lane, .context = &session.contexts[0] };

static void begin(void)
{
	struct ob_cause cause;

	CHECK_INT(obs_driver_load("null", &session.lib, &cause), OB_ERR_NONE);
	CHECK_INT(obs_driver_start(&session.lib, &cause), OB_ERR_NONE);
	session.drv = x.drv = &session.lib.table;
	obs_memory_init(&session.memory, session.drv, 1, false);
}

static void function_get(uint64_t module, uint64_t index)
{
	const struct obp_record rec = { .opcode = OBP_OP_FUNC_GET };
	const struct obp_func_get_req req = { .func = FUNCTION + index, .mod = MODULE + module };

	obs_op_func_get(&x, &rec, &req, "f");
}

static void load(uint64_t number)
{
	const struct obp_record rec = { .opcode = OBP_OP_MODULE_LOAD };
	struct obp_module_load_req req = { .mod = MODULE + number, .size = 8 };

	obt_digest_sha256("an image", req.size, req.sha256);
	obs_op_module_load(&x, &rec, &req, "an image");
	for (uint64_t i = 0; i < EACH; i++)
		function_get(number, number * EACH + i);
}

static void unload(uint64_t number)
{
	const struct obp_record rec = { .opcode = OBP_OP_MODULE_UNLOAD };
	const struct obp_module_unload_req req = { .mod = MODULE + number };

	obs_op_module_unload(&x, &rec, &req);
}

/* A load, then the unload of the oldest and the newest of n modules. */
static void sections(uint64_t n)
{
	steps_mark();
	load(n);
	steps_mark();
	for (uint64_t old = 0; old < n; old += n - 1) {
		steps_mark();
		unload(old);
		steps_mark();
		load(old);
	}
	unload(n);
}

static void module_steps(void)
{
	begin();
	for (uint64_t i = 0; i < MANY; i++) {
		load(i);
		if (i + 1 == FEW)
			sections(FEW);
	}
	CHECK_INT(session.modules.n_live, MANY);
	CHECK_INT(session.functions.n_live, MANY * EACH);
	sections(MANY);
}

TEST(the_number_of_modules_costs_nothing)
{
	uint64_t steps[6];

	steps_count(module_steps, steps, 6);
	for (int i = 0; i < 6; i += 3)
		printf("%u modules: load %llu instructions; unload oldest %llu, newest %llu\n",
			i ? MANY : FEW, (unsigned long long)steps[i],
			(unsigned long long)steps[i + 1], (unsigned long long)steps[i + 2]);
	for (int i = 0; i < 3; i++)
		CHECK(steps[i + 3] < steps[i] * 3 / 2 + 500);
}

TEST(functions_go_with_their_module)
{
	uint64_t host = obs_stats_page_read(&obs_stats_page->host_used);

	begin();
	for (uint64_t i = 0; i < 3; i++)
		load(i);
	function_get(1, 100);
	function_get(0, OBS_HANDLES_MAX - 1); /* the last index there is */
	function_get(1, 101);
	unload(1);
	CHECK_INT(session.functions.n_live, 2 * EACH + 1);
	for (uint64_t i = 0; i < 3 * EACH; i++)
		CHECK(!obs_handles_find(&session.functions, FUNCTION + i) == (i / EACH == 1));
	CHECK(!obs_handles_find(&session.functions, FUNCTION + 100));
	CHECK(!obs_handles_find(&session.functions, FUNCTION + 101));
	CHECK(obs_handles_find(&session.functions, FUNCTION + OBS_HANDLES_MAX - 1));
	load(1); /* the ids are free again */
	unload(0);
	unload(2);
	CHECK_INT(session.functions.n_live, EACH);
	unload(1);
	CHECK_INT(session.functions.n_live + session.modules.n_live, 0);
	unload(1); /* already gone: no error */
	obs_handles_fini(&session.modules);
	obs_handles_fini(&session.functions);
	CHECK(obs_stats_page_read(&obs_stats_page->host_used) - host <
		4 * OBS_HANDLES_CHUNK * sizeof(struct obs_handle));
}

/* With their context go all modules that live there, and no others. */
TEST(modules_go_with_their_context)
{
	const struct obp_record rec = { .opcode = OBP_OP_CTX_DESTROY };
	struct obp_ctx_destroy_req req = { .ctx = 77 };

	begin();
	session.contexts[1] = (struct obs_context){ .driver = (CUcontext)&session };
	atomic_init(&session.contexts[1].id, 77);
	session.n_contexts = 2;
	for (uint64_t i = 0; i < 4; i++) {
		x.context = &session.contexts[i % 2];
		load(i);
	}
	obs_op_ctx_destroy(&x, &rec, &req);
	CHECK_INT(session.modules.n_live, 2);
	CHECK_INT(session.functions.n_live, 2 * EACH);
	CHECK(obs_handles_find(&session.modules, MODULE + 2));
	CHECK(obs_handles_find(&session.functions, FUNCTION + 2 * EACH));
	CHECK(!obs_handles_find(&session.modules, MODULE + 3));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
