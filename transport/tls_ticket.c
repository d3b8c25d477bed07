/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

#include "base/clock.h"
#include "transport/tls_inside.h"

/* Offsets in a key's 80 bytes. */
enum { NAME = 0, NAME_BYTES = 16, CIPHER = 16, MAC = 48, MAC_BYTES = 32 };

_Static_assert(MAC + MAC_BYTES == OBT_TLS_TICKET_BYTES, "three parts");

void obt_tls_ticket_fini(struct obt_tls_ticket_keys *keys)
{
	OPENSSL_cleanse(keys->keys, sizeof keys->keys);
	pthread_mutex_destroy(&keys->lock);
}

/*
 * Under the lock. Keeps the old key when there are no random bytes. False: there is no key at all.
 */
static bool keys_renew(struct obt_tls_ticket_keys *keys)
{
	uint64_t now = ob_clock_ns();
	uint8_t key[OBT_TLS_TICKET_BYTES];

	if (keys->count && now - keys->made_ns < OBT_TLS_TICKET_S * OB_SECOND)
		return true;
	if (RAND_bytes(key, sizeof key) != 1)
		return keys->count > 0;
	memmove(keys->keys[1], keys->keys[0], (OBT_TLS_TICKET_KEYS - 1) * sizeof keys->keys[0]);
	memcpy(keys->keys[0], key, sizeof key);
	keys->count = keys->count < OBT_TLS_TICKET_KEYS ? keys->count + 1 : OBT_TLS_TICKET_KEYS;
	keys->made_ns = now;
	OPENSSL_cleanse(key, sizeof key);
	return true;
}

void obt_tls_ticket_expire(struct obt_tls_ticket_keys *keys)
{
	pthread_mutex_lock(&keys->lock);
	keys->made_ns -= OBT_TLS_TICKET_S * OB_SECOND;
	keys_renew(keys);
	pthread_mutex_unlock(&keys->lock);
}

/* Copies the key for new tickets (name NULL), or the key of this name. False: there is none. */
static bool key_find(
	struct obt_tls_ticket_keys *keys, const uint8_t *name, uint8_t ret[OBT_TLS_TICKET_BYTES])
{
	bool found = false;

	pthread_mutex_lock(&keys->lock);
	if (!name && keys_renew(keys)) {
		memcpy(ret, keys->keys[0], OBT_TLS_TICKET_BYTES);
		found = true;
	}
	for (unsigned i = 0; name && !found && i < keys->count; i++)
		if ((found = CRYPTO_memcmp(keys->keys[i], name, NAME_BYTES) == 0))
			memcpy(ret, keys->keys[i], OBT_TLS_TICKET_BYTES);
	pthread_mutex_unlock(&keys->lock);
	return found;
}

/* As OpenSSL defines: 1: done, 0: no such key, below 0: failed. */
static int ticket_crypt(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
	EVP_MAC_CTX *mac, int making)
{
	struct obt_tls_ticket_keys *keys = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	uint8_t key[OBT_TLS_TICKET_BYTES];
	OSSL_PARAM params[] = {
		OSSL_PARAM_octet_string(OSSL_MAC_PARAM_KEY, key + MAC, MAC_BYTES),
		OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t) "SHA256", 0),
		OSSL_PARAM_END,
	};
	int done = -1;

	if (!key_find(keys, making ? NULL : name, key))
		return 0;
	if (making) {
		memcpy(name, key + NAME, NAME_BYTES);
		if (RAND_bytes(iv, EVP_MAX_IV_LENGTH) == 1 &&
			EVP_EncryptInit_ex2(cipher, EVP_aes_256_cbc(), key + CIPHER, iv, NULL) == 1)
			done = 1;
	} else if (EVP_DecryptInit_ex2(cipher, EVP_aes_256_cbc(), key + CIPHER, iv, NULL) == 1) {
		done = 1;
	}
	if (done == 1 && EVP_MAC_CTX_set_params(mac, params) != 1)
		done = -1;
	OPENSSL_cleanse(key, sizeof key);
	return done;
}

static int ticket_made(SSL *ssl, void *unused)
{
	(void)ssl;
	(void)unused;
	return 1;
}

/*
 * A ticket that cannot be decrypted is no error: the handshake is a full one and gives a new
 * ticket.
 */
static SSL_TICKET_RETURN ticket_taken(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
	size_t name_size, SSL_TICKET_STATUS status, void *unused)
{
	(void)ssl;
	(void)session;
	(void)name;
	(void)name_size;
	(void)unused;
	if (status == SSL_TICKET_EMPTY || status == SSL_TICKET_NO_DECRYPT)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
		return SSL_TICKET_RETURN_ABORT;
	return SSL_TICKET_RETURN_USE_RENEW;
}

bool obt_tls_ticket_init(struct obt_tls_ticket_keys *keys, SSL_CTX *context)
{
	*keys = (struct obt_tls_ticket_keys){ 0 };
	if (!keys_renew(keys))
		return false;
	pthread_mutex_init(&keys->lock, NULL);
	SSL_CTX_set_app_data(context, keys);
	SSL_CTX_set_timeout(context, OBT_TLS_TICKET_S);
	SSL_CTX_set_num_tickets(context, 1); /* clients keep only the newest */
	return SSL_CTX_set_tlsext_ticket_key_evp_cb(context, ticket_crypt) == 1 &&
		SSL_CTX_set_session_ticket_cb(context, ticket_made, ticket_taken, NULL) == 1;
}
