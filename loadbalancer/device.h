/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Servers and their devices as placement (place.h) sees them: what they are, what is reserved on
 * them, and how they are. Plain data of the caller, who fills it in from heartbeats and the ledger;
 * score and load of a device are pure functions of it. Any thread.
 */
#ifndef OBL_DEVICE_H
#define OBL_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBL_SERVERS_MAX 1024u
#define OBL_DEVICES_MAX 16u /* of one server */
#define OBL_NAME_MAX    64u
#define OBL_CELSIUS_MAX 90u      /* a hotter device gets no new sessions */
#define OBL_SHARE_ALL   1000000u /* shares are in millionths */

struct obl_labels;

/* A MIG instance is a device of its own. Its GPU is listed too, with mig_mode set, and never used. */
enum obl_kind { OBL_GPU, OBL_MIG, OBL_SOFTWARE, OBL_KINDS };

/* Small, because placement reads all devices of a pool: 56 bytes. */
struct obl_device {
	uint64_t total;            /* bytes; 0: not known, assumed to fit */
	uint64_t reserved;         /* bytes; a client without a ledger: bytes in use */
	float score;               /* by obl_server_score; 0: unknown, all alike */
	uint32_t share;            /* of its time, reserved, in millionths */
	uint32_t units, clock_mhz; /* multiprocessors */
	uint32_t sharers;          /* reservations on it; a client without a ledger: sessions */
	uint16_t capability;       /* 90 for 9.0; 0: not known */
	uint16_t busy;             /* per mille of its time in use, as reported */
	uint16_t celsius;          /* 0: not known */
	uint8_t kind;              /* enum obl_kind */
	uint8_t share_by;  /* how shares are kept: bit 1 << enum obp_share_by; 0: not known */
	bool mig_mode;     /* a GPU that is divided into instances */
	bool held;         /* in exclusive use */
	bool faulty;       /* an Xid error, or the server says so */
	bool withdrawn;    /* by an operator */
	const char *model; /* its name; the caller's; NULL: "" */
};

struct obl_server {
	bool alive; /* it answers; in a pool: a heartbeat within 5 s */
	bool draining, cordoned;
	bool unhealthy; /* the server itself says so */
	uint32_t sessions, max_sessions;
	/*
	 * Slow start: sessions placed in the last second, and how many may be (obl_slow_start);
	 * fresh_max 0: no limit
	 */
	uint32_t fresh, fresh_max;
	uint32_t busy;                   /* per mille of its devices' time in use */
	uint32_t weight;                 /* for WEIGHTED; 0: by score */
	uint32_t cuda;                   /* version of the driver, 13000; 0: not known */
	uint64_t link_ns;                /* round trip; 0: not known */
	uint64_t link_bytes_s;           /* rate; 0: not known */
	const char *name;                /* the caller's; NULL: "" */
	const struct obl_labels *labels; /* the caller's; NULL: none */
	uint32_t n_devices; /* 0: unknown, assumed to fit one device (lists of servers only) */
	struct obl_device devices[OBL_DEVICES_MAX];
};

/* Bytes that are not reserved; UINT64_MAX: the total is not known. */
static inline uint64_t obl_device_free(const struct obl_device *device)
{
	if (device->total == 0)
		return UINT64_MAX;
	return device->total > device->reserved ? device->total - device->reserved : 0;
}

/* Accounts a reservation on the device, or takes it back. Saturates. */
void obl_device_take(struct obl_device *device, uint64_t memory, uint32_t share, bool exclusive);
void obl_device_give(struct obl_device *device, uint64_t memory, uint32_t share, bool exclusive);
/*
 * Score of a device regardless of its use: compute, memory and link. Above 0; only for comparison.
 */
double obl_device_score(const struct obl_server *server, uint32_t device);
/* Stores the score of all devices. Call it when devices, clocks or the link have changed. */
void obl_server_score(struct obl_server *server);
/* Load of a device: 0 (unused) and up. */
static inline double obl_device_load(const struct obl_device *device)
{
	double memory = device->reserved < device->total
		? (double)device->reserved / (double)device->total
		: device->total != 0;

	/* Current work counts most; idle sessions may begin to work at any time. */
	return device->busy / 1000.0 + 0.5 * memory + 0.5 * device->share / OBL_SHARE_ALL +
		0.1 * device->sharers;
}
/*
 * Sessions that a server which joined age_ms ago may get in one second: few at first, so that a
 * server which fails at once does not attract everything. 0: no limit any more.
 */
uint32_t obl_slow_start(uint64_t age_ms);
/* "gpu", "mig", "software"; "?" for other values. */
const char *obl_kind_name(unsigned kind);

#endif
