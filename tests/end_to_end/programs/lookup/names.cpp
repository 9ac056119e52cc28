// names WHAT [PATH...]: lookups that the shim must answer exactly as the loader would. Prints what
// it found, never an address.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

// The file that holds an address; "none" for none.
std::string owner(void* address) {
  Dl_info info{};
  if (address == nullptr) return "null";
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "unknown";
  const char* slash = std::strrchr(info.dli_fname, '/');
  return slash == nullptr ? info.dli_fname : slash + 1;
}

void print_owner(const char* name, void* address) {
  std::printf("%s: %s\n", name, owner(address).c_str());
}

int print_number(const char* name, void* address) {
  std::printf("%s: %d\n", name, address == nullptr ? -1 : reinterpret_cast<int (*)()>(address)());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const char* path = argc > 2 ? argv[2] : "libcuda.so.1";
  if (what == "absent") {  // no driver in the process
    for (const char* name : {"cuMemAlloc_v2", "cuMemFree_v2", "cuInit", "cudaMalloc", "cudaFree"})
      print_owner(name, dlsym(RTLD_DEFAULT, name));
    dlerror();
    void* self = dlopen(nullptr, RTLD_NOW);
    print_owner("cuMemAlloc_v2 by dlopen(NULL)", dlsym(self, "cuMemAlloc_v2"));
    const char* error = dlerror();
    std::printf("an error: %s\n", error == nullptr ? "no" : "yes");
    return 0;
  }
  if (what == "unhooked") {
    void* driver = dlopen(path, RTLD_NOW);
    if (driver == nullptr) return 3;
    for (const char* name : {"cuDriverGetVersion", "cuDeviceGetCount", "cuNoSuchFunction"})
      print_owner(name, dlsym(driver, name));
    return 0;
  }
  if (what == "lookalikes") {  // PATH: a library with names that begin as CUDA's do
    void* library = dlopen(path, RTLD_NOW);
    if (library == nullptr) return 3;
    for (const char* name : {"cudnnCreate", "curl_easy_init", "cuMemAlloc_v2", "cudaMalloc",
                             "cuMemAllocator", "dlsymbolic"})
      print_number(name, dlsym(library, name));
    return 0;
  }
  if (what == "next") {  // PATH: a library that asks for the next definition of a name
    void* first = dlopen(path, RTLD_NOW);
    if (first == nullptr) return 3;
    print_number("next of the library", dlsym(first, "next_definition"));
    print_number("next of a versioned name", dlsym(first, "next_versioned_definition"));
    print_number("default", dlsym(first, "default_definition"));
    return 0;
  }
  if (what == "runpath") {  // PATH: a library that opens another, found by its own RUNPATH only
    void* owner_library = dlopen(path, RTLD_NOW);
    if (owner_library == nullptr) return 3;
    std::printf("from here: %s\n",
                dlopen("libprivate_part.so", RTLD_NOW) == nullptr ? "not found" : "found");
    print_number("through the library's RUNPATH", dlsym(owner_library, "open_private"));
    return 0;
  }
  if (what == "versions") {
    void* old_one = dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.2.5");
    void* new_one = dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14");
    std::printf("two versions of memcpy: %s\n",
                old_one != nullptr && new_one != nullptr && old_one != new_one ? "yes" : "no");
    print_owner("an absent version", dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_9.9"));
    return 0;
  }
  return 2;
}
