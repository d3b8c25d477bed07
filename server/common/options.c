/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "protocol/format.h"
#include "protocol/resume.h"
#include "server/common/cache.h"
#include "server/common/config.h"

static const char help[] =
	"usage: outboard-server --listen URL [options]\n"
	"Runs CUDA programs of other machines on this machine's GPU, or on its CPU.\n"
	"\n"
	"  --listen URL         tls://host:port, tcp://host:port, unix:/path or shm:/path; may be "
	"repeated.\n"
	"                       Port 0 picks a free one. shm: is a unix socket too; clients that "
	"connect to\n"
	"                       it as shm: send their data through shared memory\n"
	"  --tls-cert FILE      certificate for the tls:// addresses (PEM); 'outboard cert' makes "
	"one\n"
	"  --tls-key FILE       its private key\n"
	"  --tls-client-ca FILE authenticate clients by certificates that one of these authorities "
	"has signed\n"
	"  --tokens FILE        authenticate clients by the tokens in this file ('outboard "
	"token')\n"
	"  --audit FILE         append a JSON line for each session: who, from where, how long, "
	"how much\n"
	"  --audit-size SIZE    size of one audit file (default 16MiB); a full one is renamed to "
	"FILE.1\n"
	"  --audit-files N      number of audit files that are kept (default 8)\n"
	"  --insecure           allow listening without TLS or authentication where other machines "
	"can connect\n"
	"  --driver WHICH       auto (default): gpu if it works, else soft, with a warning\n"
	"                       gpu: the system's libcuda.so.1; the server does not start without "
	"it\n"
	"                       soft: the software device, which runs kernels on the CPU\n"
	"                       null: answers every call and computes nothing, for measurements\n"
	"                       or the path of a libcuda.so.1\n"
	"  --sandbox WHICH      auto (default): confine workers and admission as far as this "
	"kernel allows\n"
	"                       strict: do not start unless every part is available\n"
	"                       off\n"
	"  --worker-user NAME   user of the workers, name or number, if the server is started as "
	"root\n"
	"                       (default: outboard if there is such a user, else an unused "
	"number)\n"
	"  --warm N             idle workers kept ready for new sessions (default 1)\n"
	"  --refill N           workers that may be starting at the same time (default 4); "
	"starting a driver\n"
	"                       takes processor time\n"
	"  --max-sessions N     sessions at a time (default 256)\n"
	"  --hello-timeout S    seconds in which a new connection must send its first message "
	"(default 5)\n"
	"  --connections N      connections at a time that are not authenticated yet (default "
	"2048)\n"
	"  --address-connections N  of these, from one address (default 64); IPv6 is counted by "
	"/64\n"
	"  --address-rate N     new sessions and load questions a second from one address (default "
	"50)\n"
	"  --address-sessions N sessions at a time from one address (default 7/8 of "
	"--max-sessions)\n"
	"  --token-sessions N   sessions at a time of one token or certificate (default 7/8 of "
	"--max-sessions)\n"
	"  --count-local        apply the limits by address to this machine's own addresses too\n"
	"  --drain-timeout S    seconds that sessions may continue after SIGTERM (default 30)\n"
	"  --grace S            seconds that a session waits for a client whose connection broke "
	"(default 60;\n"
	"                       0: the session ends)\n"
	"  --cache DIR          directory of the upload cache (default: under $XDG_RUNTIME_DIR or "
	"/tmp)\n"
	"  --upload-cache SIZE  size of that cache of code images and copied data (default 1GiB; "
	"0: none)\n"
	"  --metrics URL        serve GET /metrics there, for example tcp://127.0.0.1:9464: "
	"without TLS and\n"
	"                       authentication, and on any address\n"
	"  --config FILE        read options from a file; options behind it on the command line "
	"override it\n"
	"  --check-config FILE  report the errors in such a file and exit\n"
	"  --version, --help\n"
	"\n";

enum {
	LISTEN = 256,
	TLS_CERT,
	TLS_KEY,
	TLS_CLIENT_CA,
	TOKENS,
	AUDIT,
	INSECURE,
	LIMIT,
	LIMITS,
	CONFIG,
	CHECK_CONFIG,
	METRICS,
	REFILL,
	DRIVER,
	WARM,
	MAX_SESSIONS,
	HELLO,
	DRAIN,
	GRACE,
	CACHE,
	UPLOAD_CACHE,
	SANDBOX,
	WORKER_USER,
	WORKER_IDS,
	WORKER,
	ADMISSION,
	LISTENERS,
	EXPECT_TLS,
	PROBE,
	VERSION,
	HELP,
	AUDIT_SIZE,
	AUDIT_FILES,
	CONNECTIONS,
	ADDRESS_CONNECTIONS,
	ADDRESS_RATE,
	ADDRESS_SESSIONS,
	TOKEN_SESSIONS,
	COUNT_LOCAL
};

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, LISTEN },
	{ "tls-cert", required_argument, NULL, TLS_CERT },
	{ "tls-key", required_argument, NULL, TLS_KEY },
	{ "tls-client-ca", required_argument, NULL, TLS_CLIENT_CA },
	{ "tokens", required_argument, NULL, TOKENS },
	{ "audit", required_argument, NULL, AUDIT },
	{ "audit-size", required_argument, NULL, AUDIT_SIZE },
	{ "audit-files", required_argument, NULL, AUDIT_FILES },
	{ "connections", required_argument, NULL, CONNECTIONS },
	{ "address-connections", required_argument, NULL, ADDRESS_CONNECTIONS },
	{ "address-rate", required_argument, NULL, ADDRESS_RATE },
	{ "address-sessions", required_argument, NULL, ADDRESS_SESSIONS },
	{ "token-sessions", required_argument, NULL, TOKEN_SESSIONS },
	{ "count-local", no_argument, NULL, COUNT_LOCAL },
	{ "insecure", no_argument, NULL, INSECURE },
	{ "config", required_argument, NULL, CONFIG },
	{ "check-config", required_argument, NULL, CHECK_CONFIG },
	{ "max-memory", required_argument, NULL, LIMIT },
	{ "max-host-memory", required_argument, NULL, LIMIT },
	{ "max-outstanding", required_argument, NULL, LIMIT },
	{ "max-handles", required_argument, NULL, LIMIT },
	{ "max-modules", required_argument, NULL, LIMIT },
	{ "max-lanes", required_argument, NULL, LIMIT },
	{ "max-stripes", required_argument, NULL, LIMIT },
	{ "idle-timeout", required_argument, NULL, LIMIT },
	{ "share", required_argument, NULL, LIMIT },
	{ "max-priority", required_argument, NULL, LIMIT },
	{ "on-excess", required_argument, NULL, LIMIT },
	{ "measure", required_argument, NULL, LIMIT },
	{ "limits", required_argument, NULL, LIMITS }, /* workers only */
	{ "metrics", required_argument, NULL, METRICS },
	{ "refill", required_argument, NULL, REFILL },
	{ "driver", required_argument, NULL, DRIVER },
	{ "sandbox", required_argument, NULL, SANDBOX },
	{ "worker-user", required_argument, NULL, WORKER_USER },
	{ "worker-ids", required_argument, NULL, WORKER_IDS }, /* workers only */
	{ "warm", required_argument, NULL, WARM },
	{ "max-sessions", required_argument, NULL, MAX_SESSIONS },
	{ "hello-timeout", required_argument, NULL, HELLO },
	{ "drain-timeout", required_argument, NULL, DRAIN },
	{ "grace", required_argument, NULL, GRACE },
	{ "cache", required_argument, NULL, CACHE },
	{ "upload-cache", required_argument, NULL, UPLOAD_CACHE },
	{ "worker", no_argument, NULL, WORKER },
	{ "admission", no_argument, NULL, ADMISSION },
	{ "expect-tls", no_argument, NULL, EXPECT_TLS },     /* workers only */
	{ "listeners", required_argument, NULL, LISTENERS }, /* admission only */
	{ "probe", no_argument, NULL, PROBE },
	{ "version", no_argument, NULL, VERSION },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

/* Keys of a configuration file: the options that set something. */
static const char *const setting_names[] = {
	"listen",
	"driver",
	"sandbox",
	"worker-user",
	"warm",
	"refill",
	"max-sessions",
	"hello-timeout",
	"drain-timeout",
	"grace",
	"cache",
	"upload-cache",
	"tls-cert",
	"tls-key",
	"tls-client-ca",
	"tokens",
	"audit",
	"audit-size",
	"audit-files",
	"connections",
	"address-connections",
	"address-rate",
	"address-sessions",
	"token-sessions",
	"count-local",
	"insecure",
	"metrics",
	"max-memory",
	"max-host-memory",
	"max-outstanding",
	"max-handles",
	"max-modules",
	"max-lanes",
	"max-stripes",
	"idle-timeout",
	"share",
	"max-priority",
	"on-excess",
	"measure",
	NULL,
};

static bool take_count(
	const char *text, uint32_t min, uint32_t max, uint32_t *ret, char *ret_why, size_t size)
{
	uint64_t value;

	if (!ob_text_parse_number(text, min, max, &value)) {
		snprintf(ret_why, size, "a number from %u to %u", min, max);
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

static bool take_text(
	const char *text, const char **ret, char *ret_why, size_t size, const char *wanted)
{
	*ret = text;
	if (text[0])
		return true;
	snprintf(ret_why, size, "%s", wanted);
	return false;
}

/* A flag has no value on the command line. */
static bool take_flag(const char *text, bool *ret, char *ret_why, size_t size)
{
	*ret = !text || strcmp(text, "yes") == 0;
	if (*ret || strcmp(text, "no") == 0)
		return true;
	snprintf(ret_why, size, "yes or no");
	return false;
}

/* Sets one option, from the command line or a file. False: ret_why says what it takes. */
static bool set(struct obs_options *o, int which, const char *name, const char *text, char *ret_why,
	size_t size)
{
	struct ob_cause cause = { .code = OB_ERR_NONE };

	switch (which) {
	case LISTEN:
		if (o->n_listen == OBS_LISTEN_MAX) {
			snprintf(ret_why, size, "%d addresses at most", OBS_LISTEN_MAX);
			return false;
		}
		return take_text(text, &o->listen[o->n_listen++], ret_why, size,
			"an address, for example tcp://0.0.0.0:14800");
	case DRIVER:
		return take_text(text, &o->driver, ret_why, size,
			"auto, gpu, soft, null or the path of a libcuda.so.1");
	case TLS_CERT:
	case TLS_KEY:
	case TLS_CLIENT_CA:
	case TOKENS:
	case AUDIT:
		return take_text(text, file_of(o, which), ret_why, size, "a file");
	case INSECURE:
		return take_flag(text, &o->insecure, ret_why, size);
	case COUNT_LOCAL:
		return take_flag(text, &o->count_local, ret_why, size);
	case AUDIT_SIZE:
		if (ob_text_parse_size(text, &o->audit_size) && o->audit_size >= OBS_AUDIT_SIZE_MIN)
			return true;
		snprintf(ret_why, size, "a size of at least 64 KiB, for example 16MiB");
		return false;
	case AUDIT_FILES:
		return take_count(text, 1, OBS_AUDIT_FILES_MAX, &o->audit_files, ret_why, size);
	case CONNECTIONS:
		return take_count(text, OBS_CONNECTIONS_MIN, OBS_CONNECTIONS_MAX, &o->connections,
			ret_why, size);
	case ADDRESS_CONNECTIONS:
		return take_count(
			text, 1, OBS_CONNECTIONS_MAX, &o->address_connections, ret_why, size);
	case ADDRESS_RATE:
		return take_count(text, 1, OBS_ADDRESS_RATE_MAX, &o->address_rate, ret_why, size);
	case ADDRESS_SESSIONS:
		return take_count(text, 1, OBS_SESSIONS_MAX, &o->address_sessions, ret_why, size);
	case TOKEN_SESSIONS:
		return take_count(text, 1, OBS_SESSIONS_MAX, &o->token_sessions, ret_why, size);
	case CACHE:
		return take_text(text, &o->cache, ret_why, size, "a directory");
	case UPLOAD_CACHE:
		if (strcmp(text, "0") == 0)
			o->upload_cache = 0;
		else if (!ob_text_parse_size(text, &o->upload_cache) ||
			o->upload_cache < 16u << 20 || o->upload_cache > OBS_CACHE_MAX) {
			snprintf(ret_why, size, "0 or a size of at least 16 MiB, for example 4GiB");
			return false;
		}
		return true;
	case SANDBOX:
		snprintf(ret_why, size, "auto, strict or off");
		return obs_sandbox_mode_parse(text, &o->sandbox.mode);
	case WORKER_USER:
		return take_text(text, &o->sandbox.user, ret_why, size, "a user");
	case METRICS:
		return take_text(text, &o->metrics, ret_why, size,
			"an address, for example tcp://127.0.0.1:9464");
	case REFILL:
		return take_count(text, 1, OBS_REFILL_MAX, &o->refill, ret_why, size);
	case WARM:
		return take_count(text, 0, OBS_WARM_MAX, &o->warm, ret_why, size);
	case MAX_SESSIONS:
		return take_count(text, 1, OBS_SESSIONS_MAX, &o->max_sessions, ret_why, size);
	case HELLO:
		return take_count(text, 1, OBS_SECONDS_MAX, &o->hello_timeout_s, ret_why, size);
	case DRAIN:
		return take_count(text, 0, OBS_SECONDS_MAX, &o->drain_timeout_s, ret_why, size);
	case GRACE:
		return take_count(text, 0, OBS_SECONDS_MAX, &o->grace_s, ret_why, size);
	default:
		if (!obs_limits_option(&o->limits, name, text, &cause))
			return true;
		snprintf(ret_why, size, "%s", cause.text);
		return false;
	}
}

static bool set_by_name(void *user, const char *key, char *value, char *ret_why, size_t size)
{
	for (const struct option *option = long_options; option->name; option++)
		if (strcmp(option->name, key) == 0)
			return set(user, option->val, key, value, ret_why, size);
	return false;
}

static bool take_config(struct obs_options *o, const char *file, bool only_check)
{
	int errors = obs_config_read(file, set_by_name, o, setting_names);

	if (only_check) {
		o->mode = OBS_MODE_DONE;
		if (errors == 0)
			printf("%s: no errors\n", file);
	}
	if (errors > 0)
		fprintf(stderr, "outboard-server: %d error%s in %s\n", errors,
			errors == 1 ? "" : "s", file);
	return errors == 0;
}

static bool parse_one(struct obs_options *o, int which, const char *name, const char *text)
{
	char why[256] = "";

	switch (which) {
	case CONFIG:
	case CHECK_CONFIG:
		return take_config(o, text, which == CHECK_CONFIG);
	case LIMITS:
		return !obs_limits_parse(text, &o->limits);
	case WORKER_IDS:
		return sscanf(text, "%u:%u", &o->sandbox.uid, &o->sandbox.gid) == 2;
	case WORKER:
		o->mode = OBS_MODE_WORKER;
		return true;
	case ADMISSION:
		o->mode = OBS_MODE_ADMISSION;
		return true;
	case EXPECT_TLS:
		o->expect_tls = true;
		return true;
	case LISTENERS:
		o->listeners = text;
		return strlen(text) <= OBS_LISTEN_MAX;
	case PROBE:
		o->mode = OBS_MODE_PROBE;
		return true;
	case VERSION:
		printf("outboard-server %s, protocol %u\n", OB_VERSION, OBP_VERSION);
		o->mode = OBS_MODE_DONE;
		return true;
	case HELP:
		fputs(help, stdout);
		fputs(obs_limits_help, stdout);
		o->mode = OBS_MODE_DONE;
		return true;
	case '?':
		fprintf(stderr, "outboard-server: see --help\n");
		return false;
	default:
		if (set(o, which, name, text, why, sizeof why))
			return true;
		fprintf(stderr, "outboard-server: --%s takes %s, not \"%s\"\n", name, why, text);
		return false;
	}
}

int obs_options_parse(struct obs_options *ret, int argc, char **argv)
{
	struct obs_options o = { .driver = "auto",
		.warm = 1,
		.refill = OBS_REFILL_DEFAULT,
		.max_sessions = OBS_SESSIONS_DEFAULT,
		.hello_timeout_s = 5,
		.drain_timeout_s = 30,
		.grace_s = OBP_GRACE_DEFAULT_S,
		.upload_cache = OBS_CACHE_DEFAULT,
		.audit_size = OBS_AUDIT_SIZE_DEFAULT,
		.audit_files = OBS_AUDIT_FILES_DEFAULT,
		.connections = OBS_CONNECTIONS_DEFAULT,
		.address_connections = OBS_ADDRESS_CONNECTIONS_DEFAULT,
		.address_rate = OBS_ADDRESS_RATE_DEFAULT,
		.limits = obs_limits_default };
	int which, index = 0;

	optind = 1;
	while (o.mode != OBS_MODE_DONE &&
		(which = getopt_long(argc, argv, "", long_options, &index)) != -1)
		if (!parse_one(&o, which, long_options[index].name, optarg))
			return 2;
	if (o.mode != OBS_MODE_DONE && optind < argc) {
		fprintf(stderr, "outboard-server: \"%s\" is not an option; see --help\n",
			argv[optind]);
		return 2;
	}
	if (o.mode == OBS_MODE_SUPERVISOR && o.n_listen == 0) {
		fprintf(stderr,
			"outboard-server: say where to listen, for example --listen "
			"tcp://127.0.0.1:%d\n",
			OBP_PORT);
		return 2;
	}
	if (!o.tls_cert != !o.tls_key) {
		fprintf(stderr, "outboard-server: --tls-cert and --tls-key belong together\n");
		return 2;
	}
	*ret = o;
	return 0;
}

void obs_options_worker_args(struct obs_options *options, const char *self, const char *driver,
	char *ret_args[OBS_WORKER_ARGS_MAX])
{
	size_t n = 0;

	snprintf(options->hello_timeout_text, sizeof options->hello_timeout_text, "%u",
		options->hello_timeout_s);
	ret_args[n++] = (char *)(uintptr_t)self;
	ret_args[n++] = (char *)(uintptr_t) "--worker";
	ret_args[n++] = (char *)(uintptr_t) "--driver";
	ret_args[n++] = (char *)(uintptr_t)driver;
	ret_args[n++] = (char *)(uintptr_t) "--hello-timeout";
	ret_args[n++] = options->hello_timeout_text;
	snprintf(options->grace_text, sizeof options->grace_text, "%u", options->grace_s);
	ret_args[n++] = (char *)(uintptr_t) "--grace";
	ret_args[n++] = options->grace_text;
	obs_limits_print(&options->limits, options->limits_text);
	ret_args[n++] = (char *)(uintptr_t) "--limits";
	ret_args[n++] = options->limits_text;
	ret_args[n++] = (char *)(uintptr_t) "--sandbox";
	ret_args[n++] = (char *)(uintptr_t)obs_sandbox_mode_name(options->sandbox.mode);
	snprintf(options->sandbox.user_text, sizeof options->sandbox.user_text, "%u:%u",
		options->sandbox.uid, options->sandbox.gid);
	ret_args[n++] = (char *)(uintptr_t) "--worker-ids";
	ret_args[n++] = options->sandbox.user_text;
	/* As plain bytes, without a unit. */
	snprintf(options->upload_cache_text, sizeof options->upload_cache_text, "%llu",
		(unsigned long long)options->upload_cache);
	ret_args[n++] = (char *)(uintptr_t) "--upload-cache";
	ret_args[n++] = options->upload_cache_text;
	if (options->cache) {
		ret_args[n++] = (char *)(uintptr_t) "--cache";
		ret_args[n++] = (char *)(uintptr_t)options->cache;
	}
	if (options->tls_cert)
		ret_args[n++] = (char *)(uintptr_t) "--expect-tls";
	ret_args[n] = NULL;
}

void obs_options_admission_args(struct obs_options *options, const char *self,
	const char *listeners, char *ret_args[OBS_WORKER_ARGS_MAX])
{
	const struct {
		const char *name, *value;
	} pairs[] = { { "--listeners", options->listeners_text },
		{ "--hello-timeout", options->hello_timeout_text },
		{ "--connections", options->connections_text },
		{ "--address-connections", options->address_connections_text },
		{ "--address-rate", options->address_rate_text },
		{ "--tls-cert", options->tls_cert }, { "--tls-key", options->tls_key },
		{ "--tls-client-ca", options->tls_client_ca }, { "--tokens", options->tokens },
		{ "--sandbox", obs_sandbox_mode_name(options->sandbox.mode) },
		{ "--worker-ids", options->sandbox.admission_text } };
	size_t n = 0;

	snprintf(options->sandbox.admission_text, sizeof options->sandbox.admission_text, "%u:%u",
		options->sandbox.admission_uid, options->sandbox.admission_uid);
	snprintf(options->listeners_text, sizeof options->listeners_text, "%s", listeners);
	snprintf(options->hello_timeout_text, sizeof options->hello_timeout_text, "%u",
		options->hello_timeout_s);
	snprintf(options->connections_text, sizeof options->connections_text, "%u",
		options->connections);
	snprintf(options->address_connections_text, sizeof options->address_connections_text, "%u",
		options->address_connections);
	snprintf(options->address_rate_text, sizeof options->address_rate_text, "%u",
		options->address_rate);
	ret_args[n++] = (char *)(uintptr_t)self;
	ret_args[n++] = (char *)(uintptr_t) "--admission";
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		if (!pairs[i].value)
			continue;
		ret_args[n++] = (char *)(uintptr_t)pairs[i].name;
		ret_args[n++] = (char *)(uintptr_t)pairs[i].value;
	}
	if (options->count_local)
		ret_args[n++] = (char *)(uintptr_t) "--count-local";
	ret_args[n] = NULL;
}
