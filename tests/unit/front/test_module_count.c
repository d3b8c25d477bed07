/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The cost of loading and unloading a module with few and with many others loaded. */
#include "front.h"
#include "tests/steps.h"

static const char ptx_small[] = ".version 7.5\n.target sm_75\n.address_size 64\n.entry f()\n{\n}\n";

#define MODULES_FEW  50
#define MODULES_MANY 3000

/* A load, then the unload of the oldest, the middle and the newest of n modules. */
static void module_sections(CUmodule *modules, int n)
{
	CUmodule old[3] = { modules[0], modules[n / 2], modules[n - 1] };
	int at[3] = { 0, n / 2, n - 1 };

	steps_mark();
	OK(obf_cuModuleLoadData(&modules[n], ptx_small));
	steps_mark();
	for (int i = 0; i < 3; i++) {
		steps_mark();
		OK(obf_cuModuleUnload(old[i]));
		steps_mark();
		OK(obf_cuModuleLoadData(&modules[at[i]], ptx_small));
	}
}

static void module_steps(void)
{
	static CUmodule modules[MODULES_MANY + 1];

	begin();
	for (int i = 0; i < MODULES_MANY; i++) {
		OK(obf_cuModuleLoadData(&modules[i], ptx_small));
		if (i + 1 == MODULES_FEW)
			module_sections(modules, MODULES_FEW);
	}
	module_sections(modules, MODULES_MANY);
}

TEST(the_number_of_modules_costs_nothing)
{
	uint64_t steps[8];

	steps_count(module_steps, steps, 8);
	for (int i = 0; i < 8; i += 4)
		printf("%d modules: load %llu instructions; unload oldest %llu, middle %llu, "
		       "newest %llu\n",
			i ? MODULES_MANY : MODULES_FEW, (unsigned long long)steps[i],
			(unsigned long long)steps[i + 1], (unsigned long long)steps[i + 2],
			(unsigned long long)steps[i + 3]);
	for (int i = 0; i < 4; i++)
		CHECK(steps[i + 4] < steps[i] * 3 / 2 + 500);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
