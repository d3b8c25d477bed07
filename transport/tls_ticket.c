/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

#include "transport/tls_inside.h"

/* A key's 80 bytes. */
enum { NAME = 0, NAME_BYTES = 16, CIPHER = 16, MAC = 48, MAC_BYTES = 32 };

_Static_assert(MAC + MAC_BYTES == OBT_TLS_TICKET_BYTES, "three parts");

bool obt_tls_tickets_rotate(struct obt_tls_tickets *tickets)
{
	uint8_t key[OBT_TLS_TICKET_BYTES];

	if (RAND_bytes(key, sizeof key) != 1)
		return false;
	memmove(tickets->keys[1], tickets->keys[0], (OBT_TLS_TICKET_KEYS - 1) * sizeof tickets->keys[0]);
	memcpy(tickets->keys[0], key, sizeof key);
	tickets->count = tickets->count < OBT_TLS_TICKET_KEYS ? tickets->count + 1 : OBT_TLS_TICKET_KEYS;
	OPENSSL_cleanse(key, sizeof key);
	return true;
}

void obt_tls_ticket_fini(struct obt_tls_ticket_keys *keys)
{
	OPENSSL_cleanse(&keys->shared, sizeof keys->shared);
	OPENSSL_cleanse(keys->own, sizeof keys->own);
	pthread_mutex_destroy(&keys->lock);
}

/* A copy of the key to make a ticket with, or of the one of this name. False: there is none. */
static bool key_find(struct obt_tls_ticket_keys *keys, const uint8_t *name, bool certificate, uint8_t ret[OBT_TLS_TICKET_BYTES])
{
	bool found = false;

	pthread_mutex_lock(&keys->lock);
	if (!name) {
		memcpy(ret, certificate || !keys->shared.count ? keys->own : keys->shared.keys[0], OBT_TLS_TICKET_BYTES);
		found = true;
	}
	for (uint32_t i = 0; !found && i < keys->shared.count; i++)
		if ((found = CRYPTO_memcmp(keys->shared.keys[i], name, NAME_BYTES) == 0))
			memcpy(ret, keys->shared.keys[i], OBT_TLS_TICKET_BYTES);
	if (!found && CRYPTO_memcmp(keys->own, name, NAME_BYTES) == 0) {
		memcpy(ret, keys->own, OBT_TLS_TICKET_BYTES);
		found = true;
	}
	pthread_mutex_unlock(&keys->lock);
	return found;
}

static bool own_name(struct obt_tls_ticket_keys *keys, const uint8_t *name)
{
	return CRYPTO_memcmp(keys->own, name, NAME_BYTES) == 0;
}

/* OpenSSL's: 1 done, 0 no such key, below 0 failed. */
static int ticket_crypt(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int making)
{
	struct obt_tls_ticket_keys *keys = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	uint8_t key[OBT_TLS_TICKET_BYTES];
	OSSL_PARAM params[] = {
		OSSL_PARAM_octet_string(OSSL_MAC_PARAM_KEY, key + MAC, MAC_BYTES),
		OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t) "SHA256", 0),
		OSSL_PARAM_END,
	};
	int done = -1;

	if (!key_find(keys, making ? NULL : name, making && SSL_get0_peer_certificate(ssl), key))
		return 0;
	if (making) {
		memcpy(name, key + NAME, NAME_BYTES);
		if (RAND_bytes(iv, EVP_MAX_IV_LENGTH) == 1 && EVP_EncryptInit_ex2(cipher, EVP_aes_256_cbc(), key + CIPHER, iv, NULL) == 1)
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

/* A ticket says who its client is by the certificate in it. Under a shared key another process could have written that. */
static SSL_TICKET_RETURN ticket_taken(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t name_size, SSL_TICKET_STATUS status, void *unused)
{
	struct obt_tls_ticket_keys *keys = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	(void)unused;
	if (status == SSL_TICKET_EMPTY || status == SSL_TICKET_NO_DECRYPT)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
		return SSL_TICKET_RETURN_ABORT;
	if (SSL_SESSION_get0_peer(session) && (name_size != NAME_BYTES || !own_name(keys, name)))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	return SSL_TICKET_RETURN_USE_RENEW;
}

bool obt_tls_ticket_init(struct obt_tls_ticket_keys *keys, SSL_CTX *context)
{
	if (RAND_bytes(keys->own, sizeof keys->own) != 1)
		return false;
	pthread_mutex_init(&keys->lock, NULL);
	SSL_CTX_set_app_data(context, keys);
	SSL_CTX_set_timeout(context, OBT_TLS_TICKET_S);
	return SSL_CTX_set_tlsext_ticket_key_evp_cb(context, ticket_crypt) == 1 &&
	       SSL_CTX_set_session_ticket_cb(context, ticket_made, ticket_taken, NULL) == 1;
}
