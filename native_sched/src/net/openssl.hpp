// The part of OpenSSL's C interface that tls.cpp uses, opened at run time, so that wheels contain no copy that would need security updates.
// It is declared here, because the headers aren't installed everywhere; these functions are the same in 1.1.1 and 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rayelastic::openssl {

using Bio = struct bio_st;
using BioMethod = struct bio_method_st;
using Context = struct ssl_ctx_st;
using Connection = struct ssl_st;

// ssl.h, bio.h
constexpr int kWantsRead = 2, kWantsWrite = 3, kEnd = 6;
constexpr int kSetLeastVersion = 123, kSetReadAhead = 41, kSetMode = 33;
constexpr long kTls13 = 0x0304;
constexpr long kMovingWriteBuffer = 2;
constexpr int kVerifyPeer = 1, kFailWithoutCertificate = 2;
constexpr int kPem = 1;
constexpr int kUpdateNotRequested = 0;
constexpr int kBioReads = 1, kBioWrites = 2, kBioRetry = 8;
constexpr int kBioControlEnd = 2, kBioControlFlush = 11;
constexpr int kBioType = 0x0400 | 100;  // BIO_TYPE_SOURCE_SINK and a number that is nobody's

using PskClient = unsigned (*)(Connection*, const char*, char*, unsigned, unsigned char*, unsigned);
using PskServer = unsigned (*)(Connection*, const char*, unsigned char*, unsigned);
using Password = int (*)(char*, int, int, void*);

struct Library {
  Library();
  std::string missing;  // why it can't be used

  const void* (*TLS_client_method)() = nullptr;
  const void* (*TLS_server_method)() = nullptr;
  Context* (*SSL_CTX_new)(const void*) = nullptr;
  long (*SSL_CTX_ctrl)(Context*, int, long, void*) = nullptr;
  int (*SSL_CTX_set_ciphersuites)(Context*, const char*) = nullptr;
  int (*SSL_CTX_set_num_tickets)(Context*, std::size_t) = nullptr;
  void (*SSL_CTX_set_default_read_buffer_len)(Context*, std::size_t) = nullptr;
  void (*SSL_CTX_set_verify)(Context*, int, void*) = nullptr;
  void (*SSL_CTX_set_default_passwd_cb)(Context*, Password) = nullptr;
  int (*SSL_CTX_use_certificate_chain_file)(Context*, const char*) = nullptr;
  int (*SSL_CTX_use_PrivateKey_file)(Context*, const char*, int) = nullptr;
  int (*SSL_CTX_load_verify_locations)(Context*, const char*, const char*) = nullptr;
  void (*SSL_CTX_free)(Context*) = nullptr;
  Connection* (*SSL_new)(Context*) = nullptr;
  void (*SSL_free)(Connection*) = nullptr;
  void (*SSL_set_connect_state)(Connection*) = nullptr;
  void (*SSL_set_accept_state)(Connection*) = nullptr;
  void (*SSL_set_psk_client_callback)(Connection*, PskClient) = nullptr;
  void (*SSL_set_psk_server_callback)(Connection*, PskServer) = nullptr;
  int (*SSL_set_ex_data)(Connection*, int, void*) = nullptr;
  void* (*SSL_get_ex_data)(const Connection*, int) = nullptr;
  void (*SSL_set_bio)(Connection*, Bio*, Bio*) = nullptr;
  int (*SSL_do_handshake)(Connection*) = nullptr;
  int (*SSL_read_ex)(Connection*, void*, std::size_t, std::size_t*) = nullptr;
  int (*SSL_write_ex)(Connection*, const void*, std::size_t, std::size_t*) = nullptr;
  int (*SSL_get_error)(const Connection*, int) = nullptr;
  int (*SSL_key_update)(Connection*, int) = nullptr;
  int (*SSL_session_reused)(const Connection*) = nullptr;
  int (*SSL_export_keying_material)(Connection*, unsigned char*, std::size_t, const char*, std::size_t, const unsigned char*, std::size_t,
                                    int) = nullptr;
  const void* (*SSL_get_current_cipher)(const Connection*) = nullptr;
  const char* (*SSL_CIPHER_get_name)(const void*) = nullptr;
  const char* (*SSL_get_version)(const Connection*) = nullptr;
  BioMethod* (*BIO_meth_new)(int, const char*) = nullptr;
  int (*BIO_meth_set_write)(BioMethod*, int (*)(Bio*, const char*, int)) = nullptr;
  int (*BIO_meth_set_read)(BioMethod*, int (*)(Bio*, char*, int)) = nullptr;
  int (*BIO_meth_set_ctrl)(BioMethod*, long (*)(Bio*, int, long, void*)) = nullptr;
  Bio* (*BIO_new)(const BioMethod*) = nullptr;
  void (*BIO_set_data)(Bio*, void*) = nullptr;
  void* (*BIO_get_data)(Bio*) = nullptr;
  void (*BIO_set_init)(Bio*, int) = nullptr;
  void (*BIO_set_flags)(Bio*, int) = nullptr;
  void (*BIO_clear_flags)(Bio*, int) = nullptr;
  unsigned long (*ERR_get_error)() = nullptr;
  void (*ERR_error_string_n)(unsigned long, char*, std::size_t) = nullptr;
  void (*ERR_clear_error)() = nullptr;
};

[[nodiscard]] const Library& library();

}  // namespace rayelastic::openssl
