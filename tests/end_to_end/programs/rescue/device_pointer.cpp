// Tries the uses of a pointer to device memory, and prints the results as the program sees them:
//
//     device_pointer [name=value]...
//
//     leave=MIB      takes device memory first, until this much is free;
//     bytes=N        size of each allocation;
//     count=N        number of allocations;
//     rounds=N       number of rounds of allocations;
//     make=pitch     allocates by cudaMallocPitch;
//     make=3d        allocates by cudaMalloc3D;
//     make=async     allocates by cudaMallocAsync;
//     make=own       allocates from a memory pool that the program made;
//     make=shared    allocates from such a pool that other processes could open;
//     make=limited   allocates from such a pool that has a limit;
//     make=current   makes the program's own pool the device's current one, and allocates from it;
//     free=async     frees in stream order;
//     free=elsewhere frees in the order of another context's stream;
//     free=thread    frees in another thread;
//     free=capture   frees while a stream is captured;
//     free=beside    frees in another stream's order while a stream is captured;
//     end=reset      ends the context instead of freeing;
//     end=keep       frees nothing;
//     more=N         makes a further request of this size;
//     tried=N        tries the contents of N bytes at the end of each allocation, not of all;
//     peer=before    allows device 1 to use device 0's memory before the allocation;
//     peer=after     allows it after the allocation;
//     peer=taken     allows it and takes it back;
//
// Each line is a result, without addresses. The last line is JSON with facts that a test needs.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/end_to_end/programs/create_context.hpp"
#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/rescue/filling.hpp"

namespace {

using cuwarden::test::free_bytes;

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::map<std::string, std::string> options;
std::size_t number(const char* name, std::size_t otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : std::strtoull(found->second.c_str(), nullptr, 0);
}
bool is(const char* name, const char* value) {
  const auto found = options.find(name);
  return found != options.end() && found->second == value;
}

cudaMemPool_t own_pool = nullptr;

// The memory pool from which stream-ordered memory comes.
cudaMemPool_t pool_of_request() {
  cudaMemPool_t found = own_pool;
  if (is("make", "async")) cudaDeviceGetDefaultMemPool(&found, 0);
  return found;
}

void make_own_pool() {
  cudaMemPoolProps wanted{};
  wanted.allocType = cudaMemAllocationTypePinned;
  wanted.location.type = cudaMemLocationTypeDevice;
  wanted.handleTypes =
      is("make", "shared") ? cudaMemHandleTypePosixFileDescriptor : cudaMemHandleTypeNone;
  if (is("make", "limited")) wanted.maxSize = 32 * kMiB;
  cudaMemPoolCreate(&own_pool, &wanted);
  if (is("make", "current")) cudaDeviceSetMemPool(0, own_pool);
}

constexpr std::size_t kWidth = 10'000;

// Allocates. Sets `bytes` to the size that the allocation really has; rows are longer than asked
// for.
int make(void** made, std::size_t& bytes) {
  const std::size_t rows = number("bytes", 100 * kMiB + 12345) / kWidth / 10 * 10;
  std::size_t pitch = 0;
  int result = -1;
  if (is("make", "pitch")) {
    result = cudaMallocPitch(made, &pitch, kWidth, rows);
  } else if (is("make", "3d")) {
    cudaPitchedPtr given{};
    result = cudaMalloc3D(&given, {kWidth, rows / 10, 10});
    *made = given.ptr, pitch = given.pitch;
  } else if (is("make", "async") || is("make", "current")) {
    return cudaMallocAsync(made, bytes, nullptr);
  } else if (own_pool != nullptr) {
    return cudaMallocFromPoolAsync(made, bytes, own_pool, nullptr);
  } else {
    return cudaMalloc(made, bytes);
  }
  if (result == 0) bytes = pitch * rows;
  return result;
}

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

void print_answers(const char* where, char* base, std::size_t offset) {
  char* const pointer = base + offset;
  cudaPointerAttributes runtime{};
  const int runtime_result = cudaPointerGetAttributes(&runtime, pointer);
  std::printf("%s runtime: %d type %d device %d itself %d host %d\n", where, runtime_result,
              runtime.type, runtime.device, runtime.devicePointer == pointer,
              runtime.hostPointer != nullptr);
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  const int range_result = cuMemGetAddressRange(&start, &bytes, address_of(pointer));
  std::printf("%s range: %d starts %d bytes %zu\n", where, range_result,
              range_result == 0 ? start == address_of(base) : 0, range_result == 0 ? bytes : 0);
  constexpr CUpointer_attribute small[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_MAPPED};
  for (const CUpointer_attribute attribute : small) {
    unsigned value = 0;
    const int result = cuPointerGetAttribute(&value, attribute, address_of(pointer));
    std::printf("%s attribute %d: %d, %u\n", where, attribute, result, result == 0 ? value : 0);
  }
  constexpr CUpointer_attribute large[] = {
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_DEVICE_POINTER,   CU_POINTER_ATTRIBUTE_HOST_POINTER,
      CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
  CUcontext current = nullptr;
  cuCtxGetCurrent(&current);
  std::uint64_t values[std::size(large)] = {};
  void* results[std::size(large)];
  for (std::size_t i = 0; i < std::size(large); ++i) {
    std::uint64_t value = 0;
    const int result = cuPointerGetAttribute(&value, large[i], address_of(pointer));
    const bool is_address = i == 0 || i == 2;
    std::printf("%s attribute %d: %d, %llu\n", where, large[i], result,
                result != 0  ? 0ull
                : is_address ? value - address_of(base)
                : i == 4     ? value == reinterpret_cast<std::uint64_t>(current)
                : i == 5     ? value == reinterpret_cast<std::uint64_t>(pool_of_request())
                             : static_cast<unsigned long long>(value));
    results[i] = &values[i];
  }
  auto attributes = std::vector<CUpointer_attribute>(std::begin(large), std::end(large));
  const int result = cuPointerGetAttributes(static_cast<unsigned>(attributes.size()),
                                            attributes.data(), results, address_of(pointer));
  // The id is equal at each address, and an attribute that is set holds for all of the allocation.
  std::uint64_t id = 0, first_id = 0;
  unsigned on = 1, found_on = 0;
  cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address_of(pointer));
  cuPointerGetAttribute(&first_id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address_of(base));
  const int set = cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address_of(base));
  cuPointerGetAttribute(&found_on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address_of(pointer));
  CUmemGenericAllocationHandle handle = 0;
  std::printf("%s buffer: %d, set: %d %u, handle: %d\n", where, id == first_id && id != 0, set,
              found_on, cuMemRetainAllocationHandle(&handle, pointer));
  std::printf("%s attributes: %d start %llu size %llu itself %llu host %llu\n", where, result,
              values[0] - address_of(base), static_cast<unsigned long long>(values[1]),
              values[2] - address_of(base), static_cast<unsigned long long>(values[3]));
}

void check_data(char* memory, std::size_t bytes) {
  std::vector<unsigned char> sent(bytes), got(bytes);
  std::uint64_t state = 88172645463325252u;
  for (std::size_t at = 0; at < bytes; at += sizeof state) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    std::memcpy(&sent[at], &state, std::min(sizeof state, bytes - at));
  }
  const auto same = [&] { return std::memcmp(sent.data(), got.data(), bytes) == 0; };
  int result = cudaMemcpy(memory, sent.data(), bytes, cudaMemcpyHostToDevice);
  result |= cudaMemcpy(got.data(), memory, bytes, cudaMemcpyDeviceToHost);
  std::printf("copied: %d, same %d\n", result, same());
  result = cudaMemset(memory + bytes / 3, 0x5a, bytes / 3);
  std::memset(sent.data() + bytes / 3, 0x5a, bytes / 3);
  result |= cudaMemcpy(got.data(), memory, bytes, cudaMemcpyDefault);
  std::printf("set: %d, same %d\n", result, same());
  const std::size_t part = bytes / 4 / 4096 * 4096;
  result = cudaMemcpy(memory, memory + 2 * part, part, cudaMemcpyDeviceToDevice);
  std::memmove(sent.data(), sent.data() + 2 * part, part);
  result |= cudaMemcpy(got.data(), memory, bytes, cudaMemcpyDeviceToHost);
  std::printf("within: %d, same %d\n", result, same());
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  result = cudaMemsetAsync(memory + 1, 7, bytes - 2, stream);
  std::memset(sent.data() + 1, 7, bytes - 2);
  result |= cudaMemcpyAsync(got.data(), memory, bytes, cudaMemcpyDeviceToHost, stream);
  result |= cudaStreamSynchronize(stream);
  std::printf("in a stream: %d, same %d\n", result, same());
  const std::size_t pitch = 8192, width = 5000, rows = bytes / pitch;
  result = cudaMemcpy2D(memory, pitch, got.data(), width, width, rows, cudaMemcpyHostToDevice);
  for (std::size_t row = 0; row < rows; ++row)
    std::memcpy(sent.data() + row * pitch, got.data() + row * width, width);
  std::vector<unsigned char> all(bytes);
  result |= cudaMemcpy(all.data(), memory, bytes, cudaMemcpyDeviceToHost);
  std::printf("in rows: %d, same %d\n", result, all == sent);
  cudaStreamDestroy(stream);
}

// Device 1 is the peer that asks for access.
void set_peer(bool may) {
  cudaSetDevice(1);
  const int result = may ? cudaDeviceEnablePeerAccess(0, 0) : cudaDeviceDisablePeerAccess(0);
  std::printf("peer: %d\n", result);
  cudaSetDevice(0);
}

// Returns the access that device 1 has to the first and last byte; -1 if the driver does not tell.
int peer_access(const char* memory, std::size_t bytes) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = 1;
  unsigned long long first = 0, last = 0;
  if (cuMemGetAccess(&first, &location, address_of(memory)) != CUDA_SUCCESS ||
      cuMemGetAccess(&last, &location, address_of(memory + bytes - 1)) != CUDA_SUCCESS)
    return -1;
  return first == last ? static_cast<int>(first) : -2;
}

void check_peer_copies(char* memory, std::size_t bytes) {
  std::vector<unsigned char> sent(bytes, 0xa5), got(bytes);
  void* there = nullptr;
  cudaSetDevice(1);
  int result = cudaMalloc(&there, bytes);
  cudaSetDevice(0);
  result |= cudaMemcpy(memory, sent.data(), bytes, cudaMemcpyDefault);
  result |= cudaMemcpyPeer(there, 1, memory, 0, bytes);
  result |= cudaMemset(memory, 0, bytes);
  result |= cudaMemcpyPeer(memory, 0, there, 1, bytes);
  result |= cudaMemcpy(got.data(), memory, bytes, cudaMemcpyDefault);
  std::printf("to the peer and back: %d, same %d\n", result, got == sent);
  // The copies name no device, neither that of the source nor that of the target.
  for (const int current : {0, 1}) {
    cudaSetDevice(current);
    std::fill(sent.begin(), sent.end(), static_cast<unsigned char>(0x30 + current));
    result = cudaMemcpy(memory, sent.data(), bytes, cudaMemcpyHostToDevice);
    result |= cudaMemcpy(there, memory, bytes, cudaMemcpyDeviceToDevice);
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    result |= cudaMemcpyAsync(memory, there, bytes, cudaMemcpyDefault, stream);
    result |= cudaMemcpyAsync(got.data(), memory, bytes, cudaMemcpyDefault, stream);
    result |= cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    std::printf("from device %d: %d, same %d\n", current, result, got == sent);
  }
  cudaSetDevice(0);
  cudaFree(there);
}

// The driver keeps the memory of streams that ended for later streams. Has it take that memory for
// the streams of this program before the device's free bytes are read.
void make_room_for_streams() {
  CUstream streams[6]{};
  for (CUstream& stream : streams) cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  for (const CUstream stream : streams) cuStreamDestroy(stream);
}

CUcontext other_context = nullptr;
void make_other_context() {
  const int result = cuwarden::test::create_context(&other_context, 0);
  std::printf("another context: %d\n", result);
  make_room_for_streams();
  cuCtxPopCurrent(&other_context);
}

int free_it(char* memory) {
  if (is("free", "async")) {
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    const int result = cudaFreeAsync(memory, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    return result;
  }
  if (is("free", "elsewhere")) {
    CUstream stream = nullptr;
    cuCtxPushCurrent(other_context);
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cuMemsetD8Async(address_of(memory), 1, 4096, stream);
    cuCtxPopCurrent(&other_context);
    const int result = cudaFreeAsync(memory, stream);
    cuStreamSynchronize(stream);
    cuStreamDestroy(stream);
    return result;
  }
  if (is("free", "thread")) {
    int result = -1;
    std::thread([&] { result = cudaFree(memory); }).join();
    return result;
  }
  if (is("free", "capture") || is("free", "beside")) {
    cudaStream_t stream = nullptr, beside = nullptr;
    cudaStreamCreate(&stream);
    // Each stream takes room of its own.
    if (is("free", "beside")) cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    const int result = is("free", "beside") ? cudaFreeAsync(memory, beside) : cudaFree(memory);
    cudaGraph_t graph = nullptr;
    const int ended = cudaStreamEndCapture(stream, &graph);
    std::printf("capture ended: %d\n", ended);
    if (graph != nullptr) cudaGraphDestroy(graph);
    if (beside != nullptr) cudaStreamSynchronize(beside);
    if (beside != nullptr) cudaStreamDestroy(beside);
    cudaStreamDestroy(stream);
    return result;
  }
  return cudaFree(memory);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  cudaFree(nullptr);
  make_room_for_streams();
  if (is("free", "elsewhere")) make_other_context();
  const bool has_peer = options.count("peer") != 0;
  if (has_peer && !is("peer", "after")) set_peer(true);
  std::size_t bytes = number("bytes", 100 * kMiB + 12345);
  const std::size_t count = number("count", 1);
  if (is("make", "own") || is("make", "shared") || is("make", "limited") || is("make", "current"))
    make_own_pool();
  if (options.count("leave") != 0) fill_device(number("leave", 0) * kMiB);
  const std::size_t before = free_bytes();
  std::vector<char*> all;
  for (std::size_t i = 0; i < count; ++i) {
    void* made = nullptr;
    const int result = make(&made, bytes);
    std::printf("cudaMalloc: %d\n", result);
    if (result == 0) all.push_back(static_cast<char*>(made));
  }
  void* more = nullptr;
  if (options.count("more") != 0) std::printf("more: %d\n", cudaMalloc(&more, number("more", 0)));
  const std::size_t taken = before - free_bytes();
  if (is("peer", "after")) set_peer(true);
  if (is("peer", "taken")) set_peer(false);
  const int access = has_peer && !all.empty() ? peer_access(all[0], bytes) : -1;
  if (has_peer && !all.empty()) check_peer_copies(all[0], bytes);
  for (char* const memory : all) {
    std::printf("%zu bytes, aligned: %d\n", bytes, address_of(memory) % 512 == 0);
    for (const auto& [where, offset] : {std::pair<const char*, std::size_t>{"first", 0},
                                        {"middle", bytes / 2 + 1},
                                        {"last", bytes - 1}})
      print_answers(where, memory, offset);
    const std::size_t tried = std::min(bytes, number("tried", bytes));
    check_data(memory + (bytes - tried), tried);
    std::printf("inner free: %d\n", cudaFree(memory + 512));
    cudaGetLastError();
  }
  for (std::size_t round = 1; round < number("rounds", 1); ++round) {
    for (char* const memory : all) cudaFree(memory);
    for (char*& memory : all) {
      void* made = nullptr;
      std::printf("again: %d\n", make(&made, bytes));
      memory = static_cast<char*>(made);
    }
  }
  cudaIpcMemHandle_t handle;
  const int ipc = all.empty() ? -1 : cudaIpcGetMemHandle(&handle, all[0]);
  cudaGetLastError();
  if (is("end", "reset")) {
    std::printf("reset: %d\n", cudaDeviceReset());
    cudaFree(nullptr);
  } else if (!is("end", "keep")) {
    for (char* const memory : all) std::printf("free: %d\n", free_it(memory));
    for (char* const memory : all) std::printf("twice: %d\n", cudaFree(memory));
    cudaGetLastError();
  }
  cudaFree(more);
  const std::size_t after = free_bytes();
  std::printf(
      "{\"free_before\":%zu,\"taken\":%zu,\"free_after\":%zu,\"bytes\":%zu,\"count\":%zu,"
      "\"ipc\":%d,\"served\":%zu,\"peer_access\":%d}\n",
      before, taken, after, bytes, count, ipc, all.size(), access);
  return 0;
}
