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
#include "compute/command/rqa/args.h"
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
	bool help;
};

static void usage(FILE *out)
{
	fprintf(out,
		"usage: outboard rqa serve FOLDER [options]\n\n"
		"A page in the browser: sweeps over the CSV files of FOLDER with progress, log, "
		"table, heat maps and downloads. Ctrl-C "
		"stops it; a sweep that\n"
		"was running goes on when it is started again.\n\n"
		"  --out FOLDER        where results go, each sweep in a folder of its name; "
		"default FOLDER-rqa\n"
		"  --port N            default %d; 0: any that is free\n"
		"  --address ADDRESS   default 127.0.0.1, this machine only; there is no password, "
		"so anyone who reaches another address "
		"can run sweeps\n"
		"  --host-name NAME    a further name by which browsers may call\n"
		"  --pattern GLOB      which files; default *.csv\n",
		PORT_USUAL);
}

static void parse(struct command *c, struct obx_args *args)
{
	while (obx_args_next(args)) {
		const char *value = NULL;

		if (obx_args_flag(args, "help")) {
			usage(stdout);
			c->help = true;
			return;
		}
		if (args->word && !c->folder)
			c->folder = args->word;
		else if (args->word)
			obx_args_refuse(args, "unexpected '%.200s'", args->word);
		else if (obx_args_is(args, "port", &value)) {
			if (value && !ob_text_parse_number(value, 0, 65535, &c->port))
				obx_args_refuse(args,
					"--port takes a number from 0 to 65535, not '%.40s'",
					value);
		} else if (!obx_args_is(args, "out", &c->out) &&
			!obx_args_is(args, "address", &c->address) &&
			!obx_args_is(args, "pattern", &c->pattern) &&
			!obx_args_is(args, "host-name", &c->host_name)) {
			obx_args_unknown(args);
		}
	}
	if (!args->wrong && !c->folder)
		obx_args_refuse(args, "a folder is missing");
}

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

int obx_rqa_serve_main(int argc, char **argv)
{
	struct obx_args args = { .verb = "rqa serve", .argc = argc, .at = 1, .argv = argv };
	struct command c = { .address = "127.0.0.1", .port = PORT_USUAL };
	OB_CLEANUP(ob_freep) struct obx_page *page = calloc(1, sizeof *page);
	struct obx_files files;
	struct obx_error error;
	char out[4096], url[128];
	int fd, code;

	parse(&c, &args);
	if (args.wrong)
		return OBX_EXIT_USAGE;
	if (c.help)
		return 0;
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
