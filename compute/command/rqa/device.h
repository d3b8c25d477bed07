/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Utilization of the device: for a GPU as reported by NVIDIA's management library
 * (libnvidia-ml.so.1) if there is one, else the CPU and memory of this process. One thread at a
 * time, except with struct obx_device_shared.
 */
#ifndef OBX_RQA_DEVICE_H
#define OBX_RQA_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct obx_device_state {
	bool gpu;
	char name[96];
	/* per cent; for a CPU: of the cores that this process may use, since the previous call */
	double utilization;
	uint64_t memory_used, memory_total; /* bytes */
};

struct obx_device_watch {
	void *library, *device;
	int (*utilization)(void *device, unsigned *ret_two);
	int (*memory)(void *device, uint64_t *ret_three);
	char name[96];
	double cpu_seconds, at;
};

/* cpu: do not look for a GPU. */
void obx_device_watch_init(struct obx_device_watch *watch, bool cpu);
void obx_device_watch_fini(struct obx_device_watch *watch);
void obx_device_watch_read(struct obx_device_watch *watch, struct obx_device_state *ret_state);

/*
 * A watch that several threads share: all get the same reading, which is renewed when it is older
 * than `period` seconds.
 */
struct obx_device_shared {
	pthread_mutex_t lock; /* guards the other fields */
	struct obx_device_watch watch;
	double at; /* time of the reading, seconds */
	struct obx_device_state state;
};

void obx_device_shared_init(struct obx_device_shared *shared);
void obx_device_shared_fini(struct obx_device_shared *shared);
void obx_device_shared_read(
	struct obx_device_shared *shared, double period, struct obx_device_state *ret_state);

#endif
