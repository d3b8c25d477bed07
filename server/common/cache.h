/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The cache of uploads: code images and chunks of copies that clients have sent, stored by content
 * for later sessions. A directory of files, each named by the hash of its content, which all
 * workers of this server read and write, and those of later servers:
 *
 *     DIR/usage            a page that every process maps: bytes in all, files evicted
 *     DIR/TENANT/iHASH     a code image, HASH its SHA-256
 *     DIR/TENANT/cHASH     a chunk, HASH its obt_tree_digest
 *
 * A tenant is the identity that a client has proved. A worker opens only its own client's folder,
 * so that nobody learns what others have uploaded. A file is written under another name and renamed
 * when complete; what is read is checked against its name before use. An upload's bytes are
 * reserved before its file is created, so that the total never exceeds the limit: whoever finds no
 * room evicts the files that were used longest ago, of all tenants, until an eighth is free.
 *
 * Owner: the session; executor only. The supervisor has one of its own, without a tenant, for
 * counting.
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
/* bytes of the smallest upload that is cached, which bounds the number of files */
#define OBS_CACHE_MIN        (64u << 10)
#define OBS_CACHE_PATH_MAX   512u
#define OBS_TENANT_DIGITS    32u

#define OBS_USER_FIRST 60578u /* user ids that systemd's documentation lists as unused */
#define OBS_USER_LAST  61183u

enum obs_cache_kind { OBS_CACHE_IMAGE, OBS_CACHE_CHUNK };

struct obs_cache_usage;

struct obs_cache {
	int top, dir;   /* -1: nothing is cached */
	uint64_t limit; /* bytes */
	uid_t owner;    /* of the folder and its files */
	struct obs_cache_usage *usage;
	uint64_t no_wait_until; /* until then: do not wait for another process that makes room */
	char tenant[OBS_TENANT_DIGITS + 1];
};

/*
 * Opens the cache. path NULL: $XDG_RUNTIME_DIR/outboard-cache or /tmp/outboard-cache-UID. limit 0:
 * nothing is cached. Without a usable directory nothing is cached either, and one line is logged.
 */
void obs_cache_open(struct obs_cache *cache, const char *path, uint64_t limit);
/*
 * The same for a server that was started as root and whose workers have another user: that user
 * becomes the folder's owner. 0: this process's user.
 */
void obs_cache_open_for(struct obs_cache *cache, const char *path, uint64_t limit, uid_t owner);
/* Selects the client's folder: `who` of its struct obs_identity. */
void obs_cache_enter(struct obs_cache *cache, const char *who);
void obs_cache_close(struct obs_cache *cache);

/* Size of the upload with this name; 0: it is not cached. Marks it as used. */
uint64_t obs_cache_find(struct obs_cache *cache, enum obs_cache_kind kind,
	const uint8_t name[OBS_CACHE_NAME_BYTES]);
/*
 * Reads its `size` bytes into dst and checks them against the name. False: it is gone, or was
 * damaged and has been removed; dst is undefined.
 */
bool obs_cache_read(struct obs_cache *cache, enum obs_cache_kind kind,
	const uint8_t name[OBS_CACHE_NAME_BYTES], void *dst, uint64_t size);
/* Stores it if there is room. The caller has checked the name. */
void obs_cache_put(struct obs_cache *cache, enum obs_cache_kind kind,
	const uint8_t name[OBS_CACHE_NAME_BYTES], const void *data, uint64_t size);

/* Supervisor, at its start: counts the files, evicts those above the limit. */
void obs_cache_sweep(struct obs_cache *cache);
/* Supervisor: true if a worker has found no room since the last sweep. */
bool obs_cache_crowded(const struct obs_cache *cache);
/* Bytes now; files evicted since the directory was created. */
void obs_cache_count(const struct obs_cache *cache, uint64_t *ret_bytes, uint64_t *ret_evicted);

#endif
