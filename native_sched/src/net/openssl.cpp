#include "openssl.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace rayelastic::openssl {

Library::Library() {
  void* handle = nullptr;
  // Python has mostly opened one already, for its own `ssl`: that one is taken, wherever it lies.
  for (const char* const name : {"libssl.so.3", "libssl.so.1.1"}) {
    if (handle == nullptr) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  }
  for (const char* const name : {"libssl.so.3", "libssl.so.1.1"}) {
    if (handle == nullptr) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) {
    missing = "there is no OpenSSL (libssl.so.3 or libssl.so.1.1)";
    return;
  }
  const auto find = [handle, this](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));  // of what it depends on, too
    if (function == nullptr && missing.empty()) missing = std::string("OpenSSL here has no ") + name;
  };
#define REL_FIND(name) find(#name, name)
  REL_FIND(TLS_client_method);
  REL_FIND(TLS_server_method);
  REL_FIND(SSL_CTX_new);
  REL_FIND(SSL_CTX_ctrl);
  REL_FIND(SSL_CTX_set_ciphersuites);
  REL_FIND(SSL_CTX_set_num_tickets);
  REL_FIND(SSL_CTX_set_default_read_buffer_len);
  REL_FIND(SSL_CTX_set_verify);
  REL_FIND(SSL_new);
  REL_FIND(SSL_free);
  REL_FIND(SSL_set_connect_state);
  REL_FIND(SSL_set_accept_state);
  REL_FIND(SSL_set_psk_client_callback);
  REL_FIND(SSL_set_psk_server_callback);
  REL_FIND(SSL_set_ex_data);
  REL_FIND(SSL_get_ex_data);
  REL_FIND(SSL_set_bio);
  REL_FIND(SSL_do_handshake);
  REL_FIND(SSL_read_ex);
  REL_FIND(SSL_write_ex);
  REL_FIND(SSL_get_error);
  REL_FIND(SSL_key_update);
  REL_FIND(SSL_session_reused);
  REL_FIND(SSL_get_current_cipher);
  REL_FIND(SSL_CIPHER_get_name);
  REL_FIND(SSL_get_version);
  REL_FIND(BIO_meth_new);
  REL_FIND(BIO_meth_set_write);
  REL_FIND(BIO_meth_set_read);
  REL_FIND(BIO_meth_set_ctrl);
  REL_FIND(BIO_new);
  REL_FIND(BIO_set_data);
  REL_FIND(BIO_get_data);
  REL_FIND(BIO_set_init);
  REL_FIND(BIO_set_flags);
  REL_FIND(BIO_clear_flags);
  REL_FIND(ERR_get_error);
  REL_FIND(ERR_error_string_n);
  REL_FIND(ERR_clear_error);
#undef REL_FIND
}

const Library& library() {
  static const Library loaded;
  return loaded;
}

}  // namespace rayelastic::openssl
