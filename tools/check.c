/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard check` and `outboard info`. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "tools/command.h"
#include "tools/probe.h"
#include "tools/servers.h"
#include "transport/shm.h"

#define PINGS 200
#define LOOK_LIST (-2) /* several servers were named: look->url_text */
#define TIMEOUT_NS (5 * OB_SECOND)

struct look {
	const char *url_text;
	struct obx_probe probe;
	uint64_t ping_ns[PINGS];      /* sorted */
	unsigned pings;
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Opens look->probe; LOOK_LIST; else prints the one sentence on failure. */
static int look_open(const char *verb, int argc, char **argv, struct look *look)
{
	static const struct option options[] = { { "server", required_argument, NULL, 's' }, { "help", no_argument, NULL, 'h' }, { 0 } };
	const char *server = NULL, *why = NULL;
	char text[2048];
	struct obt_url url;
	enum ob_err err;
	int c;

	while ((c = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		if (c == 's') {
			server = optarg;
		} else if (c == 'h') {
			printf("usage: outboard %s [--server URL]\n", verb);
			return -1;
		} else {
			return obx_usage_error(verb, c == ':' ? "%s needs a value" : "there is no option %s", argv[optind - 1]);
		}
	}
	if (optind < argc)
		return obx_usage_error(verb, "unexpected '%s'", argv[optind]);
	look->url_text = obx_server_url(server);
	if (strchr(look->url_text, ','))
		return LOOK_LIST;
	if (obt_url_parse(look->url_text, &url, &why))
		return obx_usage_error(verb, "the server's address '%s': %s", look->url_text, why);
	err = obx_probe_open(&look->probe, &url, TIMEOUT_NS);
	if (err) {
		obx_probe_explain(&look->probe, look->url_text, err, errno, text, sizeof text);
		fprintf(stderr, "outboard %s: %s\n", verb, text);
		obt_stream_close(&look->probe.stream);
		return OBX_EXIT_UNWELL;
	}
	return 0;
}

int obx_check_main(int argc, char **argv)
{
	static struct look look;
	const struct obp_welcome *welcome = &look.probe.welcome.welcome;
	int code = look_open("check", argc, argv, &look);

	if (code == LOOK_LIST)
		return obx_servers_look("check", look.url_text, false);
	if (code)
		return code < 0 ? 0 : code;
	for (; look.pings < PINGS; look.pings++)
		if (obx_probe_ping(&look.probe, TIMEOUT_NS, &look.ping_ns[look.pings]))
			break;
	qsort(look.ping_ns, look.pings, sizeof look.ping_ns[0], by_value);
	printf("server      %s\n", look.url_text);
	printf("versions    server %s, this program %s, protocol %u\n", welcome->version, OB_VERSION, OBP_VERSION);
	printf("driver      %s, CUDA %d.%d\n", welcome->driver, welcome->driver_version / 1000, welcome->driver_version % 1000 / 10);
	printf("devices     %u", welcome->n_devices);
	for (uint32_t i = 0; i < welcome->n_devices; i++)
		printf("%s %s", i ? "," : ":", welcome->devices[i].name);
	printf("\nstart       connected in %.2f ms, session in %.2f ms%s\n", (double)look.probe.connect_ns / 1e6,
	       (double)look.probe.hello_ns / 1e6, obt_shm_on(&look.probe.stream) ? "; data through shared memory" : "");
	if (look.pings)
		printf("round trip  median %.1f us, 99%% %.1f us, of %u\n", (double)look.ping_ns[look.pings / 2] / 1e3,
		       (double)look.ping_ns[look.pings * 99 / 100] / 1e3, look.pings);
	code = look.pings == PINGS && welcome->n_devices ? 0 : OBX_EXIT_UNWELL;
	if (look.pings < PINGS)
		printf("verdict     the session broke after %u pings: look at the server's log\n", look.pings);
	else if (!welcome->n_devices)
		printf("verdict     the server has no device: start it with --driver soft, or mend its CUDA driver\n");
	else if (look.ping_ns[look.pings / 2] > 25 * OB_MS)
		printf("verdict     works, but far away: programs that wait for each kernel will be slow\n");
	else
		printf("verdict     all is well\n");
	obx_probe_close(&look.probe);
	return code;
}

int obx_info_main(int argc, char **argv)
{
	static struct look look;
	const struct obp_welcome *welcome = &look.probe.welcome.welcome;
	int code = look_open("info", argc, argv, &look);

	if (code == LOOK_LIST)
		return obx_servers_look("info", look.url_text, true);
	if (code)
		return code < 0 ? 0 : code;
	printf("%s: driver %s, CUDA %d.%d, server %s\n", look.url_text, welcome->driver, welcome->driver_version / 1000,
	       welcome->driver_version % 1000 / 10, welcome->version);
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		const struct obp_device *device = &welcome->devices[i];
		const int32_t *attr = device->attr;
		char total[32], free_text[32], uuid[33];

		ob_text_print_size(device->total_mem, total, sizeof total);
		ob_text_print_size(device->free_mem, free_text, sizeof free_text);
		ob_text_hex(device->uuid, sizeof device->uuid, uuid);
		printf("\n[%u] %s\n", i, device->name);
		printf("    compute capability  %d.%d%s\n", attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR],
		       attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR], device->ptx_only ? " (runs PTX only)" : "");
		printf("    memory              %s, %s free\n", total, free_text);
		printf("    multiprocessors     %d, %d threads a block, %d KiB shared memory a block\n",
		       attr[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT], attr[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
		       attr[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] / 1024);
		printf("    UUID                %s\n", uuid);
	}
	obx_probe_close(&look.probe);
	return 0;
}
