#include "python/python_stream.hpp"

#include <stdexcept>
#include <string>

#include "python/gate/python_failure.hpp"
#include "record/object_ref.hpp"

namespace rayelastic::python {

namespace {

// Holds the GIL as an iterator does that may wait: without the engine's token, which others need meanwhile.
class Inside {
 public:
  Inside() noexcept { enter_python(); }
  ~Inside() { leave_python(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

[[noreturn]] void fail() {
  PythonFailure failure;
  throw std::runtime_error(failure.keep());
}

class PythonStream final : public ByteStream {
 public:
  explicit PythonStream(ObjectRef stream) noexcept : stream_(std::move(stream)) {}

  [[nodiscard]] std::size_t read(char* target, std::size_t bytes) override {
    const Inside inside;
    const ObjectRef view = ObjectRef::take(PyMemoryView_FromMemory(target, static_cast<Py_ssize_t>(bytes), PyBUF_WRITE));
    if (!view) fail();
    const ObjectRef got = ObjectRef::take(PyObject_CallMethod(stream_.get(), "readinto", "O", view.get()));
    const ObjectRef read = got ? ObjectRef::take(PyNumber_Index(got.get())) : ObjectRef();
    if (!read) fail();
    return PyLong_AsSize_t(read.get());
  }

 private:
  ObjectRef stream_;
};

}  // namespace

OpenStream stream_opener(PyObject* open) {
  const auto shared = std::make_shared<const ObjectRef>(ObjectRef::share(open));
  return [shared](const std::string& path) -> std::unique_ptr<ByteStream> {
    const Inside inside;
    ObjectRef stream = ObjectRef::take(PyObject_CallFunction(shared->get(), "s", path.c_str()));
    if (!stream) fail();
    return std::make_unique<PythonStream>(std::move(stream));
  };
}

}  // namespace rayelastic::python
