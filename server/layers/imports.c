/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/imports.h"

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include "server/common/limits.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct {
	uint64_t ticket, bytes;
	int fd;
} tickets[OBS_TICKETS_MAX];
static unsigned oldest;
static uint64_t imported; /* bytes */
static uint32_t n_imported;

/* Under the lock, like the next. */
static bool charge(uint64_t bytes)
{
	uint64_t most = obs_limits_now.memory ? obs_limits_now.memory : UINT64_MAX;
	bool fits = n_imported < OBS_IMPORTS_MAX && imported <= most && bytes <= most - imported;

	if (fits) {
		imported += bytes;
		n_imported++;
	}
	return fits;
}

static void discharge(uint64_t bytes)
{
	imported -= bytes;
	n_imported--;
}

uint64_t obs_imports_put(int fd, uint64_t bytes)
{
	uint64_t ticket;
	unsigned at;
	bool fits;

	if (getrandom(&ticket, sizeof ticket, 0) != sizeof ticket || ticket == 0) {
		close(fd);
		return 0;
	}
	pthread_mutex_lock(&lock);
	at = oldest++ % OBS_TICKETS_MAX;
	if (tickets[at].ticket) {
		close(tickets[at].fd);
		discharge(tickets[at].bytes);
	}
	fits = charge(bytes);
	tickets[at].ticket = fits ? ticket : 0;
	tickets[at].bytes = bytes;
	tickets[at].fd = fd;
	pthread_mutex_unlock(&lock);
	if (!fits)
		close(fd);
	return fits ? ticket : 0;
}

int obs_imports_take(uint64_t ticket, uint64_t *ret_bytes)
{
	int fd = -1;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; ticket && fd < 0 && i < OBS_TICKETS_MAX; i++)
		if (tickets[i].ticket == ticket) {
			tickets[i].ticket = 0;
			*ret_bytes = tickets[i].bytes;
			fd = tickets[i].fd;
		}
	pthread_mutex_unlock(&lock);
	return fd;
}

bool obs_imports_charge(uint64_t bytes)
{
	bool fits;

	pthread_mutex_lock(&lock);
	fits = charge(bytes);
	pthread_mutex_unlock(&lock);
	return fits;
}

void obs_imports_discharge(uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	discharge(bytes);
	pthread_mutex_unlock(&lock);
}
