/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/login_file.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "loadbalancer/pool.h"
#include "transport/pin.h"
#include "transport/url.h"

#define SECTION_GLOBAL ""

bool obx_logins_path(char ret_path[OBX_LOGIN_PATH_MAX])
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n = -1;

	/* a relative path is to be ignored: XDG Base Directory Specification */
	if (config && config[0] == '/')
		n = snprintf(ret_path, OBX_LOGIN_PATH_MAX, "%s/outboard/pool.ini", config);
	else if (home && home[0] == '/')
		n = snprintf(ret_path, OBX_LOGIN_PATH_MAX, "%s/.config/outboard/pool.ini", home);
	return n > 0 && n < (int)OBX_LOGIN_PATH_MAX;
}

/* ---- one pool ---- */

bool obx_login_name_valid(const char *name)
{
	size_t n =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");

	return n && !name[n] && n < OBX_LOGIN_NAME_MAX;
}

/* What can stand in a line of the file: no blanks, control characters or beginnings of a comment. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~' || *text == ';' || *text == '#')
			return false;
	return true;
}

enum ob_err obx_login_add(
	struct obx_login *login, const char *url, const char *pin, struct ob_cause *ret_cause)
{
	struct obx_login_balancer *next = &login->balancers[login->n];
	uint8_t bytes[OBT_PIN_BYTES];
	struct obt_url parsed;
	enum ob_err err = obl_pool_check(url, ret_cause);

	if (err)
		return err;
	if (login->n == OBL_BALANCERS_MAX || strlen(url) + 7 > sizeof next->url || !is_plain(url) ||
		strpbrk(url, ",+=?"))
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"'%.200s' cannot be kept: %u balancers are the most, with addresses of at "
			"most %u characters and without , + = ? # ; and blanks",
			url, OBL_BALANCERS_MAX, OBX_LOGIN_URL_MAX - 7);
	obt_url_parse(url, &parsed, NULL);
	snprintf(next->url, sizeof next->url, "%s", url);
	/* the balancers' port is not the one that other addresses have by default */
	if (parsed.scheme != OBT_UNIX &&
		!strchr(strrchr(url, ']') ? strrchr(url, ']') : url + 6, ':'))
		snprintf(next->url, sizeof next->url, "%.*s:%u", (int)sizeof next->url - 7, url,
			OBP_POOL_PORT);
	next->pin[0] = '\0';
	if (pin && *pin) {
		if (parsed.scheme != OBT_TLS || !obt_pin_parse(pin, bytes))
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"a pin is 64 hexadecimal digits, as 'outboard cert' prints them, "
				"and for a tls:// address");
		ob_text_hex(bytes, sizeof bytes, next->pin);
	}
	login->n++;
	return OB_ERR_NONE;
}

/* One "URL[?pin=HEX]" of a string. */
static enum ob_err piece_parse(struct obx_login *login, char *piece, struct ob_cause *ret_cause)
{
	char *question = strchr(piece, '?');
	const char *pin = NULL;

	if (question) {
		*question = '\0';
		pin = question + 1;
		if (strncmp(pin, "pin=", 4) != 0)
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"after the '?' of an address comes pin=, then 64 hexadecimal "
				"digits");
		pin += 4;
	}
	return obx_login_add(login, piece, pin, ret_cause);
}

enum ob_err obx_login_parse(const char *text, struct obx_login *ret, struct ob_cause *ret_cause)
{
	char copy[OBX_LOGIN_TEXT_MAX], *token, *rest = copy, *piece;
	enum ob_err err = OB_ERR_NONE;

	memset(ret, 0, sizeof *ret);
	if (strncmp(text, OBX_LOGIN_PREFIX, sizeof OBX_LOGIN_PREFIX - 1) == 0)
		text += sizeof OBX_LOGIN_PREFIX - 1;
	if (strlen(text) >= sizeof copy)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT, "it is too long");
	snprintf(copy, sizeof copy, "%s", text);
	token = strchr(copy, '#');
	if (token)
		*token++ = '\0';
	if (token && (strlen(token) >= sizeof ret->token || !is_plain(token)))
		err = ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"what follows '#' is no token: it begins with obt_ and has 77 characters");
	else if (token)
		snprintf(ret->token, sizeof ret->token, "%s", token);
	while (!err && (piece = strsep(&rest, ",")) != NULL)
		err = piece_parse(ret, piece, ret_cause);
	explicit_bzero(copy, sizeof copy);
	if (err)
		explicit_bzero(ret, sizeof *ret);
	return err;
}

void obx_login_print(const struct obx_login *login, char ret_text[OBX_LOGIN_TEXT_MAX])
{
	size_t at = (size_t)snprintf(ret_text, OBX_LOGIN_TEXT_MAX, OBX_LOGIN_PREFIX);

	for (uint32_t i = 0; i < login->n; i++)
		at += (size_t)snprintf(ret_text + at, OBX_LOGIN_TEXT_MAX - at, "%s%s%s%s",
			i ? "," : "", login->balancers[i].url,
			login->balancers[i].pin[0] ? "?pin=" : "", login->balancers[i].pin);
	if (login->token[0])
		snprintf(ret_text + at, OBX_LOGIN_TEXT_MAX - at, "#%s", login->token);
}

void obx_login_list(const struct obx_login *login, char ret_text[OBX_LOGIN_LIST_MAX])
{
	size_t at = 0;

	ret_text[0] = '\0';
	for (uint32_t i = 0; i < login->n; i++)
		at += (size_t)snprintf(ret_text + at, OBX_LOGIN_LIST_MAX - at, "%s%s", i ? "," : "",
			login->balancers[i].url);
}

void obx_login_pins(const struct obx_login *login, char ret_text[OBX_LOGIN_PINS_MAX])
{
	size_t at = 0;

	ret_text[0] = '\0';
	for (uint32_t i = 0; i < login->n; i++)
		if (login->balancers[i].pin[0])
			at += (size_t)snprintf(ret_text + at, OBX_LOGIN_PINS_MAX - at, "%s%s=%s",
				at ? "," : "", login->balancers[i].url, login->balancers[i].pin);
}

struct obx_login *obx_login_find(struct obx_logins *logins, const char *name)
{
	if (!name)
		name = logins->chosen;
	for (uint32_t i = 0; i < logins->n; i++)
		if (strcmp(logins->list[i].name, name) == 0)
			return &logins->list[i];
	return NULL;
}

void obx_logins_wipe(struct obx_logins *logins)
{
	explicit_bzero(logins, sizeof *logins);
}

/* ---- reading ---- */

struct reading {
	struct obx_logins *logins;
	struct ob_cause cause; /* the first error */
};

static struct obx_login *section_find(struct obx_logins *logins, const char *name)
{
	struct obx_login *login = obx_login_find(logins, name);

	if (login || logins->n == OBX_LOGINS_MAX || !obx_login_name_valid(name))
		return login;
	login = &logins->list[logins->n++];
	snprintf(login->name, sizeof login->name, "%s", name);
	return login;
}

/* A pin belongs to the balancer before it. */
static enum ob_err pin_set(struct obx_login *login, const char *value, struct ob_cause *ret_cause)
{
	char url[OBX_LOGIN_URL_MAX];

	if (!login->n || login->balancers[login->n - 1].pin[0])
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"a pin must follow the balancer that it is for");
	login->n--;
	memcpy(url, login->balancers[login->n].url, sizeof url);
	return obx_login_add(login, url, value, ret_cause);
}

static int pair(void *user, const char *section, const char *key, const char *value)
{
	struct reading *r = user;
	struct obx_login *login = *section ? section_find(r->logins, section) : NULL;
	char text[OBX_LOGIN_URL_MAX];

	if (r->cause.code)
		return 1;
	snprintf(text, sizeof text, "%s", value);
	if (strlen(value) >= sizeof text)
		ob_cause_set(&r->cause, OB_ERR_LIMIT, "the value of '%.40s' is too long", key);
	else if (!*section && strcmp(key, "default") == 0)
		snprintf(r->logins->chosen, sizeof r->logins->chosen, "%.32s", value);
	else if (!login)
		ob_cause_set(&r->cause, OB_ERR_ARGUMENT, "[%.40s], key '%.40s'", section, key);
	else if (strcmp(key, "balancer") == 0)
		obx_login_add(login, text, NULL, &r->cause);
	else if (strcmp(key, "pin") == 0)
		pin_set(login, text, &r->cause);
	else if (strcmp(key, "token") == 0 && strlen(text) < sizeof login->token && is_plain(text))
		snprintf(login->token, sizeof login->token, "%.79s", text);
	else
		ob_cause_set(&r->cause, OB_ERR_ARGUMENT, "[%.40s], key '%.40s'", section, key);
	explicit_bzero(text, sizeof text);
	return 1;
}

/* What the file's owner and mode must be; it holds tokens. */
static enum ob_err file_check(int fd, const char *path, struct ob_cause *ret_cause)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.400s", path);
	if (!S_ISREG(st.st_mode))
		return ob_cause_set(
			ret_cause, OB_ERR_DENIED, "%.400s is not a file: remove it", path);
	if (st.st_uid != geteuid())
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"%.400s belongs to another user (number %u), so it is not read: remove it, "
			"and log in again",
			path, (unsigned)st.st_uid);
	if (st.st_mode & 077)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"%.400s holds tokens, and others may read or change it (mode %03o): run "
			"'chmod 600 %.400s', and if others use this machine ask for a new token",
			path, (unsigned)st.st_mode & 0777, path);
	return OB_ERR_NONE;
}

static enum ob_err text_read(
	FILE *file, const char *path, struct obx_logins *ret, struct ob_cause *ret_cause)
{
	struct reading r = { .logins = ret };
	int line = ini_parse_file(file, pair, &r);

	if (line > 0)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"%.400s, line %d: it is neither 'key = value' nor '[name]'", path, line);
	if (line < 0 || ferror(file))
		return ob_cause_set(ret_cause, OB_ERR_IO, "%.400s: it could not be read", path);
	if (r.cause.code)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"%.400s: %.400s: 'outboard login' writes this file; remove it and log in "
			"again",
			path, r.cause.text);
	for (uint32_t i = 0; i < ret->n; i++)
		if (!ret->list[i].n)
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"%.400s: [%s] names no balancer: log in again", path,
				ret->list[i].name);
	return OB_ERR_NONE;
}

enum ob_err obx_logins_read(struct obx_logins *ret, struct ob_cause *ret_cause)
{
	char path[OBX_LOGIN_PATH_MAX];
	enum ob_err err;
	FILE *file;
	int fd;

	memset(ret, 0, sizeof *ret);
	if (!obx_logins_path(path))
		return ob_cause_set(
			ret_cause, OB_ERR_NOT_FOUND, "neither XDG_CONFIG_HOME nor HOME is set");
	/* O_NONBLOCK: a pipe of that name must not block */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return ob_cause_set_system(ret_cause,
			errno == ENOENT || errno == ENOTDIR ? OB_ERR_NOT_FOUND : OB_ERR_IO, errno,
			"%.400s", path);
	err = file_check(fd, path, ret_cause);
	file = err ? NULL : fdopen(fd, "r");
	if (!file) {
		close(fd);
		return err ? err : ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	}
	err = text_read(file, path, ret, ret_cause);
	fclose(file);
	if (err)
		obx_logins_wipe(ret);
	return err;
}

/* ---- writing ---- */

static bool text_write(FILE *file, const struct obx_logins *logins)
{
	bool ok = fprintf(file,
			  "; written by 'outboard login'; it holds tokens: keep it to "
			  "yourself\ndefault = %s\n",
			  logins->chosen) > 0;

	for (uint32_t i = 0; ok && i < logins->n; i++) {
		const struct obx_login *login = &logins->list[i];

		ok = fprintf(file, "\n[%s]\n", login->name) > 0;
		for (uint32_t b = 0; ok && b < login->n; b++) {
			ok = fprintf(file, "balancer = %s\n", login->balancers[b].url) > 0;
			if (ok && login->balancers[b].pin[0])
				ok = fprintf(file, "pin = %s\n", login->balancers[b].pin) > 0;
		}
		if (ok && login->token[0])
			ok = fputs("token = ", file) >= 0 && fputs(login->token, file) >= 0 &&
				fputc('\n', file) != EOF;
	}
	return ok;
}

/* Makes the two folders above the file. */
static void folders_make(const char *path)
{
	char folder[OBX_LOGIN_PATH_MAX];
	char *slash;

	snprintf(folder, sizeof folder, "%s", path);
	slash = strrchr(folder, '/');
	*slash = '\0';
	if (access(folder, F_OK) == 0)
		return;
	slash = strrchr(folder, '/');
	if (slash && slash != folder) {
		*slash = '\0';
		mkdir(folder, 0700);
		*slash = '/';
	}
	mkdir(folder, 0700);
}

enum ob_err obx_logins_write(const struct obx_logins *logins, struct ob_cause *ret_cause)
{
	char path[OBX_LOGIN_PATH_MAX], temporary[OBX_LOGIN_PATH_MAX + 16];
	FILE *file = NULL;
	bool ok;
	int fd;

	if (!obx_logins_path(path))
		return ob_cause_set(ret_cause, OB_ERR_IO,
			"there is no place for the file: set HOME or XDG_CONFIG_HOME");
	folders_make(path);
	snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		file = fdopen(fd, "w");
	ok = file && text_write(file, logins) && fflush(file) == 0 && fsync(fd) == 0 &&
		rename(temporary, path) == 0;
	if (!ok) {
		ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.400s", path);
		if (fd >= 0)
			unlink(temporary);
	}
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	return ok ? OB_ERR_NONE : OB_ERR_IO;
}
