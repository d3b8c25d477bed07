/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard rqa serve`: the web server around compute/command/rqa/page.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "compute/command/rqa/out.h"
#include "compute/command/rqa/page.h"
#include "compute/command/rqa/rqa.h"
#include "tools/command.h"

#define PORT_USUAL      14880
#define CONNECTIONS_MAX 64
#define IDLE_SECONDS    60
#define WAIT_MS         100

struct command {
	const char *folder, *out, *address, *pattern, *host_name;
	uint64_t port;
};

static const struct ob_option options[] = {
	{ OB_OPTION("out", OB_FOLDER, struct command, out), .arg = "FOLDER", .letter = 'o',
		.fallback = "FOLDER-rqa",
		.help = "where results go, each sweep in a folder of its name" },
	{ OB_OPTION("port", OB_NUMBER, struct command, port), .arg = "N", .max = 65535,
		.fallback = OB_VALUE_TEXT(PORT_USUAL), .help = "port; 0: any that is free" },
	{ OB_OPTION("address", OB_TEXT, struct command, address), .arg = "ADDRESS",
		.fallback = "127.0.0.1, this machine only",
		.help = "IP address to listen on. There is no password, so anyone who reaches "
			"another address can run sweeps" },
	{ OB_OPTION("host-name", OB_TEXT, struct command, host_name), .arg = "NAME",
		.help = "a further name by which browsers may call" },
	{ OB_OPTION("pattern", OB_TEXT, struct command, pattern), .arg = "GLOB",
		.fallback = "*.csv", .help = "which files" },
	{ 0 },
};

static const struct ob_operand operands[] = {
	{ .name = "FOLDER",
		.folder = true,
		.offset = offsetof(struct command, folder),
		.missing = "a folder is missing" },
	{ 0 },
};

/* Opens a listening socket; -1: error has the reason. */
static int listen_at(const struct command *c, char *ret_url, size_t size, struct obx_error *error)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)c->port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)c->port) };
	bool is_four = inet_pton(AF_INET, c->address, &four.sin_addr) == 1;
	struct sockaddr *address = is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six;
	socklen_t length = is_four ? sizeof four : sizeof six;
	int fd, yes = 1;

	if (!is_four && inet_pton(AF_INET6, c->address, &six.sin6_addr) != 1) {
		obx_error_set(error,
			"--address takes an IP address such as 127.0.0.1 or ::1, not '%.60s'",
			c->address);
		return -1;
	}
	fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
		bind(fd, address, length) != 0 || listen(fd, CONNECTIONS_MAX) != 0 ||
		getsockname(fd, address, &length) != 0) {
		obx_error_set(error,
			"port %u of %s cannot be used: %s; choose another with --port, or 0 for "
			"any that is free",
			(unsigned)c->port, c->address, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	snprintf(ret_url, size, is_four ? "http://%s:%u/" : "http://[%s]:%u/", c->address,
		ntohs(is_four ? four.sin_port : six.sin6_port));
	if (is_four ? (ntohl(four.sin_addr.s_addr) >> 24) != 127
		    : !IN6_IS_ADDR_LOOPBACK(&six.sin6_addr))
		fprintf(stderr,
			"outboard rqa serve: %s can be reached from other machines, and there is "
			"no password\n",
			ret_url);
	return fd;
}

static int serve(struct obx_page *page, int fd, const char *url)
{
	struct MHD_Daemon *daemon = MHD_start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0,
		NULL, NULL, obx_page_answer, page, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED, obx_page_done, page, MHD_OPTION_END);
	const struct timespec wait = { .tv_nsec = WAIT_MS * 1000000l };

	if (!daemon) {
		fprintf(stderr, "outboard rqa serve: the web server cannot be started\n");
		close(fd);
		return OBX_EXIT_UNWELL;
	}
	printf("outboard rqa serve: %s\n", url);
	fflush(stdout);
	while (!obx_rqa_stop)
		nanosleep(&wait, NULL);
	/* ends the event streams, so that their threads can be joined */
	obx_job_close(&page->job);
	MHD_stop_daemon(daemon);
	return 0;
}

static int serve_main(int argc, char **argv)
{
	struct command c = { .address = "127.0.0.1", .port = PORT_USUAL };
	OB_CLEANUP(ob_freep) struct obx_page *page = calloc(1, sizeof *page);
	struct obx_files files;
	struct obx_error error;
	char out[4096], url[128];
	int fd, code;

	code = ob_options_parse(&obx_rqa_serve_command, &c, argc, argv);
	if (code != OB_OPTIONS_GO)
		return code;
	if (!c.out) {
		size_t length = strlen(c.folder);

		while (length > 1 && c.folder[length - 1] == '/')
			length--;
		snprintf(out, sizeof out, "%.*s-rqa", (int)length, c.folder);
		c.out = out;
	}
	if (!page ||
		!obx_files_list(&files, c.folder, c.pattern ? c.pattern : "*.csv", c.out, &error) ||
		!obx_out_folder(c.out, &error)) {
		fprintf(stderr, "outboard rqa serve: %s\n", page ? error.text : "out of memory");
		return OBX_EXIT_UNWELL;
	}
	obx_files_fini(&files);
	obx_rqa_catch_signals();
	fd = listen_at(&c, url, sizeof url, &error);
	if (fd < 0) {
		fprintf(stderr, "outboard rqa serve: %s\n", error.text);
		return OBX_EXIT_UNWELL;
	}
	code = OBX_EXIT_UNWELL;
	if (obx_page_init(page, c.folder, c.out)) {
		page->pattern = c.pattern ? c.pattern : "*.csv";
		page->host_name = c.host_name;
		code = serve(page, fd, url);
	}
	obx_page_fini(page);
	return code;
}

const struct ob_command obx_rqa_serve_command = {
	.name = "outboard rqa serve",
	.summary = "sweeps from a page in the browser",
	.about =
		"A page in the browser: sweeps over the CSV files of FOLDER with progress, log, "
		"table, heat maps and downloads. Ctrl-C stops it; a sweep that was running goes on "
		"when it is started again.",
	.options = options,
	.operands = operands,
	.main = serve_main,
};
