// Runs a Python script, with a function beside it that reads the Python frames of its caller and
// compares them with those that the script names. Embeds the interpreter, so that the reading runs
// in a program that sanitizers see.
//
//     python_reading_test SCRIPT [ARGUMENT]...
//
// PYTHON_LIBRARY: path of the interpreter's shared library. If it is not set, the system's is used;
// the exit status is 77 if there is none.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "runtime_hooks/core/thread_slot.hpp"
#include "runtime_hooks/stacks/python/interpreter.hpp"
#include "runtime_hooks/stacks/python/known_chains.hpp"
#include "tests/contract/stacks/frames_text.hpp"
#include "tests/contract/stacks/image_writer.hpp"

namespace {

using namespace cuwarden::stacks::python;

void* library = nullptr;

void* open_library() {
  if (const char* path = std::getenv("PYTHON_LIBRARY")) return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  for (int minor = 14; minor >= 9; --minor) {
    const std::string name = "libpython3." + std::to_string(minor) + ".so.1.0";
    if (void* found = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) return found;
  }
  return nullptr;
}

template <class Pointer>
void take(Pointer& to, const char* name) {
  to = reinterpret_cast<Pointer>(dlsym(library, name));
}

cuwarden::PythonSymbols symbols_of_library() {
  cuwarden::PythonSymbols symbols;
  take(symbols.thread_state, "PyGILState_GetThisThreadState");
  take(symbols.is_initialized, "Py_IsInitialized");
  take(symbols.code_type, "PyCode_Type");
  take(symbols.text_type, "PyUnicode_Type");
  take(symbols.bytes_type, "PyBytes_Type");
  take(symbols.runtime, "_PyRuntime");
  take(symbols.version, "Py_Version");
  symbols.has_iterator_send = dlsym(library, "PyIter_Send") != nullptr;
  symbols.has_add_type = dlsym(library, "PyModule_AddType") != nullptr;
  return symbols;
}

// Never destroyed: threads may read while the process ends.
Interpreter& interpreter() {
  static auto* const made = [] {
    const cuwarden::PythonSymbols symbols = symbols_of_library();
    const Layout* const layout = layout_of(symbols);
    if (layout == nullptr) {
      std::puts("this interpreter cannot be read");
      std::_Exit(1);
    }
    return new Interpreter(symbols, *layout);
  }();
  return *made;
}
KnownChains& known_chains() {
  static auto* const made = new KnownChains;
  return *made;
}

// The numbers of threads that have ended are given to later ones, as the shim does.
class Slot {
 public:
  Slot() {
    const std::lock_guard locked(mutex_);
    while (used_[number_]) ++number_;
    used_[number_] = true;
    slot_ = {number_, ++tenancy_};
  }
  ~Slot() {
    const std::lock_guard locked(mutex_);
    used_[number_] = false;
  }
  cuwarden::ThreadSlot get() const { return slot_; }

 private:
  inline static std::mutex mutex_;
  inline static bool used_[cuwarden::ThreadSlot::count];
  inline static std::uint32_t tenancy_;
  std::uint32_t number_ = 1;
  cuwarden::ThreadSlot slot_;
};

// Returns the text of the frames for the comparison.
std::string text_of(const FrameChain& chain) {
  return test::text_of_frames(interpreter(), chain).value_or("a function cannot be read");
}

using cuwarden::stacks::python::test::ImageWriter;

std::atomic<std::uint64_t> read_count{0}, recognised{0}, different{0};
std::mutex difference_mutex;
std::string difference;

void differs(const char* expected, const std::string& found) {
  ++different;
  const std::lock_guard locked(difference_mutex);
  if (difference.empty()) difference = std::string("expected:\n") + expected + "read:\n" + found;
}

// A number of the chain's frames, as the shim's name of a stack.
std::uint32_t name_of(const std::string& text) {
  return static_cast<std::uint32_t>(std::hash<std::string>()(text)) | 1;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Writes an image of the memory that the reading of the calling thread's frames needs, for
// python_images_test. `expected`: as in compare_frames().
EXPORTED void record_image(const char* path, const char* expected) {
  const std::uint64_t state = interpreter().state_of_thread();
  const auto chain = std::make_unique<FrameChain>();
  if (state == 0 || !interpreter().read(state, *chain) || text_of(*chain) != expected) {
    std::puts("the frames cannot be read, or are not those that the script names");
    std::_Exit(1);
  }
  ImageWriter(path, interpreter()).write(state, *chain, expected);
}

// Reads the calling thread's Python frames `times` times, and compares them with `expected`, the
// text that text_of() would return. `native` stands for the native stack.
EXPORTED void compare_frames(const char* expected, std::uint32_t native, int times) {
  static thread_local Slot slot;
  const auto chain = std::make_unique<FrameChain>();
  for (int i = 0; i < times; ++i) {
    const std::uint64_t state = interpreter().state_of_thread();
    if (state == 0) return;  // the interpreter has begun to end
    const auto last = known_chains().last_found(slot.get(), native, 0);
    if (!last.frames.empty() && interpreter().has_frames(state, last.frames)) {
      ++recognised;
      if (last.name != name_of(expected)) differs(expected, "the frames of another stack\n");
      if (i % 16 != 0) continue;
    }
    const bool is_read = interpreter().read(state, *chain);
    if (interpreter().state_of_thread() == 0) return;
    ++read_count;
    const std::string found = is_read ? text_of(*chain) : "nothing\n";
    if (found != expected) differs(expected, found);
    if (known_chains().find(slot.get(), native, *chain, 0) == 0)
      known_chains().keep(slot.get(), native, *chain, 0, name_of(expected));
  }
}

int main(int argc, char** argv) {
  library = open_library();
  if (library == nullptr) {
    std::puts("skipped: no shared library of Python is installed");
    return 77;
  }
  int (*run)(int, char**) = nullptr;
  take(run, "Py_BytesMain");
  const int status = run(argc, argv);
  std::printf("%llu read, %llu recognised, %llu different\n",
              static_cast<unsigned long long>(read_count.load()),
              static_cast<unsigned long long>(recognised.load()),
              static_cast<unsigned long long>(different.load()));
  const std::lock_guard locked(difference_mutex);
  std::fputs(difference.c_str(), stdout);
  const bool is_good = status == 0 && different == 0 && read_count != 0;
  std::fflush(stdout);
  // Threads of Python may still run: they must not meet destroyed objects.
  std::_Exit(is_good ? 0 : 1);
}
