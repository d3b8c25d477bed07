/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A request for devices, the policies, and what comes out of placement (place.h): where it goes, or
 * why it cannot. Plain data of the caller; any thread.
 */
#ifndef OBL_REQUEST_H
#define OBL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadbalancer/device.h"
#include "loadbalancer/where.h"

#define OBL_PARTS_MAX         8u  /* servers of one request */
#define OBL_GPUS_MAX          64u /* devices of one request */
/*
 * binpack prefers devices with fewer sharers than this, whatever their memory: more sessions slow
 * each other down. Not when idle devices are scarce: if there are fewer than the square root of the
 * number of devices (the spread of a random demand), it takes the tightest fit whatever the sharers,
 * and an idle device last. So a request for a whole device is seldom refused. In pools of fewer
 * than OBL_SPARING_DEVICES this is not done.
 */
#define OBL_SHARERS_PREFERRED 8u
#define OBL_SPARING_DEVICES   16u

/* X(NAME, text, what it is for). The numbers are part of the protocol: append only. */
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

struct obl_choice;

struct obl_request {
	uint32_t gpus;  /* devices; 0: 1; at most OBL_GPUS_MAX */
	uint32_t share; /* millionths of each device's time; 0: not limited, nothing is reserved */
	/*
	 * bytes that must be free on each device; 0: any device on which something is free. A
	 * balancer should put its default in, or the ledger says nothing about such a session.
	 */
	uint64_t memory;
	bool exclusive;  /* nobody else on the devices; also the policy EXCLUSIVE */
	bool one_server; /* all devices of one server */
	uint32_t cuda;   /* version that the driver must have at least; 0: any */
	/* must be part of the device's name, case ignored; "": any (lists of servers) */
	char type[OBL_NAME_MAX];
	uint32_t min_units;
	uint32_t max_sharers;          /* a device with this many sharers is full; 0: no limit */
	const struct obl_where *where; /* selector; NULL: none */
	/*
	 * "apart": bit i % 64 of word i / 64 is set if server i runs a reservation with the same
	 * word and so is left out; as many words as the servers need. NULL: none.
	 */
	const uint64_t *apart;
	/* devices that are kept for another request (obl_claim, queue.h); NULL: none */
	const struct obl_choice *kept;
};

struct obl_state {
	uint64_t turn;   /* of round robin */
	uint64_t random; /* any seed; each use advances it */
};

/*
 * Why servers and devices were left out. Up to OBL_APART: a server's reasons, counted in servers;
 * from OBL_NO_TYPE on: a device's, counted in devices. In the order of the filter.
 */
enum obl_fit {
	OBL_FITS,
	OBL_DEAD, /* does not answer */
	OBL_DRAINING,
	OBL_CORDONED,
	OBL_UNWELL,   /* the server reports a fault */
	OBL_FULL,     /* as many sessions as it allows */
	OBL_STARTING, /* slow start */
	OBL_OLD_CUDA,
	OBL_NOT_WHERE, /* the selector excludes the server */
	OBL_APART,
	OBL_NO_TYPE, /* the selector or the type excludes the device, or it is divided (MIG) */
	OBL_NO_UNITS,
	OBL_FAULTY, /* Xid, too hot, withdrawn */
	OBL_NO_MEMORY,
	OBL_NO_SHARE,
	OBL_SHARED, /* exclusive use is wanted or held, or it has max_sharers */
	OBL_KEPT,   /* kept for a request that has waited longer */
	OBL_REASONS
};

struct obl_part {
	uint32_t server; /* index */
	uint32_t n;      /* devices; 0 for a server whose devices are not known: its first */
	uint8_t devices[OBL_DEVICES_MAX]; /* indexes, ascending */
};

/* Whether waiting can help. */
enum obl_outlook {
	OBL_PLACED,
	OBL_LATER,   /* what it needs is in use, or its server is not available now */
	OBL_CAPACITY /* not even with every server and device free, well and answering */
};

struct obl_choice {
	uint32_t outlook; /* enum obl_outlook */
	uint32_t n_parts;
	struct obl_part parts[OBL_PARTS_MAX];
	/* The rest is for obl_explain, and is filled in only if outlook is not OBL_PLACED. */
	uint32_t left_out[OBL_REASONS]; /* servers, devices; FITS: devices that fit */
	uint32_t most;                  /* the largest number of devices that could be had now */
	uint32_t most_ever;             /* the same, were everything free */
	/*
	 * The largest free block of a device that has too little memory and nothing else against it:
	 * server and device are indexes; bytes 0: there is none.
	 */
	struct {
		uint32_t server, device;
		uint64_t bytes;
	} nearest;
};

const char *obl_policy_name(enum obl_policy policy);
bool obl_policy_parse(const char *text, enum obl_policy *ret);

#endif
