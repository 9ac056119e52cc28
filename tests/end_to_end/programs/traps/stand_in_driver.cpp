// A libcuda.so.1 that does three things that the simulated one does not. It looks up functions of
// its own. It has a version of a function that cuwarden does not know. It gives an address to
// another thread while the free of that address is still under way. Written against the ABI, not
// against cuda.h: its versions are its own.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define EXPORTED extern "C" [[gnu::visibility("default")]]

using Pointer = unsigned long long;
EXPORTED int cuMemAlloc_v2(Pointer* pointer, std::size_t bytes);
EXPORTED int cuMemAlloc_v9(Pointer* pointer, std::size_t bytes, int hint);

namespace {

constexpr int success = 0, invalid_value = 1, not_found = 500;
constexpr int newest_version = 99000;

std::atomic<Pointer> next_address{0x7f0000000000};
std::atomic<Pointer> free_address{0};
std::atomic<int> own_allocations{0};
void (*during_free)() = nullptr;
int (*allocate_by)(Pointer*, std::size_t) = nullptr;

template <class Function>
void* code(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* look_up(const char* name, const char* how) {
  if (std::strcmp(how, "default") == 0) return dlsym(RTLD_DEFAULT, name);
  void* const self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* const found = dlsym(self, name);
  dlclose(self);
  return found;
}

// Looked up before any call: only the library's name tells that this is the driver.
void* found_at_load = nullptr;
[[gnu::constructor]] void loaded() { found_at_load = look_up("cuMemAlloc_v2", "handle"); }

}  // namespace

EXPORTED int cuInit(unsigned int) { return success; }
EXPORTED int cuDriverGetVersion(int* version) {
  *version = newest_version;
  return success;
}
EXPORTED int cuCtxGetCurrent(void** context) {
  *context = code(cuInit);
  return success;
}
EXPORTED int cuCtxGetDevice(int* device) {
  *device = 0;
  return success;
}

EXPORTED int cuMemAlloc_v2(Pointer* pointer, std::size_t bytes) {
  ++own_allocations;
  *pointer = free_address.exchange(0);
  if (*pointer == 0) *pointer = next_address.fetch_add((bytes + 4095) / 4096 * 4096);
  return success;
}
EXPORTED int cuMemAlloc_v9(Pointer* pointer, std::size_t bytes, int) {
  return cuMemAlloc_v2(pointer, bytes);
}
EXPORTED int cuMemFree_v2(Pointer pointer) {
  free_address = pointer;
  if (during_free != nullptr) during_free();
  return success;
}

EXPORTED int cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t,
                                 int* status) {
  *function = nullptr;
  if (std::strcmp(name, "cuMemAlloc") == 0)
    *function = version >= newest_version ? code(cuMemAlloc_v9) : code(cuMemAlloc_v2);
  if (std::strcmp(name, "cuMemFree") == 0) *function = code(cuMemFree_v2);
  if (std::strcmp(name, "cuInit") == 0) *function = code(cuInit);
  if (status != nullptr) *status = *function != nullptr ? 0 : 1;
  return *function != nullptr || status != nullptr ? success : not_found;
}

EXPORTED int cuMemPoolImportPointer(Pointer* pointer, void*, void*) {
  return cuMemAlloc_v2(pointer, 8192);
}
EXPORTED int cuMemGetAddressRange_v2(Pointer* base, std::size_t* bytes, Pointer pointer) {
  *base = pointer;
  *bytes = 8192;
  return success;
}
EXPORTED int cuPointerGetAttribute(int* value, int, Pointer) {
  *value = 0;
  return success;
}

// A hooked function that is made of others, found by a look-up, as some drivers' are.
EXPORTED int cuMemAllocManaged(Pointer* pointer, std::size_t bytes, unsigned int) {
  using Allocate = int (*)(Pointer*, std::size_t);
  const auto allocate = allocate_by != nullptr
                            ? allocate_by
                            : reinterpret_cast<Allocate>(look_up("cuMemAlloc_v2", "default"));
  return allocate != nullptr ? allocate(pointer, bytes) : invalid_value;
}

// --- questions of the test's program

EXPORTED int stand_in_finds_its_own(const char* how) {
  const bool at_load = std::strcmp(how, "at_load") == 0;
  void* const found = at_load ? found_at_load : look_up("cuMemAlloc_v2", how);
  return found == code(cuMemAlloc_v2) ? 1 : 0;
}
// Memory that the driver takes for itself, through what it finds.
EXPORTED int stand_in_allocates_for_itself(const char* how) {
  using Allocate = int (*)(Pointer*, std::size_t);
  Pointer memory = 0;
  return reinterpret_cast<Allocate>(look_up("cuMemAlloc_v2", how))(&memory, 4096);
}
EXPORTED int stand_in_allocations() { return own_allocations; }
// From now on cuMemAllocManaged allocates by this function, as if a hook stood in between.
EXPORTED void stand_in_allocates_by(int (*function)(Pointer*, std::size_t)) {
  allocate_by = function;
}
EXPORTED void stand_in_calls_during_free(void (*function)()) { during_free = function; }
