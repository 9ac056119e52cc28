// driver_memory dlsym | lookup | lookup_per_thread: uses the driver API without the runtime. The
// functions are found by dlsym or by cuGetProcAddress (per_thread: the forms for a default stream
// per thread). A kernel from PTX text works on the memory. The last line is the program's own
// account.
#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/gpu/programs/device_mapping.hpp"
#include "tests/kernels_in_ptx.hpp"

namespace memory {

using expected::Account;

constexpr std::size_t MiB = std::size_t{1} << 20;

// fill(pointer, count, seed) sets word i to i * 2654435761 + seed.
const std::string ptx = cuwarden::kernels::head + R"(
.visible .entry fill(.param .u64 pointer, .param .u32 count, .param .u32 seed)
{
  .reg .pred %p;
  .reg .b32 %i, %n, %s, %t, %b, %v;
  .reg .b64 %a, %o;
  ld.param.u64 %a, [pointer];
  ld.param.u32 %n, [count];
  ld.param.u32 %s, [seed];
  mov.u32 %b, %ctaid.x;
  mov.u32 %t, %ntid.x;
  mov.u32 %v, %tid.x;
  mad.lo.u32 %i, %b, %t, %v;
  setp.ge.u32 %p, %i, %n;
  @%p bra done;
  cvta.to.global.u64 %a, %a;
  mul.wide.u32 %o, %i, 4;
  add.u64 %a, %a, %o;
  mul.lo.u32 %v, %i, 2654435761;
  add.u32 %v, %v, %s;
  st.global.u32 [%a], %v;
done:
  ret;
}
)";

// The functions, each under the name that the header's macros give it (such as cuMemAlloc_v2).
// clang-format off
#define DRIVER_FUNCTIONS(F)                                                                        \
  F(cuInit) F(cuDeviceGet) F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent) F(cuCtxSynchronize)      \
  F(cuModuleLoadData) F(cuModuleGetFunction) F(cuLaunchKernel) F(cuMemcpyDtoH) F(cuMemGetInfo)     \
  F(cuMemAlloc) F(cuMemFree) F(cuMemAllocPitch) F(cuMemAllocHost) F(cuMemHostAlloc)                \
  F(cuMemFreeHost) F(cuMemHostRegister) F(cuMemHostUnregister) F(cuMemAllocManaged)                \
  F(cuMemAllocAsync) F(cuMemFreeAsync) F(cuArrayCreate) F(cuArray3DCreate) F(cuArrayDestroy)       \
  F(cuMemAddressReserve) F(cuMemCreate) F(cuMemMap) F(cuMemSetAccess) F(cuMemUnmap) F(cuMemRelease)
// clang-format on

struct Driver {
#define MEMBER(name) decltype(&::name) name = nullptr;
  DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
};

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

// Returns the name without the suffix of its version, as cuGetProcAddress takes it.
std::string plain(std::string name) {
  const auto suffix = name.rfind("_v");
  return suffix == std::string::npos ? name : name.substr(0, suffix);
}

Driver find(const char* way) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "no driver: %s\n", dlerror());
    std::exit(3);
  }
  Driver driver;
  if (std::strcmp(way, "dlsym") == 0) {
#define BY_DLSYM(name) \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, TEXT(name)));
    DRIVER_FUNCTIONS(BY_DLSYM)
#undef BY_DLSYM
    return driver;
  }
  const auto lookup = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t,
                                                    CUdriverProcAddressQueryResult*)>(
      dlsym(library, "cuGetProcAddress_v2"));
  const cuuint64_t flags = std::strcmp(way, "lookup_per_thread") == 0
                               ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                               : CU_GET_PROC_ADDRESS_DEFAULT;
  void* found = nullptr;
#define BY_LOOKUP(name)                                                      \
  found = nullptr;                                                           \
  REQUIRE(lookup(plain(TEXT(name)).c_str(), &found, 12000, flags, nullptr)); \
  driver.name = reinterpret_cast<decltype(driver.name)>(found);
  DRIVER_FUNCTIONS(BY_LOOKUP)
#undef BY_LOOKUP
  return driver;
}

class Work {
 public:
  explicit Work(const Driver& driver) : driver_(driver) {
    CUmodule module = nullptr;
    REQUIRE(driver_.cuModuleLoadData(&module, ptx.c_str()));
    REQUIRE(driver_.cuModuleGetFunction(&fill_, module, "fill"));
    CUdeviceptr nowhere = 0;
    unsigned count = 0;
    unsigned seed = 0;
    void* arguments[] = {&nowhere, &count, &seed};
    REQUIRE(driver_.cuLaunchKernel(fill_, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
    REQUIRE(driver_.cuCtxSynchronize());
  }
  void fill_and_check(const char* name, CUdeviceptr data, unsigned count, unsigned seed) const {
    void* arguments[] = {&data, &count, &seed};
    REQUIRE(driver_.cuLaunchKernel(fill_, (count + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr,
                                   arguments, nullptr));
    REQUIRE(driver_.cuCtxSynchronize());
    std::vector<unsigned> got(count);
    REQUIRE(driver_.cuMemcpyDtoH(got.data(), data, count * sizeof(unsigned)));
    bool as_the_host = true;
    for (unsigned i = 0; i < count; ++i) as_the_host &= got[i] == i * 2654435761u + seed;
    std::printf("%s: as the host computes it: %s\n", name, as_the_host ? "yes" : "no");
  }

 private:
  const Driver& driver_;
  CUfunction fill_ = nullptr;
};

void linear(const Driver& driver, const Work& work, Account& account) {
  CUdeviceptr kept = 0;
  int line = __LINE__ + 1;
  REQUIRE(driver.cuMemAlloc(&kept, 64 * MiB));
  account.allocated("device", 64 * MiB);
  account.leaked({"cuMemAlloc_v2", "device", "linear", line, 1, 64 * MiB});
  work.fill_and_check("linear", kept, 16 << 20, 1);
  std::size_t pitch = 0;
  line = __LINE__ + 1;
  REQUIRE(driver.cuMemAllocPitch(&kept, &pitch, 4096, 256, 4));
  account.allocated("device", 1 * MiB);
  account.leaked({"cuMemAllocPitch_v2", "device", "linear", line, 1, 1 * MiB});
  for (unsigned i = 0; i < 20; ++i) {
    CUdeviceptr passing = 0;
    REQUIRE(driver.cuMemAlloc(&passing, 4096));
    account.allocated("device", 4096);
    REQUIRE(driver.cuMemFree(passing));
    account.freed("device", 4096);
  }
}

void managed(const Driver& driver, const Work& work, Account& account) {
  CUdeviceptr managed = 0;
  const int line = __LINE__ + 1;
  REQUIRE(driver.cuMemAllocManaged(&managed, 70000, CU_MEM_ATTACH_GLOBAL));
  account.allocated("managed", 70000);
  account.leaked({"cuMemAllocManaged", "managed", "managed", line, 1, 70000});
  work.fill_and_check("managed", managed, 17500, 2);
}

void host(const Driver& driver, const Work& work, Account& account) {
  void* one = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(driver.cuMemAllocHost(&one, 10000));
  account.allocated("pinned", 10000);
  account.leaked({"cuMemAllocHost_v2", "pinned", "host", line, 1, 10000});
  work.fill_and_check("pinned", reinterpret_cast<CUdeviceptr>(one), 2500, 3);
  void* two = nullptr;
  line = __LINE__ + 1;
  REQUIRE(driver.cuMemHostAlloc(&two, 20000, 0));
  account.allocated("pinned", 20000);
  account.leaked({"cuMemHostAlloc", "pinned", "host", line, 1, 20000});
  void* freed = nullptr;
  REQUIRE(driver.cuMemAllocHost(&freed, 30000));
  account.allocated("pinned", 30000);
  REQUIRE(driver.cuMemFreeHost(freed));
  account.freed("pinned", 30000);

  constexpr std::size_t bytes = 65536;
  void* memory = std::aligned_alloc(4096, bytes);
  if (memory == nullptr) std::exit(3);
  REQUIRE(driver.cuMemHostRegister(memory, bytes, 0));
  account.allocated("registered", bytes);
  REQUIRE(driver.cuMemHostUnregister(memory));
  account.freed("registered", bytes);
  line = __LINE__ + 1;
  REQUIRE(driver.cuMemHostRegister(memory, bytes, 0));
  account.allocated("registered", bytes);
  account.leaked({"cuMemHostRegister_v2", "registered", "host", line, 1, bytes});
}

void stream_ordered(const Driver& driver, const Work& work, Account& account) {
  CUdeviceptr kept = 0;
  const int line = __LINE__ + 1;
  REQUIRE(driver.cuMemAllocAsync(&kept, 32 * MiB, nullptr));
  account.allocated("stream_ordered", 32 * MiB);
  account.leaked({"cuMemAllocAsync", "stream_ordered", "stream_ordered", line, 1, 32 * MiB});
  work.fill_and_check("stream-ordered", kept, 8 << 20, 4);
  CUdeviceptr freed = 0;
  REQUIRE(driver.cuMemAllocAsync(&freed, 5000, nullptr));
  account.allocated("stream_ordered", 5000);
  REQUIRE(driver.cuMemFreeAsync(freed, nullptr));
  account.freed("stream_ordered", 5000);
  REQUIRE(driver.cuCtxSynchronize());
}

void arrays(const Driver& driver, Account& account) {
  CUDA_ARRAY_DESCRIPTOR plane{};
  plane.Width = 512;
  plane.Height = 128;
  plane.Format = CU_AD_FORMAT_FLOAT;
  plane.NumChannels = 1;
  CUarray kept = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(driver.cuArrayCreate(&kept, &plane));
  account.allocated("array", 262144);
  account.leaked({"cuArrayCreate_v2", "array", "arrays", line, 1, 262144});
  CUDA_ARRAY3D_DESCRIPTOR solid{};
  solid.Width = 64;
  solid.Height = 64;
  solid.Depth = 16;
  solid.Format = CU_AD_FORMAT_FLOAT;
  solid.NumChannels = 2;
  CUarray freed = nullptr;
  REQUIRE(driver.cuArray3DCreate(&freed, &solid));
  account.allocated("array", std::size_t{64} * 64 * 16 * 8);
  REQUIRE(driver.cuArrayDestroy(freed));
  account.freed("array", std::size_t{64} * 64 * 16 * 8);
}

void virtual_memory(const Driver& driver, const Work& work, Account& account) {
  const CUmemAllocationProp prop = device_mapping::on_device();
  const CUmemAccessDesc access = device_mapping::reads_and_writes();
  CUdeviceptr range = 0;
  REQUIRE(driver.cuMemAddressReserve(&range, 64 * MiB, 0, 0, 0));
  CUmemGenericAllocationHandle handle{};
  const int line = __LINE__ + 1;
  REQUIRE(driver.cuMemCreate(&handle, 32 * MiB, &prop, 0));
  account.allocated("vmm", 32 * MiB);
  account.leaked({"cuMemCreate", "vmm", "virtual_memory", line, 1, 32 * MiB});
  REQUIRE(driver.cuMemMap(range, 32 * MiB, 0, handle, 0));
  REQUIRE(driver.cuMemSetAccess(range, 32 * MiB, &access, 1));
  work.fill_and_check("virtual memory", range, 8 << 20, 5);
  REQUIRE(driver.cuMemUnmap(range, 32 * MiB));  // The handle is never released.

  REQUIRE(driver.cuMemCreate(&handle, 16 * MiB, &prop, 0));
  account.allocated("vmm", 16 * MiB);
  REQUIRE(driver.cuMemRelease(handle));
  account.freed("vmm", 16 * MiB);
}

long long used_bytes(const Driver& driver) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  REQUIRE(driver.cuMemGetInfo(&free_bytes, &total_bytes));
  return static_cast<long long>(total_bytes) - static_cast<long long>(free_bytes);
}

}  // namespace memory

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const memory::Driver driver = memory::find(argv[1]);
  CUdevice device = 0;
  CUcontext context = nullptr;
  REQUIRE(driver.cuInit(0));
  REQUIRE(driver.cuDeviceGet(&device, 0));
  REQUIRE(driver.cuDevicePrimaryCtxRetain(&context, device));
  REQUIRE(driver.cuCtxSetCurrent(context));
  const memory::Work work(driver);
  const long long before = memory::used_bytes(driver);
  expected::Account account;
  memory::linear(driver, work, account);
  const long long before_managed = memory::used_bytes(driver);
  memory::managed(driver, work, account);
  std::printf("memory: {\"kind\":\"managed\",\"taken_bytes\":%lld}\n",
              memory::used_bytes(driver) - before_managed);
  memory::host(driver, work, account);
  memory::stream_ordered(driver, work, account);
  memory::arrays(driver, account);
  memory::virtual_memory(driver, work, account);
  const long long after = memory::used_bytes(driver);
  std::printf("memory: {\"taken_bytes\":%lld,\"used_bytes\":%lld}\n", after - before, after);
  account.print();
}
