/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/options.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/command_line.h"
#include "base/text.h"
#include "protocol/format.h"
#include "protocol/pool.h"
#include "protocol/resume.h"
#include "server/common/cache.h"
#include "server/common/config.h"

#define UPLOAD_CACHE_MIN (16u << 20)

static enum ob_err take_upload_cache(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	uint64_t bytes = 0;

	(void)option;
	(void)ret_cause;
	if (strcmp(text, "0") != 0 &&
		(!ob_text_parse_size(text, &bytes) || bytes < UPLOAD_CACHE_MIN ||
			bytes > OBS_CACHE_MAX))
		return OB_ERR_ARGUMENT;
	*(uint64_t *)target = bytes;
	return OB_ERR_NONE;
}

static enum ob_err take_limit(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	return obs_limits_option(target, option->name, text, ret_cause);
}

static enum ob_err take_limits(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	(void)option;
	(void)ret_cause;
	return obs_limits_parse(text, target);
}

static enum ob_err take_worker_ids(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	struct obs_sandbox_plan *sandbox = target;

	(void)option;
	(void)ret_cause;
	return sscanf(text, "%u:%u", &sandbox->uid, &sandbox->gid) == 2 ? OB_ERR_NONE
									: OB_ERR_ARGUMENT;
}

static enum ob_err take_listeners(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	(void)option;
	(void)ret_cause;
	*(const char **)target = text;
	return strlen(text) <= OBS_LISTEN_MAX ? OB_ERR_NONE : OB_ERR_ARGUMENT;
}

static enum ob_err take_mode(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	(void)text;
	(void)ret_cause;
	*(enum obs_mode *)target = option->name[0] == 'w' ? OBS_MODE_WORKER
		: option->name[0] == 'a'                  ? OBS_MODE_ADMISSION
		: option->name[0] == 's'                  ? OBS_MODE_SENSORS
		: option->name[0] == 'm'                  ? OBS_MODE_MEMBER
							  : OBS_MODE_PROBE;
	return OB_ERR_NONE;
}

static enum ob_err set_from_file(
	void *user, const struct ob_option *option, char *value, struct ob_cause *ret_cause)
{
	return ob_option_set(option, user, value, ret_cause);
}

/* The target is the whole struct. Each error in the file was printed. */
static enum ob_err take_config(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	struct obs_options *o = target;
	int errors = obs_config_read(text, set_from_file, o, obs_option_table);

	if (strcmp(option->name, "check-config") == 0) {
		o->mode = OBS_MODE_DONE;
		if (errors == 0)
			printf("%s: no errors\n", text);
	}
	if (errors < 0)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "a file that it can read");
	return errors ? ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"a file without errors (this one has %d error%s, see above)",
				errors, errors == 1 ? "" : "s")
		      : OB_ERR_NONE;
}

#define OPTION(option_name, option_kind, field) \
	OB_OPTION(option_name, option_kind, struct obs_options, field)
#define COUNT(option_name, field, least, most, value)                                     \
	OPTION(option_name, OB_NUMBER, field), .arg = "N", .min = (least), .max = (most), \
					       .fallback = (value)
#define SECONDS(option_name, field, least, value)                                                  \
	OPTION(option_name, OB_NUMBER, field), .arg = "S", .min = (least), .max = OBS_SECONDS_MAX, \
					       .fallback = (value)
#define LIMIT(option_name, value_name) \
	OPTION(option_name, OB_PARSED, limits), .arg = (value_name), .take = take_limit
#define CONFIG(option_name)                                                           \
	.name = (option_name), .kind = OB_PARSED, .arg = "FILE", .take = take_config, \
	.not_in_file = true

const struct ob_option obs_option_table[] = {
	{ .name = "Addresses and clients", .kind = OB_HEADING },
	{ OPTION("listen", OB_TEXTS, listen), .arg = "URL",
		.takes = "an address, for example tcp://0.0.0.0:14800",
		.help = "tls://host:port, tcp://host:port, unix:/path or shm:/path; may be "
			"repeated. Port 0 picks a free one. shm: is a Unix socket too; clients "
			"that connect to it as shm: send their data through shared memory" },
	{ OPTION("tls-cert", OB_FILE, tls_cert), .arg = "FILE", .takes = "a file",
		.help = "certificate for the tls:// addresses (PEM); 'outboard cert' makes one" },
	{ OPTION("tls-key", OB_FILE, tls_key), .arg = "FILE", .takes = "a file",
		.help = "its private key" },
	{ OPTION("tls-client-ca", OB_FILE, tls_client_ca), .arg = "FILE", .takes = "a file",
		.help = "authenticate clients by certificates that one of these authorities has "
			"signed" },
	{ OPTION("tokens", OB_FILE, tokens), .arg = "FILE", .takes = "a file",
		.help = "authenticate clients by the tokens in this file ('outboard token')" },
	{ OPTION("insecure", OB_FLAG, insecure),
		.help = "allow listening without TLS or authentication where other machines can "
			"connect" },
	{ OPTION("metrics", OB_TEXT, metrics), .arg = "URL",
		.takes = "an address, for example tcp://127.0.0.1:9464",
		.help = "serve GET /metrics there, for example tcp://127.0.0.1:9464: without TLS "
			"and authentication, and on any address" },
	{ OPTION("audit", OB_FILE, audit), .arg = "FILE", .takes = "a file",
		.help = "append a JSON line for each session: who, from where, how long, how "
			"much" },
	{ OPTION("audit-size", OB_SIZE, audit_size), .arg = "SIZE", .min = OBS_AUDIT_SIZE_MIN,
		.takes = "a size of at least 64 KiB, for example 16MiB", .fallback = "16MiB",
		.help = "size of one audit file; a full one is renamed to FILE.1" },
	{ COUNT("audit-files", audit_files, 1, OBS_AUDIT_FILES_MAX,
		  OB_VALUE_TEXT(OBS_AUDIT_FILES_DEFAULT)),
		.help = "audit files that are kept" },
	{ .name = "Driver and workers", .kind = OB_HEADING },
	{ OPTION("driver", OB_TEXT, driver), .arg = "WHICH", .words = "auto|gpu|soft|dryrun|null",
		.takes = "auto, gpu, soft, dryrun, null or the path of a libcuda.so.1",
		.fallback = "auto",
		.help = "gpu: the system's libcuda.so.1; the server does not start without it. "
			"soft: the software device, which runs kernels on the CPU. auto: gpu if "
			"it works, else soft, with a warning. dryrun: pretends to be the GPU that "
			"OUTBOARD_DRYRUN names (h100), keeps memory and copies and executes no "
			"kernel, for tests. null: answers every call and "
			"computes nothing, for measurements. Or the path of a libcuda.so.1" },
	{ OPTION("nvml", OB_TEXT, nvml), .arg = "WHICH", .words = "auto|none",
		.takes = "auto, none or the path of a libnvidia-ml.so.1", .fallback = "auto",
		.help = "where temperature, power and clocks of the GPUs are read, for 'outboard "
			"smi' and for clients. auto: the system's libnvidia-ml.so.1, if the driver "
			"is a GPU's. none: nowhere. Or the path of such a library" },
	{ OPTION("sandbox", OB_CHOICE, sandbox.mode), .arg = "WHICH", .words = "auto|strict|off",
		.fallback = "auto",
		.help = "auto: confine workers and admission as far as this kernel allows. "
			"strict: do not start unless every part is available. off: do not "
			"confine them" },
	{ OPTION("worker-user", OB_TEXT, sandbox.user), .arg = "NAME", .takes = "a user",
		.help = "user of the workers, name or number, if the server is started as root",
		.fallback = "outboard if there is such a user, else an unused number" },
	{ COUNT("warm", warm, 0, OBS_WARM_MAX, OB_VALUE_TEXT(OBS_WARM_DEFAULT)),
		.help = "idle workers kept ready for new sessions" },
	{ COUNT("refill", refill, 1, OBS_REFILL_MAX, OB_VALUE_TEXT(OBS_REFILL_DEFAULT)),
		.help = "workers that may be starting at the same time; starting a driver takes "
			"processor time" },
	{ OPTION("cache", OB_FOLDER, cache), .arg = "DIR", .takes = "a directory",
		.help = "directory of the upload cache",
		.fallback = "under $XDG_RUNTIME_DIR or /tmp" },
	{ OPTION("upload-cache", OB_PARSED, upload_cache), .arg = "SIZE", .take = take_upload_cache,
		.fallback = "1GiB", .takes = "0 or a size of at least 16 MiB, for example 4GiB",
		.help = "size of that cache of code images and copied data; 0: none" },
	{ .name = "Sessions and connections", .kind = OB_HEADING },
	{ COUNT("max-sessions", max_sessions, 1, OBS_SESSIONS_MAX,
		  OB_VALUE_TEXT(OBS_SESSIONS_DEFAULT)),
		.help = "sessions at a time" },
	{ SECONDS("hello-timeout", hello_timeout_s, 1, OB_VALUE_TEXT(OBS_HELLO_DEFAULT_S)),
		.help = "seconds in which a new connection must send its first message" },
	{ COUNT("connections", connections, OBS_CONNECTIONS_MIN, OBS_CONNECTIONS_MAX,
		  OB_VALUE_TEXT(OBS_CONNECTIONS_DEFAULT)),
		.help = "connections at a time that are not authenticated yet" },
	{ COUNT("address-connections", address_connections, 1, OBS_CONNECTIONS_MAX,
		  OB_VALUE_TEXT(OBS_ADDRESS_CONNECTIONS_DEFAULT)),
		.help = "of these, from one address; IPv6 is counted by /64" },
	{ COUNT("address-rate", address_rate, 1, OBS_ADDRESS_RATE_MAX,
		  OB_VALUE_TEXT(OBS_ADDRESS_RATE_DEFAULT)),
		.help = "new sessions and load questions a second from one address" },
	{ COUNT("address-sessions", address_sessions, 1, OBS_SESSIONS_MAX, "7/8 of --max-sessions"),
		.help = "sessions at a time from one address" },
	{ COUNT("token-sessions", token_sessions, 1, OBS_SESSIONS_MAX, "7/8 of --max-sessions"),
		.help = "sessions at a time of one token or certificate" },
	{ OPTION("count-local", OB_FLAG, count_local),
		.help = "apply the limits by address to this machine's own addresses too" },
	{ SECONDS("drain-timeout", drain_timeout_s, 0, OB_VALUE_TEXT(OBS_DRAIN_DEFAULT_S)),
		.help = "seconds that sessions may continue after SIGTERM" },
	{ SECONDS("grace", grace_s, 0, "60"),
		.help = "seconds that a session waits for a client whose connection broke; 0: the "
			"session ends" },
	{ .name = "Limits of one session", .kind = OB_HEADING },
	{ LIMIT("max-memory", "SIZE"),
		.help = "memory on each device, for example 4GiB; programs see a device of this "
			"size" },
	{ LIMIT("max-host-memory", "SIZE"), .fallback = "4GiB",
		.help = "memory of the server, at least 128MiB: uploaded and compiled code, "
			"queued work, handles, copies in progress" },
	{ LIMIT("max-outstanding", "SIZE"), .fallback = "32MiB, the maximum",
		.help = "results that the server holds until the client has received them" },
	{ LIMIT("max-handles", "N"), .help = "streams, events, functions, memory handles" },
	{ LIMIT("max-modules", "N"), .help = "loaded modules at a time" },
	{ LIMIT("max-lanes", "N"), .fallback = "1024",
		.help = "threads of the program that use CUDA" },
	{ LIMIT("max-stripes", "N"), .fallback = "8",
		.help = "further connections for large copies, 0 to 16" },
	{ LIMIT("idle-timeout", "S"), .fallback = "never",
		.help = "seconds without a call after which a session ends" },
	{ LIMIT("share", "F"), .fallback = "1",
		.help = "share of the device's time, 0.01 to 1; launches are held back" },
	{ LIMIT("share-by", "LIST"), .fallback = "throttle",
		.help = "how a share is kept, in order of preference, for example green,throttle. "
			"throttle: launches are held back. green: a green context with a part of "
			"the multiprocessors, if the driver has them. mps: NVIDIA's Multi-Process "
			"Service, if its control daemon answers, for the share of --share alone, "
			"which must be below 1. If none is possible, throttle, which is the last "
			"of a list" },
	{ LIMIT("max-priority", "WHICH"), .words = "low|normal|high", .fallback = "normal",
		.help = "the highest priority that a client may ask for: low, normal or high" },
	{ LIMIT("on-excess", "WHICH"), .words = "warn|limit|suspend|terminate", .fallback = "limit",
		.help = "most severe reaction to a session that keeps running into its limits: "
			"warn, limit, suspend or terminate" },
	{ LIMIT("measure", "WHICH"), .words = "yes|no", .fallback = "no",
		.help = "yes: measure the device time of launches for 'outboard top'; --share "
			"always "
			"measures it" },
	{ .name = "Pool", .kind = OB_HEADING },
	{ OPTION("pool", OB_TEXT, pool), .arg = "URLS",
		.takes = "the addresses of balancers, for example tls://balancer:14900",
		.help = "join the pool of these balancers, with commas between several. Sessions "
			"then need a ticket of the pool, except on Unix sockets. Which balancer is "
			"trusted is set as for clients (OUTBOARD_TLS_PIN, OUTBOARD_TLS_CA)" },
	{ OPTION("pool-name", OB_TEXT, pool_name), .arg = "NAME", .takes = "a name",
		.help = "the server's name in the pool", .fallback = "the host's name" },
	{ OPTION("labels", OB_TEXT, labels), .arg = "LIST", .takes = "labels, zone=a,rack=3",
		.help = "labels for selectors of requests, for example zone=a,rack=3" },
	{ OPTION("pool-token-file", OB_FILE, pool_token), .arg = "FILE", .takes = "a file",
		.help = "the file's first line is the token for the balancers, of scope serve" },
	{ OPTION("advertise", OB_TEXT, advertise), .arg = "URLS",
		.takes = "addresses, for example tls://gpu-7:14800",
		.help = "addresses that the pool gives to clients, with commas between several; "
			"needed if the server listens on 0.0.0.0 or [::]",
		.fallback = "the tls:// and tcp:// addresses of --listen" },
	{ OPTION("pool-direct", OB_FLAG, pool_direct),
		.help = "take sessions without a ticket as well; the pool does not know of them" },
	{ .name = "Configuration file", .kind = OB_HEADING },
	{ CONFIG("config"),
		.help = "read options from a file; options behind it on the command line override "
			"it" },
	{ CONFIG("check-config"), .help = "report the errors in such a file and exit" },
	/* How the server starts its own processes. */
	{ .name = "worker",
		.kind = OB_PARSED,
		.take = take_mode,
		.hidden = true,
		.offset = offsetof(struct obs_options, mode) },
	{ .name = "admission",
		.kind = OB_PARSED,
		.take = take_mode,
		.hidden = true,
		.offset = offsetof(struct obs_options, mode) },
	{ .name = "probe",
		.kind = OB_PARSED,
		.take = take_mode,
		.hidden = true,
		.offset = offsetof(struct obs_options, mode) },
	{ .name = "sensors",
		.kind = OB_PARSED,
		.take = take_mode,
		.hidden = true,
		.offset = offsetof(struct obs_options, mode) },
	{ .name = "member",
		.kind = OB_PARSED,
		.take = take_mode,
		.hidden = true,
		.offset = offsetof(struct obs_options, mode) },
	{ OPTION("incarnation", OB_NUMBER, incarnation), .arg = "N", .min = 1, .max = UINT64_MAX,
		.hidden = true },
	{ OPTION("limits", OB_PARSED, limits), .arg = "LIMITS", .take = take_limits,
		.hidden = true },
	{ OPTION("worker-ids", OB_PARSED, sandbox), .arg = "UID:GID", .take = take_worker_ids,
		.hidden = true },
	{ OPTION("expect-tls", OB_FLAG, expect_tls), .hidden = true },
	{ OPTION("listeners", OB_PARSED, listeners), .arg = "LETTERS", .take = take_listeners,
		.hidden = true },
	{ 0 },
};

static char version[64];

static const struct ob_command server = {
	.name = "outboard-server",
	.summary = "serve this machine's GPUs to CUDA programs on other machines",
	.usage = "--listen URL [OPTION]...",
	.about = "Runs CUDA programs of other machines on this machine's GPU, or on its CPU.",
	.version = version,
	.options = obs_option_table,
};

static int options_check(const struct obs_options *o)
{
	if (o->mode == OBS_MODE_SUPERVISOR && o->listen.n == 0)
		return ob_usage_error(&server,
			"say where to listen, for example --listen tcp://127.0.0.1:%d", OBP_PORT);
	if (!o->tls_cert != !o->tls_key)
		return ob_usage_error(&server, "--tls-cert and --tls-key belong together");
	if (o->pool_name && strlen(o->pool_name) >= OBP_POOL_NAME_MAX)
		return ob_usage_error(&server, "--pool-name takes a name of at most %u characters",
			OBP_POOL_NAME_MAX - 1);
	if (o->labels && strlen(o->labels) >= OBP_POOL_WHERE_MAX)
		return ob_usage_error(
			&server, "--labels takes at most %u characters", OBP_POOL_WHERE_MAX - 1);
	if (!o->pool &&
		(o->pool_name || o->labels || o->pool_token || o->advertise || o->pool_direct))
		return ob_usage_error(&server,
			"--pool-name, --labels, --pool-token-file, --advertise and --pool-direct "
			"belong to --pool");
	return 0;
}

int obs_options_parse(struct obs_options *ret, int argc, char **argv)
{
	struct obs_options o = { .driver = "auto",
		.nvml = "auto",
		.warm = OBS_WARM_DEFAULT,
		.refill = OBS_REFILL_DEFAULT,
		.max_sessions = OBS_SESSIONS_DEFAULT,
		.hello_timeout_s = OBS_HELLO_DEFAULT_S,
		.drain_timeout_s = OBS_DRAIN_DEFAULT_S,
		.grace_s = OBP_GRACE_DEFAULT_S,
		.upload_cache = OBS_CACHE_DEFAULT,
		.audit_size = OBS_AUDIT_SIZE_DEFAULT,
		.audit_files = OBS_AUDIT_FILES_DEFAULT,
		.connections = OBS_CONNECTIONS_DEFAULT,
		.address_connections = OBS_ADDRESS_CONNECTIONS_DEFAULT,
		.address_rate = OBS_ADDRESS_RATE_DEFAULT,
		.limits = obs_limits_default };
	int code;

	snprintf(version, sizeof version, "%s, protocol %u", OB_VERSION, OBP_VERSION);
	code = ob_options_parse(&server, &o, argc, argv);
	if (code == 0)
		o.mode = OBS_MODE_DONE;
	else if (code == OB_OPTIONS_GO)
		code = options_check(&o);
	if (code == 0)
		*ret = o;
	return code;
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

void obs_options_member_args(struct obs_options *options, const char *self, const char *url,
	const char *name, const char *advertised, char *ret_args[OBS_WORKER_ARGS_MAX])
{
	const struct {
		const char *name, *value;
	} pairs[] = { { "--pool", url }, { "--pool-name", name }, { "--labels", options->labels },
		{ "--pool-token-file", options->pool_token }, { "--advertise", advertised },
		{ "--incarnation", options->incarnation_text }, { "--tls-cert", options->tls_cert },
		{ "--tls-key", options->tls_key },
		{ "--worker-ids", options->sandbox.admission_text } };
	size_t n = 0;

	snprintf(options->incarnation_text, sizeof options->incarnation_text, "%llu",
		(unsigned long long)options->incarnation);
	snprintf(options->sandbox.admission_text, sizeof options->sandbox.admission_text, "%u:%u",
		options->sandbox.admission_uid, options->sandbox.admission_uid);
	ret_args[n++] = (char *)(uintptr_t)self;
	ret_args[n++] = (char *)(uintptr_t) "--member";
	for (size_t i = 0; i < ob_count(pairs); i++) {
		if (!pairs[i].value)
			continue;
		ret_args[n++] = (char *)(uintptr_t)pairs[i].name;
		ret_args[n++] = (char *)(uintptr_t)pairs[i].value;
	}
	ret_args[n] = NULL;
}
