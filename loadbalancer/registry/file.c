/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/file_format.h"
#include "loadbalancer/registry/local.h"

#define RETRY_MS 1000u /* between attempts to write the file */

struct file {
	struct obl_hub hub; /* must be first */
	struct obl_local *local;
	uv_loop_t *loop;
	char *path;
	int lock;
	uv_timer_t retry;
	uv_work_t work;
	/*
	 * What the file has, and what is being written. The thread of the pool reads the second
	 * and writes save_err and save_cause while `saving` is true.
	 */
	struct obl_table saved, next;
	uint64_t next_number; /* of the last change in `next` */
	bool saving, dirty, failed, local_closed;
	enum ob_err save_err;
	struct ob_cause save_cause;
	struct ob_cause cause; /* of `failed` */
	void (*closed)(void *user);
	void *closed_user;
};

/* ---- saving ---- */

static void finish(struct file *file);

static void save_work(uv_work_t *work)
{
	struct file *file = work->data;

	file->save_err = obl_file_save(file->path, &file->next, &file->save_cause);
}

static void save_done(uv_work_t *work, int status);

static void save_start(struct file *file)
{
	file->dirty = false;
	file->saving = true;
	file->next_number = file->hub.made;
	obl_table_copy(&file->next, &file->hub.table);
	file->work.data = file;
	obl_alloc_check(
		uv_queue_work(file->loop, &file->work, save_work, save_done) == 0 ? file : NULL);
}

static void retry_save(uv_timer_t *timer)
{
	struct file *file = timer->data;

	if (!file->saving)
		save_start(file);
}

static void save_succeeded(struct file *file)
{
	obl_table_fini(&file->saved);
	file->saved = file->next;
	file->next = (struct obl_table){ 0 };
	obl_hub_saved(&file->hub, file->next_number);
	if (file->failed && !file->local_closed)
		obl_local_set_usable(file->local, true, NULL);
	file->failed = false;
}

static void save_failed(struct file *file)
{
	file->cause = file->save_cause;
	obl_table_fini(&file->next);
	obl_hub_restore(&file->hub, &file->saved, &file->cause);
	file->dirty = false;
	if (!file->failed)
		ob_error("%s", file->cause.text);
	if (!file->failed && !file->local_closed)
		obl_local_set_usable(file->local, false, &file->cause);
	file->failed = true;
	if (!file->local_closed)
		uv_timer_start(&file->retry, retry_save, RETRY_MS, 0);
}

static void save_done(uv_work_t *work, int status)
{
	struct file *file = work->data;

	(void)status; /* nobody cancels the work */
	file->saving = false;
	if (file->save_err == OB_ERR_NONE)
		save_succeeded(file);
	else
		save_failed(file);
	if (file->dirty && !file->failed)
		save_start(file);
	else if (file->local_closed)
		finish(file);
}

static void store_changed(void *user)
{
	struct file *file = user;

	file->dirty = true;
	if (!file->saving && !file->failed)
		save_start(file);
}

/* ---- closing ---- */

static void file_free(struct file *file)
{
	obl_hub_fini(&file->hub);
	obl_table_fini(&file->saved);
	if (file->lock >= 0)
		close(file->lock);
	free(file->path);
	free(file);
}

static void retry_closed(uv_handle_t *handle)
{
	struct file *file = handle->data;
	void (*closed)(void *user) = file->closed;
	void *user = file->closed_user;

	file_free(file);
	closed(user);
}

/* The handle is closed and nothing is being saved: release the rest. */
static void finish(struct file *file)
{
	uv_close((uv_handle_t *)&file->retry, retry_closed);
}

static void local_closed(void *user)
{
	struct file *file = user;

	file->local_closed = true;
	if (!file->saving)
		finish(file);
}

static void file_close(struct obl_registry *registry, void (*closed)(void *user), void *user)
{
	struct file *file = (struct file *)obl_local_hub((struct obl_local *)registry);

	file->closed = closed;
	file->closed_user = user;
	uv_timer_stop(&file->retry);
	obl_local_close(registry, local_closed, file);
}

static const struct obl_registry_ops file_ops = {
	.name = "static",
	.txn = obl_local_txn,
	.range = obl_local_range,
	.leads = obl_local_leads,
	.close = file_close,
};

/* ---- opening ---- */

/* The process that has the lock, for a message; 0: unknown. */
static int lock_owner(int fd)
{
	char text[16] = "";

	if (pread(fd, text, sizeof text - 1, 0) < 0)
		return 0;
	return (int)strtol(text, NULL, 10);
}

static enum ob_err file_lock(struct file *file, struct ob_cause *ret_cause)
{
	char path[4096], text[16];
	int n, locked;

	if ((size_t)snprintf(path, sizeof path, "%s.lock", file->path) >= sizeof path)
		return ob_cause_set(
			ret_cause, OB_ERR_URL, "the path of the registry's file is too long");
	file->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file->lock < 0)
		return ob_cause_set_system(
			ret_cause, OB_ERR_IO, errno, "cannot open the registry's lock %s", path);
	locked = flock(file->lock, LOCK_EX | LOCK_NB);
	if (locked != 0 && errno == EWOULDBLOCK)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"another balancer (process %d) uses the registry's file %s: a file is for "
			"one "
			"balancer, several need an etcd",
			lock_owner(file->lock), file->path);
	if (locked != 0)
		return ob_cause_set_system(ret_cause, OB_ERR_IO, errno,
			"cannot lock %s; put the registry's file on a local file system", path);
	n = snprintf(text, sizeof text, "%d\n", (int)getpid());
	if (ftruncate(file->lock, 0) != 0 || pwrite(file->lock, text, (size_t)n, 0) != n)
		return ob_cause_set_system(
			ret_cause, OB_ERR_IO, errno, "cannot write the registry's lock %s", path);
	return OB_ERR_NONE;
}

enum ob_err obl_file_open(uv_loop_t *loop, const char *path, const struct obl_watcher *watcher,
	struct obl_registry **ret, struct ob_cause *ret_cause)
{
	struct file *file = obl_alloc(1, sizeof *file);
	struct obl_store store = { .user = file, .changed = store_changed };
	enum ob_err err;

	file->loop = loop;
	file->lock = -1;
	file->path = obl_copy_text(path);
	obl_hub_init(&file->hub, &store);
	err = *path ? file_lock(file, ret_cause)
		    : ob_cause_set(ret_cause, OB_ERR_URL,
			      "\"static:\" names no file: use static:/path/of/file");
	if (err == OB_ERR_NONE)
		err = obl_file_load(path, &file->hub.table, ret_cause);
	if (err != OB_ERR_NONE) {
		file_free(file);
		return err;
	}
	obl_table_copy(&file->saved, &file->hub.table);
	uv_timer_init(loop, &file->retry);
	file->retry.data = file;
	file->local = obl_local_new(loop, &file->hub, &file_ops, watcher);
	*ret = (struct obl_registry *)file->local;
	return OB_ERR_NONE;
}
