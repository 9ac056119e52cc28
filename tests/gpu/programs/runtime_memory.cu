// Every kind of memory that the runtime API gives, worked on by a kernel. Some is freed, some is
// leaked, and the program's own account of both is its last line. Built three times: with the
// static libcudart, with the shared one, and for a default stream per thread.
#include <cuda.h>

#include <cstdlib>

#include "samples/driver_entry_point.hpp"
#include "tests/gpu/programs/device_mapping.hpp"
#include "tests/gpu/programs/device_work.cuh"

namespace memory {

using expected::Account;

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t words(std::size_t bytes) { return bytes / sizeof(unsigned); }

void linear(Account& account) {
  void* small = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMalloc(&small, 1000));
  account.allocated("device", 1000);
  account.leaked({"cudaMalloc", "device", "linear", line, 1, 1000});
  void* large = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cudaMalloc(&large, 64 * MiB));
  account.allocated("device", 64 * MiB);
  account.leaked({"cudaMalloc", "device", "linear", line, 1, 64 * MiB});
  work::fill_and_check("linear small", small, 250, 1);
  work::fill_and_check("linear large", large, words(64 * MiB), 2);
  for (int i = 0; i < 50; ++i) {
    void* passing = nullptr;
    REQUIRE(cudaMalloc(&passing, 3 * MiB));
    account.allocated("device", 3 * MiB);
    if (i % 10 == 0) work::fill_and_check("linear passing", passing, words(3 * MiB), 3);
    REQUIRE(cudaFree(passing));
    account.freed("device", 3 * MiB);
  }
}

// Widths are multiples of every pitch that a device may choose, so that bytes are exact.
void pitched(Account& account) {
  constexpr std::size_t width = 4096;
  void* rows = nullptr;
  std::size_t pitch = 0;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocPitch(&rows, &pitch, width, 512));
  account.allocated("device", width * 512);
  account.leaked({"cudaMallocPitch", "device", "pitched", line, 1, width * 512});
  work::fill_and_check("pitched", rows, words(width * 512), 4);
  cudaPitchedPtr box{};
  line = __LINE__ + 1;
  REQUIRE(cudaMalloc3D(&box, cudaExtent{width, 16, 32}));
  account.allocated("device", width * 16 * 32);
  account.leaked({"cudaMalloc3D", "device", "pitched", line, 1, width * 16 * 32});
  work::fill_and_check("3D", box.ptr, words(width * 16 * 32), 5);
  void* freed = nullptr;
  REQUIRE(cudaMallocPitch(&freed, &pitch, width, 100));
  account.allocated("device", width * 100);
  REQUIRE(cudaFree(freed));
  account.freed("device", width * 100);
}

void pinned(Account& account) {
  void* one = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocHost(&one, 1 * MiB));
  account.allocated("pinned", 1 * MiB);
  account.leaked({"cudaMallocHost", "pinned", "pinned", line, 1, 1 * MiB});
  void* two = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cudaHostAlloc(&two, 30000, cudaHostAllocMapped));
  account.allocated("pinned", 30000);
  account.leaked({"cudaHostAlloc", "pinned", "pinned", line, 1, 30000});
  work::fill_and_check("pinned", one, words(1 * MiB), 6);
  work::fill_and_check("pinned and mapped", two, words(30000), 7);
  void* freed = nullptr;
  REQUIRE(cudaMallocHost(&freed, 5000));
  account.allocated("pinned", 5000);
  REQUIRE(cudaFreeHost(freed));
  account.freed("pinned", 5000);
}

void registered(Account& account) {
  constexpr std::size_t bytes = 256 * 1024;
  void* kept = std::aligned_alloc(4096, bytes);
  void* undone = std::aligned_alloc(4096, bytes);
  if (kept == nullptr || undone == nullptr) std::exit(3);
  int line = __LINE__ + 1;
  REQUIRE(cudaHostRegister(kept, bytes, cudaHostRegisterDefault));
  account.allocated("registered", bytes);
  account.leaked({"cudaHostRegister", "registered", "registered", line, 1, bytes});
  REQUIRE(cudaHostRegister(undone, bytes, cudaHostRegisterDefault));
  account.allocated("registered", bytes);
  work::fill_and_check("registered", kept, words(bytes), 8);
  REQUIRE(cudaHostUnregister(undone));
  account.freed("registered", bytes);
  std::free(undone);
}

void managed(Account& account) {
  void* kept = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocManaged(&kept, 70000));
  account.allocated("managed", 70000);
  account.leaked({"cudaMallocManaged", "managed", "managed", line, 1, 70000});
  work::fill_and_check("managed", kept, words(70000), 9);
  void* freed = nullptr;
  REQUIRE(cudaMallocManaged(&freed, 80000));
  account.allocated("managed", 80000);
  REQUIRE(cudaFree(freed));
  account.freed("managed", 80000);
}

void stream_ordered(Account& account) {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream));
  void* kept = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocAsync(&kept, 32 * MiB, stream));
  account.allocated("stream_ordered", 32 * MiB);
  account.leaked({"cudaMallocAsync", "stream_ordered", "stream_ordered", line, 1, 32 * MiB});
  work::fill_and_check("stream-ordered", kept, words(32 * MiB), 10, stream);
  void* on_default = nullptr;
  REQUIRE(cudaMallocAsync(&on_default, 10000, nullptr));
  account.allocated("stream_ordered", 10000);
  work::fill_and_check("stream-ordered, default stream", on_default, words(10000), 11);
  REQUIRE(cudaFreeAsync(on_default, nullptr));
  account.freed("stream_ordered", 10000);
  void* across = nullptr;
  REQUIRE(cudaMallocAsync(&across, 20000, stream));
  account.allocated("stream_ordered", 20000);
  REQUIRE(cudaStreamSynchronize(stream));
  REQUIRE(cudaFree(across));  // The plain free accepts stream-ordered memory, too.
  account.freed("stream_ordered", 20000);
  REQUIRE(cudaDeviceSynchronize());
}

void pools(Account& account) {
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool = nullptr;
  REQUIRE(cudaMemPoolCreate(&pool, &props));
  void* kept = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocFromPoolAsync(&kept, 4 * MiB, pool, nullptr));
  account.allocated("stream_ordered", 4 * MiB);
  account.leaked({"cudaMallocFromPoolAsync", "stream_ordered", "pools", line, 1, 4 * MiB});
  work::fill_and_check("from a pool", kept, words(4 * MiB), 12);
  void* freed = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&freed, 2 * MiB, pool, nullptr));
  account.allocated("stream_ordered", 2 * MiB);
  REQUIRE(cudaFreeAsync(freed, nullptr));
  account.freed("stream_ordered", 2 * MiB);
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemPoolTrimTo(pool, 0));
}

void arrays(Account& account) {
  const cudaChannelFormatDesc channel = cudaCreateChannelDesc<unsigned>();
  constexpr std::size_t plane_bytes = std::size_t{1024} * 1024 * 4;
  cudaArray_t plane = nullptr;
  int line = __LINE__ + 1;
  REQUIRE(cudaMallocArray(&plane, &channel, 1024, 1024));
  account.allocated("array", plane_bytes);
  account.leaked({"cudaMallocArray", "array", "arrays", line, 1, plane_bytes});

  void* staging = nullptr;
  REQUIRE(cudaMalloc(&staging, plane_bytes));
  account.allocated("device", plane_bytes);
  work::fill_and_check("staging", staging, words(plane_bytes), 13);
  REQUIRE(cudaMemcpy2DToArray(plane, 0, 0, staging, 4096, 4096, 1024, cudaMemcpyDeviceToDevice));
  std::vector<unsigned> back(words(plane_bytes));
  REQUIRE(
      cudaMemcpy2DFromArray(back.data(), 4096, plane, 0, 0, 4096, 1024, cudaMemcpyDeviceToHost));
  work::print_checksum("array", back, 13);
  REQUIRE(cudaFree(staging));
  account.freed("device", plane_bytes);

  constexpr std::size_t solid_bytes = std::size_t{128} * 64 * 32 * 4;
  cudaArray_t solid = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cudaMalloc3DArray(&solid, &channel, cudaExtent{128, 64, 32}));
  account.allocated("array", solid_bytes);
  account.leaked({"cudaMalloc3DArray", "array", "arrays", line, 1, solid_bytes});

  constexpr std::size_t levels = (std::size_t{64} * 64 + 32 * 32 + 16 * 16) * 4;
  cudaMipmappedArray_t mipmapped = nullptr;
  line = __LINE__ + 1;
  REQUIRE(cudaMallocMipmappedArray(&mipmapped, &channel, cudaExtent{64, 64, 0}, 3));
  account.allocated("array", levels);
  account.leaked({"cudaMallocMipmappedArray", "array", "arrays", line, 1, levels});

  REQUIRE(cudaMallocMipmappedArray(&mipmapped, &channel, cudaExtent{64, 64, 0}, 3));
  account.allocated("array", levels);
  REQUIRE(cudaFreeMipmappedArray(mipmapped));
  account.freed("array", levels);
  REQUIRE(cudaMallocArray(&plane, &channel, 1024, 0));
  account.allocated("array", 4096);
  REQUIRE(cudaFreeArray(plane));
  account.freed("array", 4096);
}

// Driver functions that the runtime looks up: this program does not link libcuda.
#define ENTRY(name, version) sample::driver_entry_point<decltype(&name)>(#name, version)

void virtual_memory(Account& account) {
  const auto reserve = ENTRY(cuMemAddressReserve, 10020);
  const auto create = ENTRY(cuMemCreate, 10020);
  const auto map = ENTRY(cuMemMap, 10020);
  const auto set_access = ENTRY(cuMemSetAccess, 10020);
  const auto unmap = ENTRY(cuMemUnmap, 10020);
  const auto release = ENTRY(cuMemRelease, 10020);

  const CUmemAllocationProp prop = device_mapping::on_device();
  const CUmemAccessDesc access = device_mapping::reads_and_writes();
  CUdeviceptr range = 0;
  REQUIRE(reserve(&range, 128 * MiB, 0, 0, 0));

  CUmemGenericAllocationHandle mapped{};
  int line = __LINE__ + 1;
  REQUIRE(create(&mapped, 64 * MiB, &prop, 0));
  account.allocated("vmm", 64 * MiB);
  account.leaked({"cuMemCreate", "vmm", "virtual_memory", line, 1, 64 * MiB});
  REQUIRE(map(range, 64 * MiB, 0, mapped, 0));
  REQUIRE(set_access(range, 64 * MiB, &access, 1));
  REQUIRE(release(mapped));  // The mapping keeps the memory.
  work::fill_and_check("virtual memory", reinterpret_cast<void*>(range), words(64 * MiB), 14);

  CUmemGenericAllocationHandle unmapped{};
  line = __LINE__ + 1;
  REQUIRE(create(&unmapped, 32 * MiB, &prop, 0));
  account.allocated("vmm", 32 * MiB);
  account.leaked({"cuMemCreate", "vmm", "virtual_memory", line, 1, 32 * MiB});
  REQUIRE(map(range + 64 * MiB, 32 * MiB, 0, unmapped, 0));
  REQUIRE(unmap(range + 64 * MiB, 32 * MiB));  // The handle keeps the memory.

  CUmemGenericAllocationHandle gone{};
  REQUIRE(create(&gone, 16 * MiB, &prop, 0));
  account.allocated("vmm", 16 * MiB);
  REQUIRE(map(range + 64 * MiB, 16 * MiB, 0, gone, 0));
  REQUIRE(release(gone));
  REQUIRE(unmap(range + 64 * MiB, 16 * MiB));
  account.freed("vmm", 16 * MiB);
}

}  // namespace memory

int main() {
  const long long before = work::warm_up();
  expected::Account account;
  struct Row {
    const char* name;
    void (*run)(expected::Account&);
  };
  static constexpr Row rows[] = {
      {"linear", memory::linear},
      {"pitched", memory::pitched},
      {"pinned", memory::pinned},
      {"registered", memory::registered},
      {"managed", memory::managed},
      {"stream_ordered", memory::stream_ordered},
      {"pools", memory::pools},
      {"arrays", memory::arrays},
      {"virtual_memory", memory::virtual_memory},
  };
  for (const Row& row : rows) {
    const long long then = work::used_bytes();
    row.run(account);
    std::printf("memory: {\"kind\":\"%s\",\"taken_bytes\":%lld}\n", row.name,
                work::used_bytes() - then);
  }
  const long long after = work::used_bytes();
  std::printf("memory: {\"taken_bytes\":%lld,\"used_bytes\":%lld}\n", after - before, after);
  account.print();
}
