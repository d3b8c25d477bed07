/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Explains why a device cannot use any code of an image: its origin, its contents and the remedy.
 * Slow path; logs one line.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "front/private.h"
#include "image/ptx_merge.h"

#define DESCRIBE_MAX 512
#define PATH_BYTES   1024
#define ADVICE_MAX   512
#define SAID_MAX     64

_Atomic bool obf_served;

enum owner { OWNER_UNKNOWN, OWNER_PROGRAM, OWNER_FILE };

/* Finds the mapped file that contains an address that no loader has mapped. */
static bool mapped_file(uintptr_t at, char ret_path[PATH_BYTES])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_BYTES + 128];
	bool found = false;

	while (maps && !found && fgets(line, sizeof line, maps)) {
		uintptr_t from, to;
		char *path = strchr(line, '/');

		found = path && sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 &&
			at >= from && at < to;
		if (found) {
			path[strcspn(path, "\n")] = 0;
			snprintf(ret_path, PATH_BYTES, "%.*s", PATH_BYTES - 1, path);
		}
	}
	if (maps)
		fclose(maps);
	return found;
}

/* Finds the origin of the image at this address by the file that contains it. */
static enum owner owner_of(const void *at, char ret_path[PATH_BYTES])
{
	const struct link_map *map = NULL;
	Dl_info info;
	ssize_t n;

	if (!at)
		return OWNER_UNKNOWN;
	if (!dladdr1(at, &info, (void **)(void *)&map, RTLD_DL_LINKMAP) || !map)
		return mapped_file((uintptr_t)at, ret_path) ? OWNER_FILE : OWNER_UNKNOWN;
	if (map->l_name && map->l_name[0]) {
		snprintf(ret_path, PATH_BYTES, "%s", map->l_name);
		return OWNER_FILE;
	}
	/* The loader gives no name for the program itself. */
	n = readlink("/proc/self/exe", ret_path, PATH_BYTES - 1);
	ret_path[n > 0 ? n : 0] = 0;
	return OWNER_PROGRAM;
}

/* The lowest compute capability above the device's for which the image has PTX; 0: none. */
static uint32_t ptx_above(const struct obi_image *image, uint32_t cc)
{
	uint32_t best = 0;

	for (size_t i = 0; i < image->n_entries; i++) {
		const struct obi_entry *entry = &image->entries[i];

		if (entry->kind == OBI_PTX && entry->arch > cc && (!best || entry->arch < best))
			best = entry->arch;
	}
	return best;
}

static void advise(const struct obi_image *image, const struct obf_device *device, enum owner owner,
	char ret_text[ADVICE_MAX])
{
	static const char rebuild[] = "nvcc -gencode arch=compute_75,code=compute_75";
	uint32_t above = ptx_above(image, obf_device_cc(device));

	if (device->ptx_only && above)
		snprintf(ret_text, ADVICE_MAX,
			"Set OUTBOARD_SOFT_CC=%u.%u or higher for the software device "
			"(outboard-server, or 'outboard run --direct'), or use a server with a "
			"GPU",
			above / 10, above % 10);
	else if (device->ptx_only && owner != OWNER_PROGRAM &&
		obf_device_cc(device) < OB_TEXT_CAPABILITY_MAX)
		snprintf(ret_text, ADVICE_MAX,
			"Leave OUTBOARD_SOFT_CC unset for the software device (outboard-server, "
			"'outboard run'): libraries choose PTX for a device that is newer than "
			"their machine code. Else rebuild it with PTX (%s), or use a server with a "
			"GPU",
			rebuild);
	else if (owner == OWNER_FILE)
		snprintf(ret_text, ADVICE_MAX,
			"Use a server with a GPU for which the file has code, or ask its vendor "
			"for a build with PTX (%s)",
			rebuild);
	else
		snprintf(ret_text, ADVICE_MAX,
			"Rebuild it with PTX (%s), or use a server with a GPU for which it has "
			"code",
			rebuild);
}

/*
 * Whether a text was not said before by this process: libraries try an image again for each of their
 * calls. Two texts with the same place in the table may be said more than once.
 */
static bool is_new(const char *path, const char *held)
{
	static _Atomic uint64_t said[SAID_MAX];
	uint64_t hash = ob_hash(OB_HASH_START, path, strlen(path));

	hash = ob_hash(hash, held, strlen(held));
	return atomic_exchange_explicit(&said[hash % SAID_MAX], hash, memory_order_relaxed) != hash;
}

void obf_explain_no_binary(const struct obi_image *image, const struct obf_device *device)
{
	const void *at = image->n_entries ? image->entries[0].data
		: image->prelinked        ? image->prelinked[0]
					  : NULL;
	char held[DESCRIBE_MAX], path[PATH_BYTES] = "", advice[ADVICE_MAX];
	enum owner owner = owner_of(at, path);
	uint32_t cc = obf_device_cc(device);
	/*
	 * NVIDIA's libraries hold images for one kind of GPU each, and load them all: NCCL 17, cuDNN
	 * 8.5 some 300 that an H100 does not take. A device that runs PTX only is another matter.
	 */
	enum ob_log_level level =
		owner == OWNER_FILE && !device->ptx_only ? OB_LOG_INFO : OB_LOG_ERROR;

	if (!ob_log_on(level))
		return;
	obi_image_describe(image, held, sizeof held);
	if (!is_new(path, held))
		return;
	advise(image, device, owner, advice);
	ob_log(level,
		"no code in %s%s%s runs on the device \"%s\" (compute capability %u.%u%s): it "
		"holds %s. %s",
		owner == OWNER_PROGRAM        ? "the program itself, "
			: owner == OWNER_FILE ? ""
					      : "an image that the program made or read",
		path, owner == OWNER_UNKNOWN ? "" : ",", device->name, cc / 10, cc % 10,
		device->ptx_only ? ", PTX only" : "", held, advice);
}

void obf_explain_memory(const struct obf_device *device, uint64_t size)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	char asked[32], all[32];

	if (!device->ptx_only || atomic_load_explicit(&obf_served, memory_order_relaxed) ||
		atomic_flag_test_and_set(&said))
		return;
	ob_text_print_size(size, asked, sizeof asked);
	ob_text_print_size(device->total_mem, all, sizeof all);
	ob_error("an allocation of %s of device memory failed: the software device has %s. To give "
		 "it more, set OUTBOARD_SOFT_MEMORY=16G or another size for it (outboard-server, "
		 "or 'outboard run --direct'). Later failures are not reported",
		asked, all);
}

CUresult obf_explain_refused(enum ob_err err)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	/* Programs that try several formats load what is none; Tile IR is what a user must hear of. */
	bool tile = err == OB_ERR_IMAGE_TILE_IR && !atomic_flag_test_and_set(&said);

	ob_log(tile ? OB_LOG_ERROR : OB_LOG_DEBUG, "code was not loaded: %s", ob_err_text(err));
	return ob_err_to_cuda(err);
}
