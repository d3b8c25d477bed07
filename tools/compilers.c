/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/compilers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "loadbalancer/pool.h"
#include "loadbalancer/together.h"
#include "protocol/load.h"
#include "tools/command.h"

#define PATH_BYTES 4096
/* The newest capability that Numba knows, with CUDA 13. */
#define KNOWN_MAX  121

/* Whether all devices of a server run PTX only. Before its first session it has only a driver. */
static bool runs_ptx_only(const struct obp_load *load)
{
	if (load->n_devices == 0)
		return strcmp(load->driver, "soft") == 0;
	for (uint32_t i = 0; i < load->n_devices; i++)
		if (!load->devices[i].ptx_only)
			return false;
	return true;
}

/* OUTBOARD_SOFT_CC can lower a server's capability for one program (client-shim/cuda/start.c). */
static unsigned capability_of(unsigned server)
{
	unsigned own;

	return ob_text_parse_capability(getenv("OUTBOARD_SOFT_CC"), &own) && own < server ? own
											  : server;
}

unsigned obx_compilers_ptx(const char *servers)
{
	static struct obl_answer answers[OBL_LIST_MAX];
	const char *wanted = getenv("OUTBOARD_COMPILERS");
	const char *model = getenv("OUTBOARD_DRYRUN");
	unsigned most = 0, others = 0;
	struct ob_cause cause;
	uint32_t n = 0;

	if (wanted && *wanted && strcmp(wanted, "ptx") != 0)
		return 0;
	if (wanted && *wanted)
		return capability_of(OB_TEXT_CAPABILITY_MAX);
	if (!servers)
		return model && *model ? 0 : capability_of(OB_TEXT_CAPABILITY_MAX);
	if (obl_together_addresses(servers, answers, &n, &cause))
		return 0;
	obl_ask_all(answers, n, 0, obl_pool_timeout_ns());
	for (uint32_t i = 0; i < n; i++) {
		const struct obp_load *load = &answers[i].load;
		unsigned here =
			load->n_devices ? load->devices[0].capability : OB_TEXT_CAPABILITY_MAX;

		if (answers[i].cause.code)
			continue;
		if (!runs_ptx_only(load))
			others++;
		else if (here > most)
			most = here;
		obp_load_fini(&answers[i].load);
	}
	return others ? 0 : capability_of(most);
}

/*
 * CuPy keeps what it compiled in a folder, under a name that does not tell PTX from machine code of
 * the same capability.
 */
static void cupy_set(void)
{
	const char *home = getenv("HOME");
	char folder[PATH_BYTES];

	setenv("CUPY_COMPILE_WITH_PTX", "1", 0);
	if (home &&
		snprintf(folder, sizeof folder, "%s/.cupy/kernel_cache_ptx", home) <
			(int)sizeof folder)
		setenv("CUPY_CACHE_DIR", folder, 0);
}

void obx_compilers_set(unsigned capability)
{
	char path[PATH_BYTES];

	cupy_set();
	/* Numba refuses a capability that it does not know; 9.0 all versions in use know. */
	if (capability > KNOWN_MAX)
		setenv("NUMBA_FORCE_CUDA_CC", "9.0", 0);
	/* The second is the one for capability 9.0 and later. */
	if (obx_look_for_file("outboard-ptxas", path, sizeof path)) {
		setenv("TRITON_PTXAS_PATH", path, 0);
		setenv("TRITON_PTXAS_BLACKWELL_PATH", path, 0);
	}
}
