/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard check` and `outboard info`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/text.h"
#include "loadbalancer/together.h"
#include "tools/command.h"
#include "tools/pool_verbs.h"
#include "tools/probe.h"
#include "tools/servers.h"
#include "tools/way.h"
#include "transport/failure.h"
#include "transport/link_memory.h"
#include "transport/shm.h"

#define PINGS             200
#define LOOK_LIST         (-2) /* several servers were named, in look->url_text */
#define LOOK_POOL         (-3) /* a pool, in look->url_text */
#define TIMEOUT_DEFAULT_S 5u
#define TIMEOUT_MAX_S     86400u

struct look {
	const char *server, *pool, *url_text;
	struct obt_url url;
	struct obx_probe probe;
	uint64_t ping_ns[PINGS]; /* sorted */
	unsigned pings;
};

/* The client library's time-out. */
static uint64_t timeout_ns(void)
{
	const char *text = getenv("OUTBOARD_TIMEOUT");
	uint64_t seconds;

	if (!text || !ob_text_parse_number(text, 1, TIMEOUT_MAX_S, &seconds))
		seconds = TIMEOUT_DEFAULT_S;
	return seconds * OB_SECOND;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static const struct ob_option options[] = {
	OBX_SERVER_OPTION(struct look, server),
	OBX_POOL_OPTION(struct look, pool),
	{ 0 },
};

/*
 * Opens look->probe and returns OB_OPTIONS_GO; or returns LOOK_LIST or LOOK_POOL; or, after one
 * sentence of an error, the exit code.
 */
static int look_open(const struct ob_command *command, int argc, char **argv, struct look *look)
{
	struct ob_cause cause;
	char text[OBT_FAILURE_TEXT];
	struct obx_way way;
	enum ob_err err;
	int code = ob_options_parse(command, look, argc, argv);

	if (code == OB_OPTIONS_GO)
		code = obx_way_find(command, look->pool, look->server, &way);
	if (code != OB_OPTIONS_GO)
		return code;
	look->url_text = way.pool ? way.pool : way.server;
	if (way.pool)
		return LOOK_POOL;
	if (strchr(look->url_text, ',') || obl_together_several(look->url_text))
		return LOOK_LIST;
	if (obt_url_parse(look->url_text, &look->url, &cause))
		return ob_usage_error(
			command, "the server's address '%s': %s", look->url_text, cause.text);
	err = obx_probe_open(&look->probe, &look->url, timeout_ns());
	if (err) {
		obx_probe_explain(&look->probe, &look->url, look->url_text, text, sizeof text);
		fprintf(stderr, "%s: %s\n", command->name, text);
		obt_stream_close(&look->probe.stream);
		return OBX_EXIT_UNWELL;
	}
	return OB_OPTIONS_GO;
}

enum kind { KIND_GPU, KIND_SOFTWARE, KIND_DRYRUN, KIND_NULL };

static const struct {
	const char *name, *verdict;
} kinds[] = {
	[KIND_GPU] = { "GPU", "all is well" },
	[KIND_SOFTWARE] = { "SOFTWARE DEVICE, NO GPU",
		"all is well, but there is NO GPU: kernels run on the server's CPU, many times "
		"slower. "
		"'outboard-server --driver gpu' "
		"serves a GPU or does not start" },
	[KIND_DRYRUN] = { "DRY RUN, NO GPU",
		"all is well for trying programs out, but NOTHING IS COMPUTED: kernels are "
		"accepted "
		"and not executed, so results are wrong. Start the server with --driver gpu or "
		"--driver soft to compute" },
	[KIND_NULL] = { "NULL DRIVER, NO GPU",
		"all is well for measuring calls, but NOTHING IS COMPUTED: the null driver answers "
		"every call and runs no "
		"kernel. Start the "
		"server with --driver gpu or --driver soft" },
};

/* Names what executes a device's kernels, from the server's description of the device. */
static enum kind kind_of(const struct obp_welcome *welcome, uint32_t device)
{
	if (strcmp(welcome->driver, "null") == 0)
		return KIND_NULL;
	if (strcmp(welcome->driver, "dryrun") == 0)
		return KIND_DRYRUN;
	return welcome->devices[device].ptx_only ? KIND_SOFTWARE : KIND_GPU;
}

/* What the client library will begin with (transport/link_memory.h). */
static void remembered_print(const struct look *look)
{
	struct obt_link_memory memory;
	char key[OBT_LINK_KEY_MAX], out[32], in[32];

	if (!ob_opt_on(OB_OPT_LINKMEMORY) || !obt_link_key(&look->url, &look->probe.stream, key) ||
		obt_link_read(key, &memory, NULL))
		return;
	ob_text_print_size(memory.rate_out, out, sizeof out);
	ob_text_print_size(memory.rate_in, in, sizeof in);
	printf("remembered  %s/s to the server, %s/s from it (0: unknown), round trip %.2f ms\n",
		out, in, (double)memory.round_trip / 1e6);
}

static int check_main(int argc, char **argv)
{
	static struct look look;
	const struct obp_welcome *welcome = &look.probe.welcome.welcome;
	int code = look_open(&obx_check_command, argc, argv, &look);

	if (code == LOOK_LIST)
		return obx_servers_look("check", look.url_text, false);
	if (code == LOOK_POOL)
		return obx_pool_check(&obx_check_command, look.url_text);
	if (code != OB_OPTIONS_GO)
		return code;
	for (; look.pings < PINGS; look.pings++)
		if (obx_probe_ping(&look.probe, timeout_ns(), &look.ping_ns[look.pings]))
			break;
	qsort(look.ping_ns, look.pings, sizeof look.ping_ns[0], by_value);
	printf("server      %s\n", look.url_text);
	printf("versions    server %s, this program %s, protocol %u\n", welcome->version,
		OB_VERSION, OBP_VERSION);
	printf("driver      %s, CUDA %d.%d\n", welcome->driver, welcome->driver_version / 1000,
		welcome->driver_version % 1000 / 10);
	if (welcome->sandbox[0])
		printf("sandbox     %s\n", welcome->sandbox);
	for (uint32_t i = 0; i < welcome->n_devices; i++)
		printf("device %-4u %s: %s\n", i, kinds[kind_of(welcome, i)].name,
			welcome->devices[i].name);
	printf("start       connected in %.2f ms, session in %.2f ms%s\n",
		(double)look.probe.connect_ns / 1e6, (double)look.probe.hello_ns / 1e6,
		obt_shm_on(&look.probe.stream) ? "; data through shared memory" : "");
	if (look.pings)
		printf("round trip  median %.1f us, 99%% %.1f us, of %u\n",
			(double)look.ping_ns[look.pings / 2] / 1e3,
			(double)look.ping_ns[look.pings * 99 / 100] / 1e3, look.pings);
	remembered_print(&look);
	code = look.pings == PINGS && welcome->n_devices ? 0 : OBX_EXIT_UNWELL;
	if (look.pings < PINGS)
		printf("verdict     the session ended after %u pings: read the server's log\n",
			look.pings);
	else if (!welcome->n_devices)
		printf("verdict     the server has no device: start it with --driver soft, or "
		       "repair "
		       "its CUDA driver\n");
	else if (look.ping_ns[look.pings / 2] > 25 * OB_MS)
		printf("verdict     works, but far away: programs that wait for each kernel will "
		       "be slow\n");
	else
		printf("verdict     %s\n", kinds[kind_of(welcome, 0)].verdict);
	obx_probe_close(&look.probe);
	return code;
}

const struct ob_command obx_check_command = {
	.name = "outboard check",
	.group = OBX_GROUP_REMOTE,
	.summary = "is the server there, what does it run, how far away is it, what is wrong",
	.about = "Connects to a server, opens a session and measures the round trip. Prints what "
		 "the server runs and a verdict. Of several servers, with commas between them, it "
		 "lists the load. With a pool it asks a balancer. Exit code 0: the server or the "
		 "pool works.",
	.options = options,
	.main = check_main,
};

static int info_main(int argc, char **argv)
{
	static struct look look;
	const struct obp_welcome *welcome = &look.probe.welcome.welcome;
	int code = look_open(&obx_info_command, argc, argv, &look);

	if (code == LOOK_LIST)
		return obx_servers_look("info", look.url_text, true);
	if (code == LOOK_POOL)
		return obx_pool_gpus(&obx_info_command, look.url_text);
	if (code != OB_OPTIONS_GO)
		return code;
	printf("%s: driver %s, CUDA %d.%d, server %s\n", look.url_text, welcome->driver,
		welcome->driver_version / 1000, welcome->driver_version % 1000 / 10,
		welcome->version);
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		const struct obp_device *device = &welcome->devices[i];
		const int32_t *attr = device->attr;
		char total[32], free_text[32], uuid[33];

		ob_text_print_size(device->total_mem, total, sizeof total);
		ob_text_print_size(device->free_mem, free_text, sizeof free_text);
		ob_text_hex(device->uuid, sizeof device->uuid, uuid);
		printf("\n[%u] %s\n", i, device->name);
		printf("    compute capability  %d.%d%s\n",
			attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR],
			attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR],
			device->ptx_only ? " (runs PTX only)" : "");
		printf("    memory              %s, %s free\n", total, free_text);
		printf("    multiprocessors     %d, %d threads a block, %d KiB shared memory a "
		       "block\n",
			attr[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT],
			attr[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
			attr[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] / 1024);
		printf("    UUID                %s\n", uuid);
	}
	obx_probe_close(&look.probe);
	return 0;
}

const struct ob_command obx_info_command = {
	.name = "outboard info",
	.group = OBX_GROUP_REMOTE,
	.summary = "the server's devices",
	.about = "Prints the devices of a server, the load of several servers with commas between "
		 "them, or the GPUs of a pool.",
	.options = options,
	.main = info_main,
};
