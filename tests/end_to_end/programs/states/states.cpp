// states NAME: gets into a state that is easily misread, goes on working, and says what it did.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/expected_totals.hpp"
#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr std::size_t bytes = std::size_t{1} << 20;
using expected::Account;

// Ends of captures that never were, and then a real one: its allocation is a node, not memory.
void failing_ends_of_captures(Account& account) {
  CUstream capturing = nullptr, idle = nullptr;
  REQUIRE(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
  REQUIRE(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
  CUgraph graph = nullptr;
  CUcontext context = nullptr;
  if (cuStreamEndCapture(reinterpret_cast<CUstream>(0x1234560), &graph) == CUDA_SUCCESS ||
      cuStreamEndCapture(idle, &graph) == CUDA_SUCCESS)
    std::exit(3);
  REQUIRE(cuCtxPopCurrent(&context));
  if (cuStreamEndCapture(nullptr, &graph) == CUDA_SUCCESS ||
      cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph) == CUDA_SUCCESS)
    std::exit(3);
  REQUIRE(cuCtxPushCurrent(context));
  REQUIRE(cuStreamBeginCapture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr node = 0, memory = 0;
  REQUIRE(cuMemAllocAsync(&node, bytes, capturing));
  REQUIRE(cuMemAllocAsync(&memory, 2 * bytes, idle));
  account.allocated("stream_ordered", 2 * bytes);
  REQUIRE(cuMemFreeAsync(node, capturing));
  REQUIRE(cuStreamEndCapture(capturing, &graph));
  REQUIRE(cuMemFreeAsync(memory, idle));
  account.freed("stream_ordered", 2 * bytes);
}

// A capture whose stream is destroyed is over, though the program did not end it. Ends without exit
// handlers, so that no reading is taken on the way out.
void abandoned_capture(Account& account) {
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  REQUIRE(cuStreamDestroy(stream));
  for (int i = 0; i < 2; ++i) {
    let_time_pass(150);  // more than between two readings
    REQUIRE(cuMemAlloc(&memory, 64 * bytes));
    account.allocated("device", 64 * bytes);
  }
  std::printf("{\"used\":%lld}\n", cuwarden::test::by_driver::used_bytes());
  std::fflush(stdout);
  _exit(0);
}

// A capture that goes on: nothing may disturb it.
void capture_goes_on(Account& account) {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUdeviceptr memory = 0;
  void* pinned = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int i = 0; i < 3; ++i) {
    let_time_pass(120);
    REQUIRE(cuMemAllocAsync(&memory, bytes, stream));
    REQUIRE(cuMemFreeAsync(memory, stream));
  }
  REQUIRE(cuStreamEndCapture(stream, &graph));
  REQUIRE(cudaMallocHost(&pinned, bytes));
  account.allocated("pinned", bytes);
  REQUIRE(cudaFreeHost(pinned));
  account.freed("pinned", bytes);
}

// Devices that are used by handles and pools alone: no context of theirs is ever current.
void devices_without_context(Account& account) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = 1;
  CUmemGenericAllocationHandle handle{};
  REQUIRE(cuMemCreate(&handle, 2 * bytes, &prop, 0));
  account.allocated("vmm", 2 * bytes);
  CUmemPoolProps pool_props{};
  pool_props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool_props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  pool_props.location.id = 2;
  CUmemoryPool pool = nullptr;
  CUdeviceptr memory = 0;
  CUcontext of_third = nullptr;
  REQUIRE(cuDevicePrimaryCtxRetain(&of_third, 2));  // active, never current
  REQUIRE(cuMemPoolCreate(&pool, &pool_props));
  REQUIRE(cuMemAllocFromPoolAsync(&memory, bytes, pool, nullptr));
  account.allocated("stream_ordered", bytes);
}

// Ends a context in a destructor of the program, when the driver no longer answers.
struct EndsInDestructor {
  CUcontext context = nullptr;
  bool reset = false;
  ~EndsInDestructor() {
    if (context != nullptr) std::printf("destroyed: %d\n", static_cast<int>(cuCtxDestroy(context)));
    if (reset) std::printf("reset: %d\n", static_cast<int>(cudaDeviceReset()));
  }
} ends_in_destructor;

extern "C" CUresult cuCtxCreate_v2(CUcontext*, unsigned int, CUdevice);

void context_in_destructor(Account& account) {
  REQUIRE(cuCtxCreate_v2(&ends_in_destructor.context, 0, 0));
  CUdeviceptr memory = 0;
  REQUIRE(cuMemAlloc(&memory, bytes));
  account.allocated("device", bytes);
  account.released("device", bytes);
}

void reset_in_destructor(Account& account) {
  REQUIRE(cudaDeviceReset());
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, bytes));
  account.allocated("device", bytes);
  account.released("device", bytes);
  ends_in_destructor.reset = true;
}

}  // namespace

int main(int argc, char** argv) {
  struct Row {
    const char* name;
    void (*run)(Account&);
  };
  static constexpr Row rows[] = {
      {"failing_ends_of_captures", failing_ends_of_captures},
      {"abandoned_capture", abandoned_capture},
      {"capture_goes_on", capture_goes_on},
      {"devices_without_context", devices_without_context},
      {"context_in_destructor", context_in_destructor},
      {"reset_in_destructor", reset_in_destructor},
  };
  Account account;
  for (const Row& row : rows) {
    if (argc != 2 || std::strcmp(argv[1], row.name) != 0) continue;
    REQUIRE(cuInit(0));
    REQUIRE(cudaFree(nullptr));  // makes the primary context current
    row.run(account);
    account.print();
    return 0;
  }
  std::fprintf(stderr, "states NAME\n");
  return 2;
}
