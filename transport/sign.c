/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "transport/digest.h"

#define MARK_BYTES      4u
#define NAME_BYTES      8u
#define SIGNATURE_BYTES 64u
/* signed before the text: sets this use of the key apart from any other */
#define PURPOSE         "outboard ticket 1"
#define TEXT_MAX        4096u

_Static_assert(MARK_BYTES + NAME_BYTES + SIGNATURE_BYTES == OBT_SIGN_OVERHEAD, "what sealing adds");

static const uint8_t mark[MARK_BYTES] = { 'O', 'B', 'T', '1' };

struct obt_sign_key {
	EVP_PKEY *pair;
	uint8_t public[OBT_SIGN_KEY_BYTES];
};

static void key_name(const uint8_t public[OBT_SIGN_KEY_BYTES], uint8_t ret[NAME_BYTES])
{
	uint8_t digest[OBT_SHA256_BYTES];

	obt_digest_sha256(public, OBT_SIGN_KEY_BYTES, digest);
	memcpy(ret, digest, NAME_BYTES);
}

/* Takes over the pair. */
static struct obt_sign_key *key_wrap(EVP_PKEY *pair)
{
	struct obt_sign_key *key = calloc(1, sizeof *key);
	size_t size = sizeof key->public;

	if (key && pair && EVP_PKEY_get_raw_public_key(pair, key->public, &size) == 1 &&
		size == sizeof key->public) {
		key->pair = pair;
		return key;
	}
	EVP_PKEY_free(pair);
	free(key);
	return NULL;
}

struct obt_sign_key *obt_sign_key_new(struct ob_cause *ret_cause)
{
	struct obt_sign_key *key = key_wrap(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"));

	if (!key)
		ob_cause_set(ret_cause, OB_ERR_TLS, "OpenSSL cannot make an Ed25519 key");
	return key;
}

/* An encrypted key is refused; OpenSSL would ask at the terminal. */
static int no_passphrase(char *text, int size, int writes, void *user)
{
	(void)text;
	(void)size;
	(void)writes;
	(void)user;
	return -1;
}

/*
 * A key belongs to its process alone. Root's may be read by a group: so a service that is not root
 * gets its files from an operator, or from a Secret of Kubernetes.
 */
static mode_t not_allowed(const struct stat *status)
{
	if (status->st_uid == 0 && geteuid() != 0)
		return S_IWGRP | S_IXGRP | S_IRWXO;
	return S_IRWXG | S_IRWXO;
}

static struct obt_sign_key *key_read(int fd, const char *path, struct ob_cause *ret_cause)
{
	struct obt_sign_key *key = NULL;
	struct stat status;
	FILE *file = fdopen(fd, "r");
	EVP_PKEY *pair;

	if (!file || fstat(fd, &status) != 0) {
		ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%s", path);
		file ? (void)fclose(file) : (void)close(fd);
		return NULL;
	}
	if (status.st_mode & not_allowed(&status)) {
		ob_cause_set(ret_cause, OB_ERR_IO,
			"%s: others can read or write this private key: chmod 600 %s (or 640, if "
			"it is root's and this process reads it by its group)",
			path, path);
		fclose(file);
		return NULL;
	}
	pair = PEM_read_PrivateKey(file, NULL, no_passphrase, NULL);
	fclose(file);
	if (pair && EVP_PKEY_get_base_id(pair) == EVP_PKEY_ED25519) {
		key = key_wrap(pair);
	} else {
		EVP_PKEY_free(pair);
	}
	if (!key)
		ob_cause_set(ret_cause, OB_ERR_TLS,
			"%s: not an Ed25519 private key in PEM without a passphrase. Remove the "
			"file, "
			"and a new one is made",
			path);
	return key;
}

/* Writes the key to a new file; a file that another process has made meanwhile stays. */
static bool key_write(const struct obt_sign_key *key, const char *path, struct ob_cause *ret_cause)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
	bool good = file && PEM_write_PrivateKey(file, key->pair, NULL, NULL, 0, NULL, NULL) == 1 &&
		fflush(file) == 0 && fsync(fd) == 0;

	if (!good)
		ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%s", path);
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	if (!good && fd >= 0)
		unlink(path);
	return good;
}

struct obt_sign_key *obt_sign_key_open(const char *path, struct ob_cause *ret_cause)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct obt_sign_key *key;

	if (fd >= 0)
		return key_read(fd, path, ret_cause);
	if (errno != ENOENT) {
		ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%s", path);
		return NULL;
	}
	key = obt_sign_key_new(ret_cause);
	if (key && !key_write(key, path, ret_cause)) {
		obt_sign_key_free(key);
		return NULL;
	}
	return key;
}

void obt_sign_key_free(struct obt_sign_key *key)
{
	if (!key)
		return;
	EVP_PKEY_free(key->pair);
	free(key);
}

void obt_sign_key_public(const struct obt_sign_key *key, uint8_t ret[OBT_SIGN_KEY_BYTES])
{
	memcpy(ret, key->public, OBT_SIGN_KEY_BYTES);
}

/* What is signed: the purpose with its NUL, then the text. NULL: no memory, or the text is too long. */
static uint8_t *message_make(const void *text, size_t size, size_t *ret_size)
{
	uint8_t *message = size <= TEXT_MAX ? malloc(sizeof PURPOSE + size) : NULL;

	if (!message)
		return NULL;
	memcpy(message, PURPOSE, sizeof PURPOSE);
	if (size)
		memcpy(message + sizeof PURPOSE, text, size);
	*ret_size = sizeof PURPOSE + size;
	return message;
}

bool obt_sign_seal(const struct obt_sign_key *key, const void *text, size_t size, uint8_t *ret)
{
	size_t length = 0, signature = SIGNATURE_BYTES;
	OB_CLEANUP(ob_freep) uint8_t *message = message_make(text, size, &length);
	EVP_MD_CTX *context = message ? EVP_MD_CTX_new() : NULL;
	bool good;

	good = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key->pair) == 1 &&
		EVP_DigestSign(
			context, ret + MARK_BYTES + NAME_BYTES, &signature, message, length) == 1 &&
		signature == SIGNATURE_BYTES;
	EVP_MD_CTX_free(context);
	if (!good)
		return false;
	memcpy(ret, mark, MARK_BYTES);
	key_name(key->public, ret + MARK_BYTES);
	memcpy(ret + OBT_SIGN_OVERHEAD, text, size);
	return true;
}

static bool signature_holds(const uint8_t public[OBT_SIGN_KEY_BYTES],
	const uint8_t signature[SIGNATURE_BYTES], const void *text, size_t size)
{
	size_t length = 0;
	OB_CLEANUP(ob_freep) uint8_t *message = message_make(text, size, &length);
	EVP_PKEY *key =
		EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public, OBT_SIGN_KEY_BYTES);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool holds = message && key && context &&
		EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
		EVP_DigestVerify(context, signature, SIGNATURE_BYTES, message, length) == 1;

	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
	return holds;
}

enum ob_err obt_sign_open(const uint8_t (*keys)[OBT_SIGN_KEY_BYTES], size_t n_keys,
	const uint8_t *sealed, size_t size, const uint8_t **ret_text, size_t *ret_size,
	struct ob_cause *ret_cause)
{
	bool known = false;
	uint8_t name[NAME_BYTES];

	if (size < OBT_SIGN_OVERHEAD || size > OBT_SIGN_OVERHEAD + TEXT_MAX ||
		memcmp(sealed, mark, MARK_BYTES) != 0)
		return ob_cause_set(ret_cause, OB_ERR_PROTOCOL, "this is not a ticket");
	for (size_t i = 0; i < n_keys; i++) {
		key_name(keys[i], name);
		if (memcmp(name, sealed + MARK_BYTES, NAME_BYTES) != 0)
			continue;
		known = true;
		if (!signature_holds(keys[i], sealed + MARK_BYTES + NAME_BYTES,
			    sealed + OBT_SIGN_OVERHEAD, size - OBT_SIGN_OVERHEAD))
			continue;
		*ret_text = sealed + OBT_SIGN_OVERHEAD;
		*ret_size = size - OBT_SIGN_OVERHEAD;
		return OB_ERR_NONE;
	}
	return known
		? ob_cause_set(ret_cause, OB_ERR_DENIED,
			  "the ticket's signature is wrong: it was altered or forged")
		: ob_cause_set(ret_cause, OB_ERR_DENIED,
			  "the ticket was signed by a balancer that this server does not know");
}
