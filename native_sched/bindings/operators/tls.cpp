// rayelastic._native.Tls: what encrypts a connected socket; rayelastic/runtime/port/secure_socket.py is the socket around it.
#include "rayelastic/net/tls.hpp"

#include <nanobind/stl/string.h>

#include <cerrno>

#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

// The bytes of anything that has contiguous ones.
class Bytes {
 public:
  Bytes(nb::handle object, bool writable) {
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  [[nodiscard]] iovec part() const noexcept { return {view_.buf, static_cast<std::size_t>(view_.len)}; }

 private:
  Py_buffer view_;
};

template <typename Call>
Py_ssize_t over_socket(const TlsObject& self, const Bytes& bytes, Call call) {
  const iovec part = bytes.part();
  ssize_t done = 0;
  int error = 0;
  {
    const nb::gil_scoped_release released;
    done = call(*self.tls, std::span<const iovec>(&part, 1));
    error = errno;
  }
  if (done >= 0 || error == EAGAIN || error == EWOULDBLOCK) return done;
  if (error == EPROTO) {
    PyErr_SetString(PyExc_ConnectionAbortedError, ("the encryption broke: " + self.tls->error()).c_str());
  } else {
    errno = error;
    PyErr_SetFromErrno(PyExc_OSError);
  }
  throw nb::python_error();
}

}  // namespace

void bind_tls(nb::module_& module) {
  nb::class_<TlsObject>(module, "Tls", "TLS 1.3 over a connected socket, with a key that both sides have; nothing blocks.")
      .def(
          "__init__",
          [](TlsObject* self, int fd, const nb::bytes& key, bool server) {
            new (self) TlsObject{std::make_shared<Tls>(fd, server ? Tls::Side::Server : Tls::Side::Client,
                                                       std::string_view(static_cast<const char*>(key.data()), key.size()))};
          },
          nb::arg("fd"), nb::arg("key"), nb::arg("server"), "Doesn't own the descriptor. key: 32 bytes.")
      .def_static(
          "missing", [] { return Tls::missing(); }, "Why there is no TLS on this machine; empty if there is.")
      .def(
          "handshake",
          [](TlsObject& self) {
            Tls::Step step;
            {
              const nb::gil_scoped_release released;
              step = self.tls->handshake();
            }
            switch (step) {
              case Tls::Step::Done:
                return "done";
              case Tls::Step::WantsRead:
                return "reads";
              case Tls::Step::WantsWrite:
                return "writes";
              case Tls::Step::Failed:
                break;
            }
            return "failed";
          },
          "Goes on with the handshake: done, reads or writes (what it waits for), or failed.")
      .def(
          "send",
          [](TlsObject& self, nb::handle data) {
            return over_socket(self, Bytes(data, false), [](Tls& tls, std::span<const iovec> parts) { return tls.send(parts); });
          },
          nb::arg("data"), nb::sig("def send(self, data: bytes | bytearray | memoryview) -> int"),
          "Bytes that went out, -1: none now; the next call begins with the same bytes.")
      .def(
          "receive_into",
          [](TlsObject& self, nb::handle buffer) {
            return over_socket(self, Bytes(buffer, true), [](Tls& tls, std::span<const iovec> parts) { return tls.receive(parts); });
          },
          nb::arg("buffer"), nb::sig("def receive_into(self, buffer: bytes | bytearray | memoryview) -> int"),
          "Bytes that came, 0: the end, -1: none now.")
      .def_prop_ro(
          "unsent", [](const TlsObject& self) { return self.tls->unsent(); }, "Whether a later send, of nothing too, has to go on.")
      .def_prop_ro(
          "error", [](const TlsObject& self) { return self.tls->error(); }, "Why it failed; empty if it didn't.")
      .def_prop_ro(
          "in_force", [](const TlsObject& self) { return self.tls->in_force(); },
          "The protocol and its suite; empty before the handshake has ended.");
}

}  // namespace rayelastic::python
