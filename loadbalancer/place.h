/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Placement: chooses the server, and its device, for a new session. A pure function of the known
 * state of the servers, the request, the policy and a state that the caller keeps (a turn and a
 * random number): the same arguments give the same result, so that a decision can be tested, logged
 * and replayed. First everything that does not fit is filtered out, with the reason; then the
 * policy chooses among the rest.
 *
 * No I/O, no memory of its own; any thread.
 */
#ifndef OBL_PLACE_H
#define OBL_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBL_SERVERS_MAX       1024u
#define OBL_DEVICES_MAX       16u /* of one server */
/*
 * binpack prefers devices with fewer sessions than this, whatever their memory: more sessions slow
 * each other down
 */
#define OBL_SHARERS_PREFERRED 8u
#define OBL_NAME_MAX          64u

/* X(NAME, text, what it is for) */
#define OBL_POLICY_LIST(X)                                                                       \
	X(LEAST_LOAD, "least-load",                                                              \
		"the device with the least compute and memory in use: quick answers")            \
	X(ROUND_ROBIN, "round-robin", "one after the other, whatever they do")                   \
	X(WEIGHTED, "weighted",                                                                  \
		"at random, in proportion to each server's weight or its devices' score")        \
	X(LEAST_CONNECTIONS, "least-connections", "the server with the fewest sessions")         \
	X(POWER_OF_TWO, "power-of-two",                                                          \
		"the better of two taken at random: safe when what is known of the load is old") \
	X(BINPACK, "binpack",                                                                    \
		"the tightest fit in memory: keeps whole devices free for large requests")       \
	X(SPREAD, "spread", "the fewest sharers, then the most free memory: isolation")          \
	X(EXCLUSIVE, "exclusive", "a device that nobody uses, and nobody else will be put on")

enum obl_policy {
#define X(name, text, what) OBL_##name,
	OBL_POLICY_LIST(X)
#undef X
		OBL_POLICY_COUNT
};

struct obl_device {
	char name[OBL_NAME_MAX];
	uint64_t total, used;      /* bytes; total 0: unknown, assumed to fit */
	uint32_t units, clock_mhz; /* multiprocessors */
	uint32_t sharers;          /* sessions on it */
	bool soft;                 /* a software device: last choice */
	bool held;                 /* in exclusive use */
};

struct obl_server {
	bool alive, draining;
	uint32_t sessions, max_sessions;
	uint32_t busy;         /* per mille of its devices' time in use */
	uint32_t weight;       /* for WEIGHTED; 0: by score */
	uint64_t link_ns;      /* round trip; 0: not known */
	uint64_t link_bytes_s; /* rate; 0: not known */
	uint32_t n_devices;    /* 0: unknown, assumed to fit */
	struct obl_device devices[OBL_DEVICES_MAX];
};

struct obl_request {
	uint64_t memory; /* bytes that must be free on one device; 0: any */
	/* must be part of the device's name, case ignored; "": any */
	char type[OBL_NAME_MAX];
	uint32_t min_units;
	uint32_t max_sharers; /* a device with this many sharers is full; 0: no limit */
};

struct obl_state {
	uint64_t turn;   /* of round robin */
	uint64_t random; /* any seed; each use advances it */
};

/* Why a server was excluded: the first filter that none of its devices passed. */
enum obl_fit {
	OBL_FITS,
	OBL_DEAD,
	OBL_DRAINING,
	OBL_FULL,
	OBL_NO_TYPE,
	OBL_NO_UNITS,
	OBL_NO_MEMORY,
	OBL_SHARED,
	OBL_REASONS
};

struct obl_choice {
	uint32_t server, device;
	/* number of servers for each reason; FITS: number that fit */
	uint32_t left_out[OBL_REASONS];
	/* largest free block, in bytes, of a server without enough memory, for the message */
	uint64_t most_free;
};

/*
 * Chooses. False: none fits; ret->left_out says why. At most OBL_SERVERS_MAX servers are
 * considered.
 */
bool obl_place(const struct obl_server *servers, uint32_t n, const struct obl_request *request,
	enum obl_policy policy, struct obl_state *state, struct obl_choice *ret);
/*
 * Finds the server's device for the request, the best by `policy`; OBL_FITS with *ret_device, or
 * why none fits.
 */
enum obl_fit obl_fits(const struct obl_server *server, const struct obl_request *request,
	enum obl_policy policy, uint32_t *ret_device);
/*
 * Score of a device regardless of its use: compute, memory and link. Above 0; only for comparison.
 */
double obl_device_score(const struct obl_server *server, uint32_t device);
/* Load of a device: 0 (unused) and up. */
double obl_device_load(const struct obl_server *server, uint32_t device);
/* Writes one sentence why nothing fits. */
void obl_explain(const struct obl_choice *choice, const struct obl_request *request, char *ret_text,
	size_t size);

const char *obl_policy_name(enum obl_policy policy);
bool obl_policy_parse(const char *text, enum obl_policy *ret);

#endif
