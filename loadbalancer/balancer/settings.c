/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/command_line.h"
#include "base/config_file.h"
#include "base/log.h"
#include "base/text.h"
#include "loadbalancer/balancer/values.h"
#include "loadbalancer/place.h"
#include "loadbalancer/queue.h"

#define POLICIES                                                                         \
	"binpack|spread|least-load|round-robin|weighted|least-connections|power-of-two|" \
	"exclusive"

static enum ob_err set_from_file(
	void *user, const struct ob_option *option, char *value, struct ob_cause *ret_cause)
{
	return ob_option_set(option, user, value, ret_cause);
}

/* The target is the whole struct. Each error in the file was printed. */
static enum ob_err take_config(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	static const char *const sections[] = { "balancer", NULL };
	static const struct ob_config_format format = { "outboard-balancer", sections };
	struct obl_settings *s = target;
	int errors = ob_config_read(&format, text, set_from_file, s, obl_settings_table);

	if (strcmp(option->name, "check-config") == 0) {
		s->done = true;
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

/* The target is the number of seconds. */
static enum ob_err take_rebalance(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	uint64_t seconds = 0;

	(void)option;
	(void)ret_cause;
	if (strcmp(text, "off") != 0 &&
		!ob_text_parse_number(text, 1, OBL_REBALANCE_MAX_S, &seconds))
		return OB_ERR_ARGUMENT;
	*(uint32_t *)target = (uint32_t)seconds;
	return OB_ERR_NONE;
}

#define OPTION(option_name, option_kind, field) \
	OB_OPTION(option_name, option_kind, struct obl_settings, field)
#define CONFIG(option_name)                                                           \
	.name = (option_name), .kind = OB_PARSED, .arg = "FILE", .take = take_config, \
	.not_in_file = true

const struct ob_option obl_settings_table[] = {
	{ .name = "Addresses and peers", .kind = OB_HEADING },
	{ OPTION("listen", OB_TEXTS, gate.listen), .arg = "URL",
		.takes = "an address, for example tls://0.0.0.0:14900",
		.help = "tls://host:port, tcp://host:port or unix:/path; may be repeated. Port 0 "
			"picks a free one" },
	{ OPTION("tls-cert", OB_FILE, gate.tls_cert), .arg = "FILE", .takes = "a file",
		.help = "certificate for the tls:// addresses (PEM); 'outboard cert' makes one" },
	{ OPTION("tls-key", OB_FILE, gate.tls_key), .arg = "FILE", .takes = "a file",
		.help = "its private key" },
	{ OPTION("tokens", OB_FILE, tokens), .arg = "FILE", .takes = "a file",
		.help = "authenticate clients, servers and operators by the tokens in this file "
			"('outboard token')" },
	{ OPTION("http", OB_TEXT, http), .arg = "URL",
		.takes = "an address, for example tcp://127.0.0.1:14980",
		.help = "serve the dashboard, its API and metrics for Prometheus: tcp:// is HTTP, "
			"tls:// HTTPS with --tls-cert (http:// and https:// are the same); or "
			"unix:/path" },
	{ OPTION("insecure", OB_FLAG, gate.insecure),
		.help = "allow listening without TLS or authentication where other machines can "
			"connect" },
	{ OPTION("connections", OB_NUMBER, gate.connections), .arg = "N", .min = 16,
		.max = OBL_CONNECTIONS_MAX, .fallback = OB_VALUE_TEXT(OBL_CONNECTIONS_DEFAULT),
		.help = "connections at a time" },
	{ OPTION("address-connections", OB_NUMBER, gate.address_connections), .arg = "N", .min = 1,
		.max = OBL_CONNECTIONS_MAX,
		.fallback = OB_VALUE_TEXT(OBL_ADDRESS_CONNECTIONS_DEFAULT),
		.help = "of these, from one address of another machine; IPv6 is counted by /64" },
	{ .name = "The pool", .kind = OB_HEADING },
	{ OPTION("name", OB_TEXT, name), .arg = "NAME", .takes = "a name",
		.fallback = "the host's name and random digits",
		.help = "of this balancer; each has another one" },
	{ OPTION("registry", OB_TEXT, registry), .arg = "WHERE",
		.takes = "memory, static:FILE or etcd:URLS",
		.fallback = "static: in the state folder",
		.help = "where reservations are stored. static:FILE: in a file, for one balancer; "
			"by default in $STATE_DIRECTORY, else in outboard-balancer/ of "
			"$XDG_STATE_HOME or ~/.local/state. memory: in this process, lost at its "
			"end. "
			"etcd:http://a:2379,http://b:2379: "
			"in etcd, for several balancers" },
	{ OPTION("registry-prefix", OB_TEXT, registry_prefix), .arg = "TEXT", .takes = "a text",
		.fallback = "outboard/", .help = "beginning of all keys in etcd" },
	{ OPTION("registry-ca", OB_FILE, registry_ca), .arg = "FILE", .takes = "a file",
		.help = "certificates of the authorities that sign etcd's certificates",
		.fallback = "the system's" },
	{ OPTION("registry-cert", OB_FILE, registry_cert), .arg = "FILE", .takes = "a file",
		.help = "this balancer's certificate for etcd" },
	{ OPTION("registry-key", OB_FILE, registry_key), .arg = "FILE", .takes = "a file",
		.help = "its private key" },
	{ OPTION("registry-user", OB_TEXT, registry_user), .arg = "NAME", .takes = "a user",
		.help = "user of etcd's authentication" },
	{ OPTION("registry-password", OB_FILE, registry_password), .arg = "FILE", .takes = "a file",
		.help = "file with that user's password" },
	{ OPTION("ticket-key", OB_FILE, ticket_key), .arg = "FILE", .takes = "a file",
		.fallback = "a new key at each start",
		.help = "private key that signs tickets; the file is made if it does not exist" },
	{ .name = "Placement", .kind = OB_HEADING },
	{ OPTION("policy", OB_WORD, policy_name), .arg = "WHICH", .words = POLICIES,
		.fallback = "binpack",
		.help = "how devices are chosen, unless a request names another policy" },
	{ OPTION("max-sharers", OB_NUMBER, max_sharers), .arg = "N", .max = OBL_SHARERS_MAX,
		.fallback = "0", .help = "reservations on one device; 0: no limit" },
	{ OPTION("default-memory", OB_SIZE, default_memory), .arg = "SIZE", .min = 1 << 20,
		.max = OBL_MEMORY_MAX, .takes = "a size of at least 1 MiB, for example 8GiB",
		.fallback = "an eighth of the device, at least 1 GiB",
		.help = "memory that a request without --vram reserves on each device" },
	{ OPTION("max-waiting", OB_NUMBER, max_waiting), .arg = "N", .min = 1, .max = OBL_QUEUE_MAX,
		.fallback = OB_VALUE_TEXT(OBL_WAITING_DEFAULT),
		.help = "requests that wait at this balancer" },
	{ OPTION("tenants", OB_FILE, tenants), .arg = "FILE", .takes = "a file",
		.help = "quotas: lines such as 'alice gpus=4,memory=320GiB,weight=2'; the name * "
			"is for all others" },
	{ OPTION("rebalance", OB_PARSED, rebalance_s), .arg = "SECONDS", .take = take_rebalance,
		.takes = "off, or a number of seconds from 1 to 3600", .fallback = "off",
		.help = "off, or how often the balancer that leads looks for busy devices whose "
			"restartable programs should move to idle ones" },
	{ .name = "Configuration and log", .kind = OB_HEADING },
	{ CONFIG("config"),
		.help = "read options from a file; options behind it on the command line override "
			"it" },
	{ CONFIG("check-config"), .help = "report the errors in such a file and exit" },
	{ OPTION("log", OB_CHOICE, log_level), .arg = "LEVEL", .words = "error|warn|info|debug",
		.environment = "OUTBOARD_LOG", .fallback = "warn", .help = "what is logged" },
	{ 0 },
};

static char version[64];

static const struct ob_command balancer = {
	.name = "outboard-balancer",
	.summary = "make one pool of several GPU servers",
	.usage = "--listen URL [OPTION]...",
	.about = "Reserves GPUs of the servers that have joined the pool for programs that ask for "
		 "them, and signs the tickets with which the servers admit them.",
	.version = version,
	.options = obl_settings_table,
};

static int settings_check(struct obl_settings *s)
{
	enum obl_policy policy;

	if (s->done)
		return 0;
	if (s->gate.listen.n == 0)
		return ob_usage_error(&balancer,
			"say where to listen, for example --listen tcp://127.0.0.1:%d",
			OBP_POOL_PORT);
	if (!s->gate.tls_cert != !s->gate.tls_key)
		return ob_usage_error(&balancer, "--tls-cert and --tls-key belong together");
	if (!s->registry_cert != !s->registry_key)
		return ob_usage_error(
			&balancer, "--registry-cert and --registry-key belong together");
	if (s->name && !obl_name_valid(s->name))
		return ob_usage_error(&balancer,
			"--name takes 1 to 63 letters, digits, '.', '_' and '-', not '%s'",
			s->name);
	if (!obl_policy_parse(s->policy_name, &policy))
		return ob_usage_error(&balancer, "there is no policy '%s'", s->policy_name);
	s->policy = policy;
	s->gate.has_tokens = s->tokens != NULL;
	return 0;
}

int obl_settings_parse(struct obl_settings *ret, int argc, char **argv)
{
	struct obl_settings s = { .policy_name = "binpack",
		.max_waiting = OBL_WAITING_DEFAULT,
		.log_level = OB_LOG_WARN,
		.gate = { .connections = OBL_CONNECTIONS_DEFAULT,
			.address_connections = OBL_ADDRESS_CONNECTIONS_DEFAULT } };
	int code;

	snprintf(version, sizeof version, "%s, protocol %u", OB_VERSION, OBP_VERSION);
	code = ob_options_parse(&balancer, &s, argc, argv);
	if (code == 0)
		s.done = true;
	else if (code == OB_OPTIONS_GO)
		code = settings_check(&s);
	if (code == 0)
		*ret = s;
	return code;
}
