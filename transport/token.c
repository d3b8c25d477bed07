/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/token.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "transport/path.h"

#define SECRET_BYTES 32u
#define PREFIX       "obt_"
#define ID_DIGITS    (OBT_TOKEN_ID - 1)
#define LINE_BYTES   1024u
#define LOCK_LOOK_NS (20 * OB_MS)

static const char *const scope_names[] = { [OBT_SCOPE_USE] = "use",
	[OBT_SCOPE_LOOK] = "look",
	[OBT_SCOPE_SERVE] = "serve",
	[OBT_SCOPE_ADMIN] = "admin" };

const char *obt_scope_name(enum obt_scope scope)
{
	return scope_names[scope];
}

bool obt_scope_find(const char *name, enum obt_scope *ret)
{
	for (unsigned i = 0; i < sizeof scope_names / sizeof scope_names[0]; i++)
		if (strcmp(name, scope_names[i]) == 0) {
			*ret = (enum obt_scope)i;
			return true;
		}
	return false;
}

static bool hex_parse(const char *text, uint8_t *ret, size_t bytes)
{
	for (size_t i = 0; i < 2 * bytes; i++) {
		unsigned digit;

		if (text[i] >= '0' && text[i] <= '9')
			digit = (unsigned)(text[i] - '0');
		else if (text[i] >= 'a' && text[i] <= 'f')
			digit = (unsigned)(text[i] - 'a' + 10);
		else
			return false;
		ret[i / 2] = (uint8_t)(i % 2 ? ret[i / 2] | digit : digit << 4);
	}
	return true;
}

/* ---- files ---- */

static bool line_parse(const char *line, struct obt_token *ret)
{
	char hash[2 * OBT_SHA256_BYTES + 1], scope[8], expiry[24];
	uint8_t id[ID_DIGITS / 2];
	int name = 0;

	if (sscanf(line, "%8s %64s %7s %23s %n", ret->id, hash, scope, expiry, &name) != 4 || !name)
		return false;
	line += name;
	if (*line == '[') {
		size_t size = strcspn(++line, "]");
		char limits[OBT_ALLOW_TEXT];

		if (line[size] != ']' || size >= sizeof limits)
			return false;
		snprintf(limits, sizeof limits, "%.*s", (int)size, line);
		if (obt_allow_parse(limits, &ret->allow))
			return false;
		line += size + 1;
		line += strspn(line, " ");
	}
	snprintf(ret->name, sizeof ret->name, "%s", line);
	return strlen(ret->id) == ID_DIGITS && hex_parse(ret->id, id, sizeof id) &&
		strlen(hash) == 2 * OBT_SHA256_BYTES &&
		hex_parse(hash, ret->hash, sizeof ret->hash) &&
		obt_scope_find(scope, &ret->scope) &&
		ob_text_parse_number(expiry, 0, INT64_MAX, &ret->expiry);
}

static struct obt_token *append(struct obt_tokens *tokens)
{
	struct obt_token *larger;

	if (tokens->n % 64 == 0) {
		larger = realloc(tokens->list, (tokens->n + 64) * sizeof *larger);
		if (!larger)
			return NULL;
		tokens->list = larger;
	}
	tokens->list[tokens->n] = (struct obt_token){ .expiry = 0 };
	return &tokens->list[tokens->n++];
}

enum ob_err obt_tokens_read(const char *path, struct obt_tokens *ret, struct ob_cause *ret_cause)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		return obt_tokens_read_fd(fd, path, ret, ret_cause);
	if (errno != ENOENT)
		return ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.180s", path);
	*ret = (struct obt_tokens){ 0 };
	return OB_ERR_NONE;
}

static enum ob_err read_lines(
	FILE *file, const char *path, struct obt_tokens *tokens, struct ob_cause *ret_cause)
{
	char line[LINE_BYTES];
	unsigned number = 0;

	while (fgets(line, sizeof line, file)) {
		struct obt_token *token;

		number++;
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '\0' || line[0] == '#')
			continue;
		token = tokens->n < OBT_TOKENS_MAX ? append(tokens) : NULL;
		if (!token)
			return ob_cause_set(ret_cause, OB_ERR_LIMIT,
				"%.180s, line %u: too many tokens, or no memory", path, number);
		if (!line_parse(line, token))
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"%.180s, line %u: malformed line", path, number);
	}
	return OB_ERR_NONE;
}

enum ob_err obt_tokens_read_fd(
	int fd, const char *path, struct obt_tokens *ret, struct ob_cause *ret_cause)
{
	FILE *file = fdopen(fd, "r");
	struct obt_tokens tokens = { 0 };
	enum ob_err err;

	if (!file) {
		err = ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.180s", path);
		close(fd);
		return err;
	}
	err = read_lines(file, path, &tokens, ret_cause);
	fclose(file);
	if (err)
		obt_tokens_fini(&tokens);
	else
		*ret = tokens;
	return err;
}

/* ---- the file ---- */

/* Opens the file and tries to lock it once. *ret_fd -1 without an error: try again. */
static enum ob_err lock_try(const char *path, bool make, int *ret_fd, struct ob_cause *ret_cause)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (make ? O_CREAT : 0);
	struct stat opened, now;
	int fd = open(path, flags, 0600);

	*ret_fd = -1;
	if (fd < 0 || fstat(fd, &opened) != 0) {
		enum ob_err err = ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.180s", path);

		if (fd >= 0)
			close(fd);
		return err;
	}
	if (!S_ISREG(opened.st_mode)) {
		close(fd);
		return ob_cause_set(ret_cause, OB_ERR_IO,
			"%.180s is not a regular file; name the file that --tokens names", path);
	}
	/* Whoever had the lock before may have replaced the file: lock what is there now. */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && stat(path, &now) == 0 &&
		now.st_ino == opened.st_ino && now.st_dev == opened.st_dev)
		*ret_fd = fd;
	else
		close(fd);
	return OB_ERR_NONE;
}

enum ob_err obt_tokens_lock(const char *path, bool make, int *ret_fd, struct ob_cause *ret_cause)
{
	const struct timespec pause = { .tv_nsec = LOCK_LOOK_NS };
	uint64_t end = ob_clock_ns() + OBT_TOKENS_LOCK_S * OB_SECOND;
	enum ob_err err;
	int fd;

	for (;;) {
		err = lock_try(path, make, &fd, ret_cause);
		if (err)
			return err;
		if (fd >= 0)
			break;
		if (ob_clock_ns() >= end)
			return ob_cause_set(ret_cause, OB_ERR_IO,
				"%.180s: another process has locked it for %u s; it may be "
				"another 'outboard token' that hangs (fuser shows it)",
				path, OBT_TOKENS_LOCK_S);
		nanosleep(&pause, NULL);
	}
	*ret_fd = fd;
	return OB_ERR_NONE;
}

/* Gives a new file the owner, group and mode of the one that it replaces. */
static enum ob_err owner_keep(int fd, const char *path, struct ob_cause *ret_cause)
{
	struct stat old, fresh;

	if (stat(path, &old) != 0)
		return OB_ERR_NONE; /* the first one: readable by its owner only */
	if (fstat(fd, &fresh) == 0 &&
		((old.st_uid == fresh.st_uid && old.st_gid == fresh.st_gid) ||
			fchown(fd, old.st_uid, old.st_gid) == 0) &&
		fchmod(fd, old.st_mode & 0777) == 0)
		return OB_ERR_NONE;
	return ob_cause_set_system(ret_cause, OB_ERR_DENIED, errno,
		"%.180s is not changed, because its owner cannot be kept; run this as root or as "
		"the file's owner",
		path);
}

static bool tokens_print(FILE *file, const struct obt_tokens *tokens)
{
	char hash[2 * OBT_SHA256_BYTES + 1], limits[OBT_ALLOW_TEXT];
	bool ok = true;

	for (size_t i = 0; ok && i < tokens->n; i++) {
		const struct obt_token *t = &tokens->list[i];

		ob_text_hex(t->hash, sizeof t->hash, hash);
		obt_allow_print(&t->allow, limits);
		ok = fprintf(file, "%s %s %s %llu %s%s%s%s\n", t->id, hash,
			     obt_scope_name(t->scope), (unsigned long long)t->expiry,
			     limits[0] ? "[" : "", limits, limits[0] ? "] " : "", t->name) > 0;
	}
	return ok;
}

enum ob_err obt_tokens_write(
	const char *path, const struct obt_tokens *tokens, struct ob_cause *ret_cause)
{
	char temporary[PATH_MAX + 16], target[PATH_MAX];
	enum ob_err err = OB_ERR_NONE;
	FILE *file = NULL;
	int fd;

	/* A link stays one: what it names is replaced. */
	if (!realpath(path, target))
		snprintf(target, sizeof target, "%s", path);
	snprintf(temporary, sizeof temporary, "%s.%d", target, (int)getpid());
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		err = owner_keep(fd, target, ret_cause);
	if (fd >= 0 && !err)
		file = fdopen(fd, "w");
	if (!err &&
		!(file && tokens_print(file, tokens) && fflush(file) == 0 && fsync(fd) == 0 &&
			rename(temporary, target) == 0))
		err = ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.180s", path);
	if (err && fd >= 0)
		unlink(temporary);
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	return err;
}

void obt_tokens_fini(struct obt_tokens *tokens)
{
	free(tokens->list);
	*tokens = (struct obt_tokens){ 0 };
}

/* ---- tokens ---- */

/* Hashes the digits as the client sends them. */
static void secret_hash(const char *digits, uint8_t ret[OBT_SHA256_BYTES])
{
	obt_digest_sha256(digits, 2 * SECRET_BYTES, ret);
}

enum ob_err obt_tokens_add(struct obt_tokens *tokens, const char *name, enum obt_scope scope,
	uint64_t expiry, const struct obt_allow *allow, char ret_text[OBT_TOKEN_TEXT])
{
	uint8_t random[ID_DIGITS / 2 + SECRET_BYTES];
	char digits[2 * sizeof random + 1];
	struct obt_token *token;

	if (tokens->n >= OBT_TOKENS_MAX)
		return OB_ERR_LIMIT;
	if (getrandom(random, sizeof random, 0) != sizeof random)
		return OB_ERR_IO;
	token = append(tokens);
	if (!token)
		return OB_ERR_NO_MEMORY;
	ob_text_hex(random, sizeof random, digits);
	memcpy(token->id, digits, ID_DIGITS);
	token->id[ID_DIGITS] = '\0';
	secret_hash(digits + ID_DIGITS, token->hash);
	token->scope = scope;
	token->expiry = expiry;
	if (allow)
		token->allow = *allow;
	snprintf(token->name, sizeof token->name, "%s", name);
	for (char *p = token->name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	if (token->name[0] == '[')
		token->name[0] = '('; /* '[' would be read as limits */
	snprintf(ret_text, OBT_TOKEN_TEXT, PREFIX "%s_%s", token->id, digits + ID_DIGITS);
	OPENSSL_cleanse(random, sizeof random);
	OPENSSL_cleanse(digits, sizeof digits);
	return OB_ERR_NONE;
}

bool obt_tokens_remove(struct obt_tokens *tokens, const char *id)
{
	for (size_t i = 0; i < tokens->n; i++)
		if (strcmp(tokens->list[i].id, id) == 0) {
			memmove(&tokens->list[i], &tokens->list[i + 1],
				(tokens->n - i - 1) * sizeof tokens->list[0]);
			tokens->n--;
			return true;
		}
	return false;
}

enum ob_err obt_tokens_check(const struct obt_tokens *tokens, const char *text, uint64_t now,
	const struct obt_token **ret, struct ob_cause *ret_cause)
{
	const size_t secret_at = sizeof PREFIX - 1 + ID_DIGITS + 1;
	const struct obt_token *found = NULL;
	uint8_t hash[OBT_SHA256_BYTES], secret[SECRET_BYTES];

	if (strlen(text) != secret_at + 2 * SECRET_BYTES ||
		strncmp(text, PREFIX, sizeof PREFIX - 1) != 0 || text[secret_at - 1] != '_' ||
		!hex_parse(text + secret_at, secret, sizeof secret))
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"the token is not one of Outboard's: it begins with obt_ and has 77 "
			"characters");
	secret_hash(text + secret_at, hash);
	/* Compares every hash, in constant time, whatever the id. */
	for (size_t i = 0; i < tokens->n; i++)
		if (CRYPTO_memcmp(hash, tokens->list[i].hash, sizeof hash) == 0)
			found = &tokens->list[i];
	OPENSSL_cleanse(secret, sizeof secret);
	if (found && strncmp(text + sizeof PREFIX - 1, found->id, ID_DIGITS) != 0)
		found = NULL; /* right secret with a wrong id: the token was altered */
	if (!found)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"the token is unknown here, or was revoked; ask the server's operator "
			"for a new one");
	if (found->expiry && now >= found->expiry)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"the token has expired; ask the server's operator for a new one");
	*ret = found;
	return OB_ERR_NONE;
}

enum ob_err obt_token_show(const struct obt_stream *stream, char ret_text[OBT_TOKEN_TEXT])
{
	const char *text = getenv("OUTBOARD_TOKEN");

	if (text && *text && !stream->tls && !obt_path_local(stream))
		return OB_ERR_DENIED;
	snprintf(ret_text, OBT_TOKEN_TEXT, "%s", text ? text : "");
	return OB_ERR_NONE;
}
