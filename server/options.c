/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "protocol/format.h"
#include "protocol/resume.h"

static const char help[] =
	"usage: outboard-server --listen URL [options]\n"
	"Runs CUDA programs of other machines on this machine's GPU, or on its CPU.\n"
	"\n"
	"  --listen URL         tls://host:port, tcp://host:port or unix:/path; may be repeated; port 0 picks a free one\n"
	"  --tls-cert FILE      certificate of the tls:// addresses (PEM); 'outboard cert' makes one\n"
	"  --tls-key FILE       its private key\n"
	"  --tls-client-ca FILE clients may prove themselves by a certificate that one of these has signed\n"
	"  --tokens FILE        clients may prove themselves by a token of this file ('outboard token')\n"
	"  --audit FILE         append who came, from where, for how long and how much, as JSON lines\n"
	"  --insecure           listen where other machines can connect without TLS, or let anybody in\n"
	"  --driver WHICH       auto (default): the system's libcuda.so.1 if it works, else soft\n"
	"                       soft: the software device; null: answers everything, does nothing; or a path\n"
	"  --warm N             workers kept ready for new sessions (default 1)\n"
	"  --max-sessions N     sessions at the same time (default 256)\n"
	"  --hello-timeout S    seconds a new connection has to introduce itself (default 5)\n"
	"  --drain-timeout S    seconds that sessions get to end after SIGTERM (default 30)\n"
	"  --grace S            seconds a session waits for a client whose connection broke (default 60; 0: it ends)\n"
	"  --cache DIR          where code images of clients are kept (default: under $XDG_RUNTIME_DIR or /tmp)\n"
	"  --version, --help\n";

enum { LISTEN = 256, TLS_CERT, TLS_KEY, TLS_CLIENT_CA, TOKENS, AUDIT, INSECURE, DRIVER,
	WARM, MAX_SESSIONS, HELLO, DRAIN, GRACE, CACHE, WORKER, PROBE, VERSION, HELP };

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, LISTEN },
	{ "tls-cert", required_argument, NULL, TLS_CERT },
	{ "tls-key", required_argument, NULL, TLS_KEY },
	{ "tls-client-ca", required_argument, NULL, TLS_CLIENT_CA },
	{ "tokens", required_argument, NULL, TOKENS },
	{ "audit", required_argument, NULL, AUDIT },
	{ "insecure", no_argument, NULL, INSECURE },
	{ "driver", required_argument, NULL, DRIVER },
	{ "warm", required_argument, NULL, WARM },
	{ "max-sessions", required_argument, NULL, MAX_SESSIONS },
	{ "hello-timeout", required_argument, NULL, HELLO },
	{ "drain-timeout", required_argument, NULL, DRAIN },
	{ "grace", required_argument, NULL, GRACE },
	{ "cache", required_argument, NULL, CACHE },
	{ "worker", no_argument, NULL, WORKER },
	{ "probe", no_argument, NULL, PROBE },
	{ "version", no_argument, NULL, VERSION },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static bool parse_count(const char *name, const char *text, uint32_t min, uint32_t max, uint32_t *ret)
{
	uint64_t value;

	if (!ob_text_parse_number(text, min, max, &value)) {
		fprintf(stderr, "outboard-server: --%s takes a number from %u to %u, not \"%s\"\n", name, min, max, text);
		return false;
	}
	*ret = (uint32_t)value;
	return true;
}

static const char **file_of(struct obs_options *o, int which)
{
	switch (which) {
	case TLS_CERT:
		return &o->tls_cert;
	case TLS_KEY:
		return &o->tls_key;
	case TLS_CLIENT_CA:
		return &o->tls_client_ca;
	case TOKENS:
		return &o->tokens;
	default:
		return &o->audit;
	}
}

static bool parse_one(struct obs_options *o, int which, const char *text)
{
	switch (which) {
	case LISTEN:
		if (o->n_listen == OBS_LISTEN_MAX) {
			fprintf(stderr, "outboard-server: --listen may be given %d times at most\n", OBS_LISTEN_MAX);
			return false;
		}
		o->listen[o->n_listen++] = text;
		return true;
	case DRIVER:
		o->driver = text;
		return true;
	case TLS_CERT:
	case TLS_KEY:
	case TLS_CLIENT_CA:
	case TOKENS:
	case AUDIT:
		*file_of(o, which) = text;
		return true;
	case INSECURE:
		o->insecure = true;
		return true;
	case CACHE:
		o->cache = text;
		return true;
	case WARM:
		return parse_count("warm", text, 0, OBS_WARM_MAX, &o->warm);
	case MAX_SESSIONS:
		return parse_count("max-sessions", text, 1, OBS_SESSIONS_MAX, &o->max_sessions);
	case HELLO:
		return parse_count("hello-timeout", text, 1, OBS_SECONDS_MAX, &o->hello_timeout_s);
	case DRAIN:
		return parse_count("drain-timeout", text, 0, OBS_SECONDS_MAX, &o->drain_timeout_s);
	case GRACE:
		return parse_count("grace", text, 0, OBS_SECONDS_MAX, &o->grace_s);
	case WORKER:
		o->mode = OBS_MODE_WORKER;
		return true;
	case PROBE:
		o->mode = OBS_MODE_PROBE;
		return true;
	case VERSION:
		printf("outboard-server %s, protocol %u\n", OB_VERSION, OBP_VERSION);
		o->mode = OBS_MODE_DONE;
		return true;
	case HELP:
		fputs(help, stdout);
		o->mode = OBS_MODE_DONE;
		return true;
	default:
		fprintf(stderr, "outboard-server: see --help\n");
		return false;
	}
}

int obs_options_parse(struct obs_options *ret, int argc, char **argv)
{
	struct obs_options o = { .driver = "auto", .warm = 1, .max_sessions = OBS_SESSIONS_DEFAULT, .hello_timeout_s = 5,
		.drain_timeout_s = 30, .grace_s = OBP_GRACE_DEFAULT_S };
	int which;

	optind = 1;
	while (o.mode != OBS_MODE_DONE && (which = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (!parse_one(&o, which, optarg))
			return 2;
	if (o.mode != OBS_MODE_DONE && optind < argc) {
		fprintf(stderr, "outboard-server: \"%s\" is not an option; see --help\n", argv[optind]);
		return 2;
	}
	if (o.mode == OBS_MODE_SUPERVISOR && o.n_listen == 0) {
		fprintf(stderr, "outboard-server: say where to listen, for example --listen tcp://127.0.0.1:%d\n", OBP_PORT);
		return 2;
	}
	if (!o.tls_cert != !o.tls_key) {
		fprintf(stderr, "outboard-server: --tls-cert and --tls-key belong together\n");
		return 2;
	}
	if (o.driver[0] == '\0') {
		fprintf(stderr, "outboard-server: --driver takes auto, soft, null or the path of a libcuda.so.1\n");
		return 2;
	}
	*ret = o;
	return 0;
}

void obs_options_worker_args(struct obs_options *options, const char *self, const char *driver,
	char *ret_args[OBS_WORKER_ARGS_MAX])
{
	const struct {
		const char *name, *value;
	} files[] = { { "--tls-cert", options->tls_cert }, { "--tls-key", options->tls_key }, { "--tls-client-ca", options->tls_client_ca },
		{ "--tokens", options->tokens }, { "--audit", options->audit } };
	size_t n = 0;

	snprintf(options->hello_timeout_text, sizeof options->hello_timeout_text, "%u", options->hello_timeout_s);
	ret_args[n++] = (char *)(uintptr_t)self;
	ret_args[n++] = (char *)(uintptr_t)"--worker";
	ret_args[n++] = (char *)(uintptr_t)"--driver";
	ret_args[n++] = (char *)(uintptr_t)driver;
	ret_args[n++] = (char *)(uintptr_t)"--hello-timeout";
	ret_args[n++] = options->hello_timeout_text;
	snprintf(options->grace_text, sizeof options->grace_text, "%u", options->grace_s);
	ret_args[n++] = (char *)(uintptr_t)"--grace";
	ret_args[n++] = options->grace_text;
	if (options->cache) {
		ret_args[n++] = (char *)(uintptr_t)"--cache";
		ret_args[n++] = (char *)(uintptr_t)options->cache;
	}
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		if (!files[i].value)
			continue;
		ret_args[n++] = (char *)(uintptr_t)files[i].name;
		ret_args[n++] = (char *)(uintptr_t)files[i].value;
	}
	ret_args[n] = NULL;
}
