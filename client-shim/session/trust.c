/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/trust.h"

#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/opt.h"
#include "client-shim/session/server.h"

struct confirmation {
	uint8_t sha256[32];
	uint32_t device;
};

static OBC_PER_SERVER uint32_t driver_ptx_first; /* of the server's driver */
#define driver_ptx OBC_HERE(driver_ptx_first)
static OBC_PER_SERVER uint32_t device_cc_first[OBP_DEVICE_MAX];
#define device_cc OBC_HERE(device_cc_first)
static OBC_PER_SERVER pthread_mutex_t lock_first = PTHREAD_MUTEX_INITIALIZER;
#define lock OBC_HERE(lock_first)
/* a circular buffer; under the lock, like the next two */
static OBC_PER_SERVER struct confirmation confirmed_first[OBC_TRUST_IMAGES];
#define confirmed OBC_HERE(confirmed_first)
static OBC_PER_SERVER unsigned n_confirmed_first, next_confirmed_first;
#define n_confirmed    OBC_HERE(n_confirmed_first)
#define next_confirmed OBC_HERE(next_confirmed_first)

/* PTX ISA, "Release notes". */
uint32_t obc_trust_ptx_version(int cuda_version)
{
	static const struct {
		int cuda;
		uint32_t ptx;
	} known[] = {
		{ 13000, 90 },
		{ 12090, 88 },
		{ 12080, 87 },
		{ 12070, 86 },
		{ 12050, 85 },
		{ 12040, 84 },
		{ 12030, 83 },
		{ 12020, 82 },
		{ 12010, 81 },
		{ 12000, 80 },
		{ 11080, 78 },
		{ 11070, 77 },
		{ 11060, 76 },
		{ 11050, 75 },
		{ 11040, 74 },
		{ 11030, 73 },
		{ 11020, 72 },
		{ 11010, 71 },
		{ 11000, 70 },
	};

	for (size_t i = 0; i < ob_count(known); i++)
		if (cuda_version >= known[i].cuda)
			return known[i].ptx;
	return 0;
}

void obc_trust_start(const struct obp_welcome *welcome)
{
	driver_ptx = obc_trust_ptx_version(welcome->driver_version);
	for (uint32_t i = 0; i < welcome->n_devices && i < OBP_DEVICE_MAX; i++) {
		const struct obp_device *device = &welcome->devices[i];

		device_cc[i] =
			(uint32_t)(device->attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] * 10 +
				device->attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR]);
	}
}

bool obc_trust_code(const struct obf_image_ref *image, uint32_t device)
{
	const struct obi_symbols *symbols = image->symbols;
	uint32_t cc = device_cc[device];

	if (!ob_opt_on(OB_OPT_TRUST) || image->from_text || image->n_options ||
		symbols->variable_bytes > OBC_TRUST_VARIABLES)
		return false;
	if (image->entry->kind == OBI_ELF)
		return image->entry->arch == cc;
	return symbols->plain && symbols->ptx_version && symbols->ptx_version <= driver_ptx &&
		symbols->arch && symbols->arch <= cc;
}

bool obc_trust_confirmed(const uint8_t sha256[32], uint32_t device)
{
	bool found = false;

	if (!ob_opt_on(OB_OPT_TRUST))
		return false;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n_confirmed && !found; i++)
		found = confirmed[i].device == device &&
			memcmp(confirmed[i].sha256, sha256, sizeof confirmed[i].sha256) == 0;
	pthread_mutex_unlock(&lock);
	return found;
}

void obc_trust_confirm(const uint8_t sha256[32], uint32_t device)
{
	pthread_mutex_lock(&lock);
	memcpy(confirmed[next_confirmed].sha256, sha256, sizeof confirmed[0].sha256);
	confirmed[next_confirmed].device = device;
	next_confirmed = (next_confirmed + 1) % OBC_TRUST_IMAGES;
	n_confirmed = ob_min(n_confirmed + 1, OBC_TRUST_IMAGES);
	pthread_mutex_unlock(&lock);
}
