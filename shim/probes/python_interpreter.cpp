#include "shim/probes/python_interpreter.hpp"

#include <unistd.h>

#include <climits>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {
namespace {

// True if the program's file is called python, python3, python3.12 and so on: it then has no other
// code than the interpreter's.
bool is_program_python() {
  const ErrnoGuard keep;
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return false;
  const std::string_view whole(path, static_cast<std::size_t>(length));
  return whole.substr(whole.rfind('/') + 1).starts_with("python");
}

template <class Pointer>
void take(Pointer& to, const LoadedObject& object, std::string_view name) {
  to = reinterpret_cast<Pointer>(object.find_any(name).address);
}

// Returns the address of the variable in the first object that exports it, in the loader's order;
// null if none does.
const void* first_of(std::string_view name) {
  const void* found = nullptr;
  any_loaded_object([&](const LoadedObject& object) {
    found = object.find_any(name).address;
    return found != nullptr;
  });
  return found;
}

// Returns false if the object is no interpreter.
bool read(const LoadedObject& object, PythonSymbols& found) {
  take(found.thread_state, object, "PyGILState_GetThisThreadState");
  take(found.is_initialized, object, "Py_IsInitialized");
  take(found.code_type, object, "PyCode_Type");
  if (found.thread_state == nullptr || found.is_initialized == nullptr ||
      found.code_type == nullptr)
    return false;
  // A program may have a copy of a variable, which then stands for it everywhere.
  found.code_type = first_of("PyCode_Type");
  found.text_type = first_of("PyUnicode_Type");
  found.bytes_type = first_of("PyBytes_Type");
  found.runtime = first_of("_PyRuntime");
  found.version = static_cast<const unsigned long*>(first_of("Py_Version"));
  found.has_iterator_send = object.find("PyIter_Send") != nullptr;
  found.has_add_type = object.find("PyModule_AddType") != nullptr;
  found.file = {object.start(), object.end()};
  const auto evaluation = object.find_any("_PyEval_EvalFrameDefault");
  const auto evaluation_start = reinterpret_cast<std::uintptr_t>(evaluation.address);
  found.evaluation = {evaluation_start, evaluation_start + evaluation.bytes};
  found.has_interpreter_alone =
      object.path().empty() ? is_program_python() : object.soname().starts_with("libpython");
  return true;
}

}  // namespace

bool find_python_interpreter(PythonSymbols& symbols) noexcept {
  std::size_t left = detail::startup_object_count();
  return any_loaded_object([&](const LoadedObject& object) {
    return left != 0 && left-- != 0 && read(object, symbols);
  });
}

std::string without_python_frames(std::uint32_t version) {
  const std::string of = version == 0
                             ? "before 3.9"
                             : std::to_string(version >> 8) + "." + std::to_string(version & 0xff);
  return "stacks have no Python frames: this build of Python " + of +
         " cannot be read (CPython 3.9 to 3.14 with a global lock can). Native frames are recorded "
         "as usual. CUWARDEN_PYTHON=off silences this line";
}

}  // namespace cuwarden::shim
