/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Files that an operator writes: the server's configuration, read through the options that it sets,
 * and the token file. Tokens that were read must be the same after writing and reading them again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "server/common/config.h"
#include "server/common/options.h"
#include "tests/fuzz/fuzz.h"
#include "transport/token.h"

static char path[64], copy_path[] = "/tmp/outboard-fuzz-XXXXXX";
static int file = -1;
static FILE *nothing;

static void copy_remove(void)
{
	unlink(copy_path);
}

static void start(void)
{
	int copy = mkstemp(copy_path);

	file = memfd_create("fuzz", MFD_CLOEXEC);
	if (file < 0 || copy < 0)
		exit(1);
	close(copy);
	atexit(copy_remove);
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	ob_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
	nothing = fopen("/dev/null", "we");
	if (!nothing)
		exit(1);
}

/* Handles a key and its value like an option of the command line, as the configuration does. */
static enum ob_err set(
	void *user, const struct ob_option *key, char *value, struct ob_cause *ret_cause)
{
	char program[] = "outboard-server", option[128], *argv[] = { program, option, value, NULL };
	static struct obs_options options;

	(void)user;
	(void)ret_cause;
	snprintf(option, sizeof option, "--%s", key->name);
	obs_options_parse(&options, 3, argv);
	free(value);
	return OB_ERR_NONE;
}

static const char *const names[] = { "listen", "driver", "tls-cert", "tls-key", "tls-client-ca",
	"tokens", "audit", "cache", "upload-cache", "warm", "refill", "max-sessions",
	"hello-timeout", "drain-timeout", "grace", "metrics", "max-memory", "max-host-memory",
	"max-outstanding", "max-handles", "max-modules", "max-lanes", "max-stripes", "idle-timeout",
	"share", "max-priority", "on-excess", "measure", NULL };

/*
 * Makes a configuration line from each line of the input: the first byte chooses a known key, the
 * others are its value.
 */
static void keys_put(const uint8_t *data, size_t size)
{
	while (size) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t n = end ? (size_t)(end - data) + 1 : size;

		if (dprintf(file, "%s = ", names[data[0] % (ob_count(names) - 1)]) < 0 ||
			write(file, data + 1, n - 1) != (ssize_t)n - 1)
			return;
		data += n;
		size -= n;
	}
}

static void configuration(void)
{
	FILE *real = stderr;

	stderr = nothing; /* every error is printed to it */
	obs_config_read(path, set, NULL, obs_option_table);
	stderr = real;
}

static void tokens(void)
{
	struct obt_tokens all = { 0 }, again = { 0 };
	const struct obt_token *found;
	struct ob_cause cause = { .code = OB_ERR_NONE };

	if (obt_tokens_read(path, &all, &cause)) {
		if (!cause.text[0])
			abort(); /* a refusal must have a reason */
		return;
	}
	if (all.n > OBT_TOKENS_MAX)
		abort();
	obt_tokens_check(&all, "ob1-00000000-0000", 1, &found, &cause);
	if (!obt_tokens_write(copy_path, &all, &cause)) {
		if (obt_tokens_read(copy_path, &again, &cause) || again.n != all.n)
			abort();
		for (size_t i = 0; i < all.n; i++)
			if (strcmp(all.list[i].id, again.list[i].id) ||
				memcmp(all.list[i].hash, again.list[i].hash, OBT_SHA256_BYTES) ||
				all.list[i].scope != again.list[i].scope ||
				all.list[i].expiry != again.list[i].expiry)
				abort();
		obt_tokens_fini(&again);
	}
	obt_tokens_fini(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (file < 0)
		start();
	if (size < 1 || ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0)
		return 0;
	if (data[0] % 4 == 3)
		keys_put(data + 1, size - 1);
	else if (write(file, data + 1, size - 1) != (ssize_t)size - 1)
		return 0;
	if (data[0] & 1)
		configuration();
	else
		tokens();
	return 0;
}
