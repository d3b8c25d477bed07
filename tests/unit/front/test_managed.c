/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Advice on ranges of managed memory: parts are split, and a range answers for all of its parts.
 * Managed variables.
 */
#include "front/advice.h"

#include "front.h"

#define BASE 0x200000000000ull

static void set_mostly(void *user, struct obf_advice *advice)
{
	advice->read_mostly = *(bool *)user;
}

static void set_device(void *user, struct obf_advice *advice)
{
	advice->accessed_by |= 1ull << *(int *)user;
}

struct seen {
	unsigned parts, mostly;
	uint64_t devices; /* of all parts */
};

static void see(void *user, const struct obf_advice *advice)
{
	struct seen *seen = user;

	seen->parts++;
	seen->mostly += advice->read_mostly;
	seen->devices &= advice->accessed_by;
}

static struct seen seen_in(uint64_t from, uint64_t to)
{
	struct seen seen = { .devices = UINT64_MAX };

	obf_advice_see(BASE + from, to - from, see, &seen);
	return seen;
}

TEST(parts)
{
	bool on = true, off = false;
	int device = 3;
	struct seen seen;

	seen = seen_in(0, 100);
	CHECK(seen.parts == 1 && seen.mostly == 0 && seen.devices == 0);
	CHECK(obf_advice_change(BASE + 100, 100, set_mostly, &on));
	CHECK(seen_in(100, 200).parts == 1 && seen_in(100, 200).mostly == 1);
	CHECK(seen_in(0, 200).parts == 2 && seen_in(0, 200).mostly == 1);
	CHECK(seen_in(50, 300).parts == 3 && seen_in(150, 160).mostly == 1);
	CHECK(seen_in(199, 200).mostly == 1 && seen_in(200, 201).mostly == 0);
	CHECK(obf_advice_change(BASE + 120, 10, set_mostly, &off));
	CHECK(seen_in(100, 200).parts == 3 && seen_in(100, 200).mostly == 2);
	CHECK(seen_in(119, 120).mostly == 1 && seen_in(120, 130).mostly == 0 &&
		seen_in(130, 131).mostly == 1);
	/* over parts and the gaps around them */
	CHECK(obf_advice_change(BASE, 1000, set_device, &device));
	CHECK(seen_in(0, 1000).devices == 1ull << 3 && seen_in(0, 1001).devices == 0);
	CHECK(seen_in(100, 200).mostly == 2);
	obf_advice_forget(BASE, 1000);
	CHECK(seen_in(0, 1000).parts == 1 && seen_in(0, 1000).devices == 0);
}

TEST(neighbours_stay)
{
	bool on = true;

	CHECK(obf_advice_change(BASE, 10, set_mostly, &on));
	CHECK(obf_advice_change(BASE + 10, 10, set_mostly, &on));
	CHECK(obf_advice_change(BASE + 20, 10, set_mostly, &on));
	obf_advice_forget(BASE + 10, 10);
	CHECK(seen_in(0, 10).mostly == 1 && seen_in(10, 20).mostly == 0 &&
		seen_in(20, 30).mostly == 1);
	obf_advice_forget(BASE, 30);
	CHECK(seen_in(0, 30).parts == 1);
}

/* Many parts, in an order that splits each of them. */
TEST(many)
{
	bool on = true;

	for (unsigned step = 512; step >= 1; step /= 2)
		for (uint64_t at = 0; at < 1024; at += 2 * step)
			CHECK(obf_advice_change(BASE + at, step, set_mostly, &on));
	CHECK(seen_in(0, 1023).mostly == seen_in(0, 1023).parts);
	CHECK(seen_in(0, 1024).mostly + 1 == seen_in(0, 1024).parts);
	obf_advice_forget(BASE, 1024);
}

/* A backend without such memory. */
TEST(not_offered)
{
	CUdeviceptr p = 0;
	int value = 7;

	begin();
	OK(obf_cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
	CHECK_INT(value, 0);
	CHECK_INT(obf_cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_NOT_SUPPORTED);
	CHECK(p == 0);
}

static int shared_globals;
static struct obf_backend sharing; /* the fake one, with managed memory */

static CUresult shared_alloc(struct obf_ctx *ctx, struct obf_mem *mem)
{
	return sharing.mem_alloc(ctx, mem);
}

static CUresult shared_global(struct obf_ctx *ctx, const struct obf_mem *mem)
{
	(void)ctx;
	CHECK(mem->is_global);
	shared_globals++;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void shared_global_end(const struct obf_mem *mem)
{
	(void)mem;
	shared_globals--;
}

/* A server says that a managed variable is where the program has memory: that memory stays as it is. */
TEST(a_managed_variable_is_at_the_address_of_an_allocation)
{
	static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				   ".visible .global .attribute(.managed) .align 4 .b8 m[64];\n";
	CUdeviceptr memory, addr;
	CUmodule module;
	struct obf_mem mem;
	size_t size;

	begin();
	sharing = *obf_attached();
	sharing.shared_alloc = shared_alloc;
	sharing.shared_global = shared_global;
	sharing.shared_global_end = shared_global_end;
	obf_attach(&sharing);
	OK(obf_cuMemAllocManaged(&memory, 4096, CU_MEM_ATTACH_GLOBAL));
	fake.global_addr = memory;
	OK(obf_cuModuleLoadData(&module, text));
	OK(obf_cuModuleGetGlobal_v2(&addr, &size, module, "m"));
	CHECK(shared_globals == 0);
	CHECK(obf_mem_find(memory, &mem) && mem.sharing == OBF_SHARING_MANAGED && mem.size == 4096);
	OK(obf_cuModuleUnload(module));
	CHECK(obf_mem_find(memory, &mem) && mem.sharing == OBF_SHARING_MANAGED);
	OK(obf_cuMemFree_v2(memory));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
