/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "server/common/sandbox.h"
#include "server/supervisor/admit.h"
#include "server/supervisor/audit.h"
#include "server/supervisor/lease.h"
#include "server/supervisor/listener.h"
#include "server/supervisor/member.h"
#include "server/supervisor/metrics.h"
#include "server/supervisor/notify.h"
#include "server/supervisor/pending.h"
#include "server/supervisor/pool.h"
#include "server/supervisor/sense.h"
#include "transport/tls.h"
#include "transport/token.h"

#define PROBE_TIMEOUT_MS 30000

static void check_done(struct obs_super *super)
{
	/* The listeners stay open while sessions drain: their clients may still have to join. */
	if (!super->draining || super->done || super->n_procs > 0)
		return;
	super->done = true;
	obs_admit_stop(super);
	obs_listener_close_all(super);
	obs_pending_close_all(super);
	obs_metrics_close(super);
	obs_member_stop(super);
	obs_sense_stop(super);
	uv_close((uv_handle_t *)&super->status, NULL);
	uv_close((uv_handle_t *)&super->retry, NULL);
	uv_close((uv_handle_t *)&super->drain, NULL);
	uv_close((uv_handle_t *)&super->term, NULL);
	uv_close((uv_handle_t *)&super->intr, NULL);
}

static void start_failed(struct obs_super *super, const char *why)
{
	obs_pending_refuse_waiting(super, OB_ERR_DRIVER, why);
}

void obs_super_listen(struct obs_super *super)
{
	super->worker_ready = obs_pending_serve_waiting;
	super->start_failed = start_failed;
	super->part_gone = check_done;
}

static void drain_over(uv_timer_t *timer)
{
	struct obs_super *super = timer->data;

	ob_warn("shutting down: %zu sessions did not end in time and are ended", super->n_busy);
	super->killing = true;
	obs_pool_kill(super, true);
}

static void told_to_stop(uv_signal_t *signal, int number)
{
	struct obs_super *super = signal->data;

	(void)number;
	if (super->draining) {
		super->killing = true;
		obs_pool_kill(super, true);
		return;
	}
	super->draining = true;
	obs_notify("STOPPING=1");
	obs_lease_changed(super);
	ob_info("shutting down: waiting for %zu sessions to end", super->n_busy);
	obs_pending_refuse_waiting(super, OB_ERR_REFUSED, "the server is shutting down");
	uv_timer_start(
		&super->drain, drain_over, (uint64_t)super->options->drain_timeout_s * 1000, 0);
	obs_pool_kill(super, false);
	check_done(super);
}

/* Waits for the child, but not for longer than PROBE_TIMEOUT_MS: then kills it. */
static enum ob_err probe_wait(pid_t pid, struct ob_cause *ret_cause)
{
	uint64_t deadline = ob_clock_ns() + PROBE_TIMEOUT_MS * OB_MS;
	int status = -1;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (ob_clock_ns() > deadline) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return ob_cause_set(ret_cause, OB_ERR_TIMEOUT,
				"it did not start within %u s", PROBE_TIMEOUT_MS / 1000);
		}
		usleep(2000);
	}
	if (WIFSIGNALED(status))
		return ob_cause_set(ret_cause, OB_ERR_DRIVER, "it ended by signal %d (%s)",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) != 0)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER, "its test program ended with %d",
			WEXITSTATUS(status));
	return OB_ERR_NONE;
}

/*
 * Initialises the driver in a child process: a broken driver may crash, which must not end the
 * server. ret_cause: the child's last line of output, or how it ended.
 */
static enum ob_err probe(struct obs_super *super, const char *driver, struct ob_cause *ret_cause)
{
	char said[OB_CAUSE_TEXT];
	enum ob_err err;
	int ends[2];
	pid_t pid;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return ob_cause_set_system(
			ret_cause, OB_ERR_IO, errno, "no process could be started to try it");
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		execl(super->self, super->self, "--probe", "--driver", driver, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	err = pid > 0 ? probe_wait(pid, ret_cause)
		      : ob_cause_set_system(ret_cause, OB_ERR_IO, errno,
				"no process could be started to try it");
	/* a process that the driver started may hold the other end */
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	n = err ? read(ends[0], said, sizeof said - 1) : 0;
	if (n > 0) {
		said[n] = '\0';
		said[strcspn(said, "\n")] = '\0';
		ob_cause_set(ret_cause, err, "%s", said);
	}
	close(ends[0]);
	return err;
}

/* Chooses the driver for workers. OB_ERR_DRIVER: none can be used. */
static enum ob_err driver_choose(struct obs_super *super, struct ob_cause *ret_cause)
{
	const char *asked = super->options->driver;
	bool automatic = strcmp(asked, "auto") == 0;
	struct ob_cause cause;

	super->driver = automatic ? OBS_DRIVER_GPU : asked;
	if (strcmp(asked, "null") == 0) {
		ob_info("driver: null: it answers everything and computes nothing; it is for "
			"measuring and for tests");
		return OB_ERR_NONE;
	}
	if (!probe(super, super->driver, &cause)) {
		ob_info("driver: %s%s", automatic ? OBS_DRIVER_SYSTEM : super->driver,
			strcmp(asked, OBS_DRIVER_DRYRUN) == 0
				? ": it keeps memory and copies, and executes no kernel: all "
				  "results of kernels are wrong"
				: "");
		return OB_ERR_NONE;
	}
	if (!automatic)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"--driver %.100s cannot be used: %s%s", asked, cause.text,
			strcmp(asked, OBS_DRIVER_GPU) == 0
				? ". Install NVIDIA's driver ('nvidia-smi' must list the GPU), or "
				  "use --driver soft for kernels on the CPU"
				: "");
	super->driver = "soft";
	ob_warn("driver: soft: no GPU can be used (%s): kernels run on this machine's CPU, many "
		"times slower. --driver gpu makes that an error, --driver soft "
		"asks for it",
		cause.text);
	if (!probe(super, super->driver, &cause))
		return OB_ERR_NONE;
	return ob_cause_set(ret_cause, OB_ERR_DRIVER,
		"the software device cannot be used either: %s", cause.text);
}

static void more_descriptors(struct obs_super *super)
{
	struct rlimit limit = { 0 };

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	/* Connections and workers need the rest. */
	super->broker.most = (uint32_t)ob_max(ob_min(limit.rlim_cur / 4, OBS_BROKER_MAX), 1);
}

/*
 * Checks the files that the admission process will read, so that errors are reported at the start.
 */
static enum ob_err files_read(const struct obs_options *options, struct ob_cause *ret_cause)
{
	struct obt_tokens tokens;
	enum ob_err err;

	if (options->tls_cert) {
		struct obt_tls_server *server = obt_tls_server_new(
			options->tls_cert, options->tls_key, options->tls_client_ca, ret_cause);

		if (!server)
			return ret_cause->code;
		obt_tls_server_free(server);
	}
	if (options->tokens) {
		err = obt_tokens_read(options->tokens, &tokens, ret_cause);
		if (err)
			return err;
		obt_tokens_fini(&tokens);
	}
	return OB_ERR_NONE;
}

static void complain(const struct ob_cause *cause)
{
	fprintf(stderr, "outboard-server: %s\n", cause->text);
}

/*
 * In a child process: the TLS key must never be in the memory of a process that a worker might
 * read.
 */
static bool files_check(const struct obs_options *options)
{
	struct ob_cause cause;
	int status = -1;
	pid_t pid;

	if (!options->tls_cert && !options->tokens)
		return true;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		if (!files_read(options, &cause))
			_exit(0);
		complain(&cause);
		_exit(1);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static enum ob_err addresses_open(
	struct obs_super *super, struct obs_inherited *inherited, struct ob_cause *ret_cause)
{
	const struct obs_options *options = super->options;
	enum ob_err err = OB_ERR_NONE;

	for (size_t i = 0; i < options->listen.n && !err; i++)
		err = obs_listener_open(super, inherited, options->listen.list[i], ret_cause);
	if (!err)
		err = obs_inherited_end(inherited, ret_cause);
	if (!err && options->metrics)
		err = obs_metrics_open(super, options->metrics, ret_cause);
	return err;
}

static int super_start(struct obs_super *super)
{
	ssize_t n = readlink("/proc/self/exe", super->self, sizeof super->self - 1);
	struct obs_inherited inherited;
	struct ob_cause cause;

	if (n <= 0) {
		fprintf(stderr,
			"outboard-server: cannot find its own program file: is /proc mounted?\n");
		return 1;
	}
	if (obs_inherited_take(&inherited, &cause)) {
		complain(&cause);
		return 1;
	}
	super->since_ns = ob_clock_ns();
	super->status.data = super->retry.data = super->drain.data = super->term.data =
		super->intr.data = super;
	if (uv_loop_init(&super->loop) != 0)
		return 1;
	uv_timer_init(&super->loop, &super->retry);
	uv_timer_init(&super->loop, &super->drain);
	uv_timer_init(&super->loop, &super->status);
	uv_signal_init(&super->loop, &super->term);
	uv_signal_init(&super->loop, &super->intr);
	signal(SIGPIPE, SIG_IGN);
	more_descriptors(super);
	if (!files_check(super->options))
		return 1;
	if (obs_audit_open(super->options->audit, super->options->audit_size,
		    super->options->audit_files, &cause) ||
		obs_sandbox_prepare(&super->options->sandbox, super->options->cache, &cause)) {
		complain(&cause);
		return 1;
	}
	obs_cache_open_for(&super->cache, super->options->cache,
		ob_opt_on(OB_OPT_CACHE) ? super->options->upload_cache : 0,
		super->options->sandbox.uid);
	obs_cache_sweep(&super->cache);
	if (driver_choose(super, &cause) || addresses_open(super, &inherited, &cause)) {
		complain(&cause);
		return 1;
	}
	uv_signal_start(&super->term, told_to_stop, SIGTERM);
	uv_signal_start(&super->intr, told_to_stop, SIGINT);
	if (obs_member_start(super, &cause)) {
		complain(&cause);
		return 1;
	}
	if (!obs_admit_start(super))
		return 1;
	obs_sense_start(super);
	obs_pool_refill(super);
	if (super->retrying) /* the first worker could not be started; the reason was logged */
		return 1;
	for (size_t i = 0; i < super->n_listeners; i++)
		fprintf(stderr, "outboard-server: listening on %s\n", super->listeners[i].url);
	obs_notify("READY=1");
	return 0;
}

int obs_super_run(struct obs_options *options)
{
	static struct obs_super super;
	int status;

	super.options = options;
	obs_super_listen(&super);
	status = super_start(&super);
	if (status) {
		obs_listener_close_all(&super);
		return status;
	}
	uv_run(&super.loop, UV_RUN_DEFAULT);
	uv_loop_close(&super.loop);
	obs_audit_close();
	return 0;
}
