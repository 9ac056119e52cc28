// Asks CUDA about page-locked memory, copies and frees it, and prints the results:
//
//     pinned_pointer BYTES FLAGS [capture|reset]
//
// The lines have no addresses. `capture` frees while a stream is captured, `reset` ends the context
// instead.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

void print_answers(const char* where, char* base, std::size_t offset) {
  char* const pointer = base + offset;
  cudaPointerAttributes runtime{};
  const int result = cudaPointerGetAttributes(&runtime, pointer);
  std::printf("%s runtime: %d type %d device %d device's %d host's %d\n", where, result,
              runtime.type, runtime.device, runtime.devicePointer == pointer,
              runtime.hostPointer == pointer);
  void* device = nullptr;
  unsigned flags = 99;
  const int device_result = cudaHostGetDevicePointer(&device, pointer, 0);
  const int flags_result = cudaHostGetFlags(&flags, pointer);
  std::printf("%s device pointer: %d %d flags: %d %u\n", where, device_result, device == pointer,
              flags_result, flags);
  CUdeviceptr start = 0, range_start = 0;
  std::size_t bytes = 0, range_bytes = 0;
  const int range = cuMemGetAddressRange(&start, &bytes, address_of(pointer));
  const int attributes[] = {
      cuPointerGetAttribute(&range_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                            address_of(pointer)),
      cuPointerGetAttribute(&range_bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address_of(pointer))};
  std::printf("%s range: %d %d %zu, %d %d %d %zu\n", where, range, start == address_of(base), bytes,
              attributes[0], range_start == address_of(base), attributes[1], range_bytes);
  unsigned long long id = 0, first = 0;
  cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address_of(pointer));
  cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, address_of(base));
  unsigned type = 0;
  void* host = nullptr;
  CUcontext context = nullptr, current = nullptr;
  cuCtxGetCurrent(&current);
  cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(pointer));
  cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address_of(pointer));
  cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address_of(pointer));
  std::printf("%s id: %d type %u host %d context %d\n", where, id == first && id != 0, type,
              host == pointer, context == current);
}

void check_data(char* memory, std::size_t bytes) {
  void* device = nullptr;
  int result = cudaMalloc(&device, bytes);
  std::memset(memory, 0x5b, bytes);
  result |= cudaMemcpyAsync(device, memory, bytes, cudaMemcpyHostToDevice, nullptr);
  result |= cudaStreamSynchronize(nullptr);
  std::memset(memory, 0, bytes);
  result |= cudaMemcpyAsync(memory, device, bytes, cudaMemcpyDefault, nullptr);
  result |= cudaDeviceSynchronize();
  bool same = true;
  for (std::size_t i = 0; i < bytes; ++i) same = same && memory[i] == 0x5b;
  std::printf("copied: %d, same %d\n", result, same);
  cudaFree(device);
}

int free_under_capture(void* memory) {
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  const int result = cudaFreeHost(memory);
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 0);
  const unsigned flags = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 0));
  const std::string how = argc > 3 ? argv[3] : "";
  cudaFree(nullptr);
  std::vector<char*> all;
  for (int i = 0; i < 4; ++i) {
    void* made = nullptr;
    const int result =
        i == 3 && flags == 0 ? cudaMallocHost(&made, bytes) : cudaHostAlloc(&made, bytes, flags);
    std::printf("allocated: %d %d aligned %d\n", result, made != nullptr,
                address_of(made) % 512 == 0);
    if (result == 0 && made != nullptr) all.push_back(static_cast<char*>(made));
    cudaGetLastError();
  }
  for (char* const memory : all) {
    std::memset(memory, 1, bytes);
    print_answers("first", memory, 0);
    print_answers("last", memory, bytes - 1);
    check_data(memory, bytes);
    std::printf("inner free: %d, unregister: %d, as device memory: %d\n",
                cudaFreeHost(memory + bytes / 2 + 1), cudaHostUnregister(memory), cudaFree(memory));
    cudaGetLastError();
  }
  if (how == "reset") {
    std::printf("reset: %d\n", cudaDeviceReset());
    return 0;
  }
  for (char* const memory : all)
    std::printf("free: %d\n", how == "capture" ? free_under_capture(memory)
                                               : static_cast<int>(cudaFreeHost(memory)));
  for (char* const memory : all) std::printf("twice: %d\n", cudaFreeHost(memory));
  return 0;
}
