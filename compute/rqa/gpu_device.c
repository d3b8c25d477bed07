/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The device on which a call counts: the one in the control, or the process's own. */
#include <pthread.h>
#include <string.h>

#include "compute/rqa/gpu.h"

/*
 * fewest cells for which AUTO uses a GPU: the CPU processes fewer in the time that opening a GPU
 * takes
 */
#define AUTO_CELLS 4000000000ull

extern const unsigned char obk_rqa_image_start[], obk_rqa_image_end[];

static const char *const kernel_names[OBK_RQA_KERNEL_COUNT] = {
	"rqa_bits_l1_f32",
	"rqa_bits_l2_f32",
	"rqa_bits_max_f32",
	"rqa_bits_l1_f64",
	"rqa_bits_l2_f64",
	"rqa_bits_max_f64",
	"rqa_diagonals",
	"rqa_columns",
	"rqa_tiles_f32",
	"rqa_tiles_f64",
	"rqa_tiles_near_f32",
	"rqa_tiles_near_f64",
	"rqa_join",
	"rqa_sweep_diagonals_f32",
	"rqa_sweep_columns_f32",
	"rqa_sweep_diagonals_f64",
	"rqa_sweep_columns_f64",
	"rqa_pairs",
};
static const struct obk_gpu_image image = { "recurrence", obk_rqa_image_start, obk_rqa_image_end,
	OBK_RQA_KERNEL_COUNT, kernel_names };

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
/*
 * Guarded by the lock. The device is closed when it is lost; the number counts how often it was
 * opened.
 */
static struct obk_gpu *device;
static uint64_t devices;

bool obk_rqa_gpu_built(void)
{
	return obk_gpu_image_built(&image);
}

static enum ob_err device_open(struct obk_fault *fault)
{
	const struct obk_gpu_driver *driver;
	enum ob_err err;

	if (device && obk_gpu_lost(device)) {
		obk_gpu_close(device);
		device = NULL;
	}
	if (device)
		return OB_ERR_NONE;
	if (!obk_rqa_gpu_built())
		return obk_fault_set(
			fault, OB_ERR_UNSUPPORTED, OBK_FAULT_NO_ITEM, "this build has no GPU code");
	err = obk_gpu_driver_open(NULL, &driver, fault);
	if (err == OB_ERR_NONE && !driver->devices)
		return obk_fault_set(fault, OB_ERR_UNSUPPORTED, OBK_FAULT_NO_ITEM,
			"the CUDA driver has no device");
	devices++;
	return err == OB_ERR_NONE ? obk_gpu_open(driver, 0, &device, fault) : err;
}

int obk_rqa_gpu_fail(
	struct obk_rqa_error *ret_error, enum ob_err err, const struct obk_fault *fault)
{
	return obk_rqa_fail(ret_error, err == OB_ERR_NO_MEMORY ? OBK_RQA_NO_MEMORY : OBK_RQA_DEVICE,
		0, 0, "the GPU: %s", fault->text);
}

int obk_rqa_gpu_begin(const struct obk_rqa_control *control, struct obk_rqa_gpu_use *use,
	struct obk_rqa_error *ret_error)
{
	struct obk_fault fault = { .text = "" };
	enum ob_err err = OB_ERR_NONE;

	*use = (struct obk_rqa_gpu_use){ .gpu = control ? control->gpu : NULL,
		.own = !(control && control->gpu) };
	if (use->own) {
		pthread_mutex_lock(&device_lock);
		err = device_open(&fault);
		if (err != OB_ERR_NONE) {
			pthread_mutex_unlock(&device_lock);
			return obk_rqa_fail(ret_error, OBK_RQA_UNSUPPORTED, 0, 0,
				"there is no GPU to count on: %s; ask for device cpu", fault.text);
		}
		use->gpu = device;
		use->opened = devices;
	}
	err = obk_gpu_enter(use->gpu, &fault);
	if (err == OB_ERR_NONE) {
		err = obk_gpu_load(use->gpu, &image, &use->functions, &fault);
		if (err == OB_ERR_NONE)
			return OBK_RQA_OK;
		obk_gpu_leave(use->gpu);
	}
	if (use->own)
		pthread_mutex_unlock(&device_lock);
	return err == OB_ERR_UNSUPPORTED || err == OB_ERR_IMAGE_NO_ENTRY
		? obk_rqa_fail(ret_error, OBK_RQA_UNSUPPORTED, 0, 0,
			  "the GPU has no code to count with: %s; ask for device cpu", fault.text)
		: obk_rqa_gpu_fail(ret_error, err, &fault);
}

void obk_rqa_gpu_end(struct obk_rqa_gpu_use *use)
{
	obk_gpu_leave(use->gpu);
	if (use->own)
		pthread_mutex_unlock(&device_lock);
}

bool obk_rqa_gpu_wanted(const struct obk_rqa_control *control, uint64_t cells)
{
	int kind = control ? control->device : OBK_RQA_DEVICE_AUTO;
	struct obk_fault fault;
	bool good;

	if (kind != OBK_RQA_DEVICE_AUTO)
		return kind == OBK_RQA_DEVICE_CUDA;
	if (cells < AUTO_CELLS)
		return false;
	if (control && control->gpu)
		return true;
	pthread_mutex_lock(&device_lock);
	good = device_open(&fault) == OB_ERR_NONE &&
		!strstr(obk_gpu_info(device)->name, "software device");
	pthread_mutex_unlock(&device_lock);
	return good;
}
