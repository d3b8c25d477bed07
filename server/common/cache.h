/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What clients have uploaded, kept by content for the sessions after them: code images and chunks
 * of copies. A directory of files, each named by what is in it, which all workers of this server
 * read and write, and the ones after them:
 *
 *     DIR/usage            bytes in all and files thrown away, a page that every process maps
 *     DIR/TENANT/iHASH     a code image, HASH its SHA-256
 *     DIR/TENANT/cHASH     a chunk, HASH its obt_tree_digest
 *
 * A tenant is who the client has proved to be; a worker opens its own client's folder and no other,
 * so that nobody learns what others have uploaded. A file is written under another name and renamed
 * when whole, and what is read is checked against its name before anybody uses it. Together they
 * stay below a limit: whoever goes above it throws away what was used longest ago, of all tenants,
 * until an eighth is free.
 *
 * Owner: the session; executor only. The supervisor has one of its own, without a tenant, to count.
 */
#ifndef OBS_CACHE_H
#define OBS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OBS_CACHE_NAME_BYTES 32u
#define OBS_CACHE_DEFAULT    (1ull << 30) /* bytes */
#define OBS_CACHE_MAX        (64ull << 40)
/* bytes of the smallest thing kept, which bounds the number of files */
#define OBS_CACHE_MIN        (64u << 10)
#define OBS_CACHE_PATH_MAX   512u
#define OBS_TENANT_DIGITS    32u

#define OBS_USER_FIRST 60578u /* user numbers that systemd's list of ranges names as unused */
#define OBS_USER_LAST  61183u

enum obs_cache_kind { OBS_CACHE_IMAGE, OBS_CACHE_CHUNK };

struct obs_cache_usage;

struct obs_cache {
	int top, dir;   /* -1: nothing is kept */
	uint64_t limit; /* bytes */
	uid_t owner;    /* of the folder and what is in it */
	struct obs_cache_usage *usage;
	uint64_t no_wait_until; /* no waiting for another process that makes room */
	char tenant[OBS_TENANT_DIGITS + 1];
};

/*
 * path NULL: $XDG_RUNTIME_DIR/outboard-cache or /tmp/outboard-cache-UID. limit 0: nothing is kept.
 * Works without a directory when none can be had, with one line in the log.
 */
void obs_cache_open(struct obs_cache *cache, const char *path, uint64_t limit);
/*
 * The same for a server started as root whose workers have another user: it becomes the folder's
 * owner. 0: this process's.
 */
void obs_cache_open_for(struct obs_cache *cache, const char *path, uint64_t limit, uid_t owner);
/* From now on it is this client's: struct obs_identity's `who`. */
void obs_cache_enter(struct obs_cache *cache, const char *who);
void obs_cache_close(struct obs_cache *cache);

/* Bytes of what has this name; 0: it is not there. It counts as used now. */
uint64_t obs_cache_find(struct obs_cache *cache, enum obs_cache_kind kind,
	const uint8_t name[OBS_CACHE_NAME_BYTES]);
/*
 * Its `size` bytes into dst, checked against the name. False: it is gone, or was damaged and is now
 * gone; dst is undefined.
 */
bool obs_cache_read(struct obs_cache *cache, enum obs_cache_kind kind,
	const uint8_t name[OBS_CACHE_NAME_BYTES], void *dst, uint64_t size);
/* Keeps it if it can. The caller has checked the name. */
void obs_cache_put(struct obs_cache *cache, enum obs_cache_kind kind,
	const uint8_t name[OBS_CACHE_NAME_BYTES], const void *data, uint64_t size);

/* Supervisor, at its start: counts what is there, throws away what is too much. */
void obs_cache_sweep(struct obs_cache *cache);
/* Supervisor: a worker has found no room since the last sweep. */
bool obs_cache_crowded(const struct obs_cache *cache);
/* Bytes now, files ever thrown away. */
void obs_cache_count(const struct obs_cache *cache, uint64_t *ret_bytes, uint64_t *ret_evicted);

#endif
