// stand_in_client WHAT: what a program does with the stand-in driver, which has no context to make.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

using Pointer = unsigned long long;
using Allocate = int (*)(Pointer*, std::size_t);
using Free = int (*)(Pointer);
using Lookup = int (*)(const char*, void**, int, unsigned long long, int*);

void* driver = nullptr;
Allocate allocate = nullptr;
Pointer first = 0, second = 0;

template <class Function>
Function find(const char* name) {
  void* const found = dlsym(driver, name);
  if (found == nullptr) {
    std::printf("no %s\n", name);
    std::exit(3);
  }
  return reinterpret_cast<Function>(found);
}

void own_lookups() {
  const auto finds_its_own = find<int (*)(const char*)>("stand_in_finds_its_own");
  const auto allocates = find<int (*)(const char*)>("stand_in_allocates_for_itself");
  Pointer memory = 0;
  for (const char* how : {"at_load", "handle", "default"})
    std::printf("its own, %s: %d\n", how, finds_its_own(how));
  for (const char* how : {"handle", "default"})
    std::printf("for itself, %s: %d\n", how, allocates(how));
  std::printf("managed: %d\n", find<int (*)(Pointer*, std::size_t, unsigned)>("cuMemAllocManaged")(
                                   &memory, 70000, 1));
  std::printf("device: %d\n", allocate(&memory, 1000));
  std::printf("the driver allocated %d times\n", find<int (*)()>("stand_in_allocations")());
}

void nested_calls() {
  find<void (*)(Allocate)>("stand_in_allocates_by")(allocate);
  std::printf("managed: %d\n", find<int (*)(Pointer*, std::size_t, unsigned)>("cuMemAllocManaged")(
                                   &first, 70000, 1));
}

void newer_version(bool by_name) {
  using Newest = int (*)(Pointer*, std::size_t, int);
  void* found = nullptr;
  int status = -1;
  if (by_name)
    found = dlsym(driver, "cuMemAlloc_v9");
  else
    find<Lookup>("cuGetProcAddress_v2")("cuMemAlloc", &found, 99000, 0, &status);
  std::printf("allocate: %d\n", reinterpret_cast<Newest>(found)(&first, 1000, 7));
  std::printf("a known one: %d\n", allocate(&second, 2000));
}

// While this thread's free is still inside the driver, another thread is given its address.
void reused_address() {
  std::printf("allocate: %d\n", allocate(&first, 1000));
  find<void (*)(void (*)())>("stand_in_calls_during_free")(
      [] { std::thread([] { allocate(&second, 2000); }).join(); });
  std::printf("free: %d\n", find<Free>("cuMemFree_v2")(first));
  std::printf("the same address: %d\n", first == second);
}

void imported_pointer() {
  using Import = int (*)(Pointer*, void*, void*);
  std::printf("import: %d\n", find<Import>("cuMemPoolImportPointer")(&first, nullptr, nullptr));
  std::printf("free: %d\n", find<Free>("cuMemFree_v2")(first));
}

}  // namespace

int main(int, char** arguments) {
  const std::string what = arguments[1];
  driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return 3;
  if (find<int (*)(unsigned)>("cuInit")(0) != 0) return 3;
  allocate = find<Allocate>("cuMemAlloc_v2");
  if (what == "own_lookups") own_lookups();
  if (what == "nested_calls") nested_calls();
  if (what == "newer_by_proc_address") newer_version(false);
  if (what == "newer_by_name") newer_version(true);
  if (what == "reused_address") reused_address();
  if (what == "imported_pointer") imported_pointer();
}
