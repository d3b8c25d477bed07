/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The command line of outboard-server. Filled once by main, read-only afterwards; strings belong to
 * argv. The supervisor builds its workers' command lines from the same structure, so both sides
 * agree on every setting.
 */
#ifndef OBS_OPTIONS_H
#define OBS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "server/common/limits.h"
#include "server/common/sandbox.h"

#define OBS_LISTEN_MAX                  OB_OPTIONS_TEXTS_MAX
#define OBS_WARM_MAX                    64
#define OBS_REFILL_MAX                  64
#define OBS_REFILL_DEFAULT              4
#define OBS_SESSIONS_MAX                4096
#define OBS_SESSIONS_DEFAULT            256
#define OBS_SECONDS_MAX                 86400
#define OBS_HELLO_DEFAULT_S             5
#define OBS_DRAIN_DEFAULT_S             30
#define OBS_WARM_DEFAULT                1
#define OBS_CONNECTIONS_MIN             16
#define OBS_CONNECTIONS_MAX             65536
#define OBS_CONNECTIONS_DEFAULT         2048
#define OBS_ADDRESS_CONNECTIONS_DEFAULT 64
#define OBS_ADDRESS_RATE_DEFAULT        50
#define OBS_ADDRESS_RATE_MAX            1000000
#define OBS_AUDIT_SIZE_DEFAULT          (16ull << 20)
#define OBS_AUDIT_SIZE_MIN              (64u << 10)
#define OBS_AUDIT_FILES_DEFAULT         8
#define OBS_AUDIT_FILES_MAX             1000u
/* values of --driver: the system's driver; the same, but refused if it is a software device */
#define OBS_DRIVER_SYSTEM               "libcuda.so.1"
#define OBS_DRIVER_GPU                  "gpu"
#define OBS_DRIVER_DRYRUN               "dryrun"
#define OBS_DRYRUN_USUAL                "h100" /* the GPU of a dry run, if none is named */
#define OBS_NVML_SYSTEM                 "libnvidia-ml.so.1"
#define OBS_WORKER_ARGS_MAX             64 /* strings of a worker's command line, NULL included */

enum obs_mode {
	OBS_MODE_SUPERVISOR,
	OBS_MODE_WORKER,
	OBS_MODE_ADMISSION,
	OBS_MODE_PROBE,
	OBS_MODE_SENSORS,
	OBS_MODE_MEMBER,
	OBS_MODE_DONE
};

struct obs_options {
	enum obs_mode mode;
	struct ob_texts listen;
	const char *driver;             /* auto, soft, null or a path; a worker never sees auto */
	const char *nvml;               /* auto, none or a path */
	const char *tls_cert, *tls_key; /* of the tls:// addresses; NULL: none */
	const char *tls_client_ca;      /* who signs clients' certificates; NULL: nobody */
	const char *tokens;             /* file of bearer tokens; NULL: none */
	const char *audit;              /* file of the audit log; NULL: none */
	uint64_t audit_size;            /* bytes of one file of it */
	uint32_t audit_files;
	const char *listeners; /* admission only: a letter for each listening socket */
	bool expect_tls;       /* workers only: clients may come over TLS */
	/* connections that are not yet authenticated; docs/OPERATIONS.md explains these limits */
	uint32_t connections;
	uint32_t address_connections; /* of these, from one address */
	uint32_t address_rate;        /* new sessions and questions a second from one address */
	/* sessions at a time; 0: seven eighths of max_sessions */
	uint32_t address_sessions, token_sessions;
	bool count_local; /* apply these limits to this machine's own addresses too */
	/* allow listening without TLS or authentication where other machines can connect */
	bool insecure;
	/* addresses of the pool's balancers, with commas; NULL: no pool */
	const char *pool;
	const char *pool_name;  /* the server's name there; NULL: the host's */
	const char *labels;     /* "zone=a,rack=3"; NULL: none */
	const char *pool_token; /* file with the token for the balancers; NULL: none */
	const char *advertise;  /* addresses for clients, with commas; NULL: those listened on */
	bool pool_direct;       /* take sessions without a ticket too */
	uint64_t incarnation;   /* member only */
	struct obs_sandbox_plan sandbox;
	/* directory of the upload cache; NULL: chosen by obs_cache_open */
	const char *cache;
	uint64_t upload_cache; /* bytes of the upload cache; 0: none */
	uint32_t warm;         /* idle workers kept ready */
	uint32_t refill;       /* workers that may be starting at the same time */
	uint32_t max_sessions;
	uint32_t hello_timeout_s;
	uint32_t drain_timeout_s;
	/* how long a session waits for a client whose connection broke; 0: it ends */
	uint32_t grace_s;
	struct obs_limits limits;
	const char *metrics; /* tcp://host:port of /metrics; NULL: none */
	char limits_text[OBS_LIMITS_TEXT_MAX];
	char upload_cache_text[24];
	char hello_timeout_text[16], grace_text[16]; /* text forms for the two functions below */
	char incarnation_text[24];
	char connections_text[16], address_connections_text[16], address_rate_text[16],
		listeners_text[OBS_LISTEN_MAX + 1];
};

/* All options of the command line; those that are not hidden may also stand in a file. */
extern const struct ob_option obs_option_table[];

/*
 * Parses argv. 0: ret is filled (mode DONE: --help or --version was answered). Else the exit
 * status, after an error on stderr.
 */
int obs_options_parse(struct obs_options *ret, int argc, char **argv);
/* The arguments of a worker that shall use `driver`, for execv. They point into `options`. */
void obs_options_worker_args(struct obs_options *options, const char *self, const char *driver,
	char *ret_args[OBS_WORKER_ARGS_MAX]);
/* The same of the admission process. listeners: a letter for each listening socket. */
void obs_options_admission_args(struct obs_options *options, const char *self,
	const char *listeners, char *ret_args[OBS_WORKER_ARGS_MAX]);
/*
 * The same of the process that keeps the connection to the balancer at `url`. name, advertised: of
 * the server; incarnation as decided by the supervisor.
 */
void obs_options_member_args(struct obs_options *options, const char *self, const char *url,
	const char *name, const char *advertised, char *ret_args[OBS_WORKER_ARGS_MAX]);

#endif
