// Memory that came from elsewhere: an imported handle, external memory, another process's memory.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/end_to_end/programs/allocation_calls/calls.hpp"

namespace allocation_calls {

namespace {
constexpr std::size_t page = std::size_t{2} << 20;
}

void imported_handle(Account& account) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle own{};
  REQUIRE(cuMemCreate(&own, page, &prop, 0));
  account.allocated("vmm", page);
  int descriptor = -1;
  REQUIRE(
      cuMemExportToShareableHandle(&descriptor, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  void* shared = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
  CUmemGenericAllocationHandle imported{};
  REQUIRE(
      cuMemImportFromShareableHandle(&imported, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  // An import says nothing of its size: only the mapping does.
  account.allocated("imported", page);
  CUdeviceptr range = 0;
  REQUIRE(cuMemAddressReserve(&range, page, 0, 0, 0));
  REQUIRE(cuMemMap(range, page, 0, imported, 0));
  REQUIRE(cuMemUnmap(range, page));
  REQUIRE(cuMemRelease(own));
  account.freed("vmm", page);
  REQUIRE(cuMemRelease(imported));
  account.freed("imported", page);
}

void imported_external_memory(Account& account) {
  // The descriptor of an exported allocation stands in for what a graphics API would export.
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle own{};
  REQUIRE(cuMemCreate(&own, page, &prop, 0));
  account.allocated("vmm", page);
  for (int i = 0; i < 2; ++i) {
    int descriptor = -1;
    REQUIRE(cuMemExportToShareableHandle(&descriptor, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                         0));
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC memory{};
    memory.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    memory.handle.fd = descriptor;
    memory.size = page;
    CUexternalMemory external = nullptr;
    const int line = __LINE__ + 1;
    REQUIRE(cuImportExternalMemory(&external, &memory));
    account.allocated("imported", page);
    if (i == 0) {
      account.leaked(
          {"cuImportExternalMemory", "imported", "imported_external_memory", line, 1, page});
    } else {
      REQUIRE(cuDestroyExternalMemory(external));
      account.freed("imported", page);
    }
  }
  REQUIRE(cuMemRelease(own));
  account.freed("vmm", page);
}

// Starts this program again to open the memory there; its report is one of its own.
void imported_ipc(Account& account) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, page));
  account.allocated("device", page);
  cudaIpcMemHandle_t handle{};
  REQUIRE(cudaIpcGetMemHandle(&handle, memory));
  std::string text;
  for (const char byte : handle.reserved) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  const pid_t child = fork();
  if (child == 0) {
    // The child's account must not be printed, since it would become the last line of this output.
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(3);
    execl("/proc/self/exe", "allocation_calls", "opened_ipc", text.c_str(), nullptr);
    _exit(3);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) std::exit(3);
  REQUIRE(cudaFree(memory));
  account.freed("device", page);
}

void opened_ipc(Account& account, const char* text) {
  cudaIpcMemHandle_t handle{};
  if (std::strlen(text) != 2 * sizeof handle.reserved) std::exit(2);
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i)
    handle.reserved[i] = static_cast<char>(std::stoul(std::string(text + 2 * i, 2), nullptr, 16));
  void* memory = nullptr;
  REQUIRE(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  account.allocated("imported", page);
  REQUIRE(cudaIpcCloseMemHandle(memory));
  account.freed("imported", page);
  // Opened twice is one allocation under one pointer; the first close does not end it.
  void* again = nullptr;
  REQUIRE(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  account.allocated("imported", page);
  REQUIRE(cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess));
  REQUIRE(cudaIpcCloseMemHandle(memory));
  REQUIRE(cudaIpcCloseMemHandle(again));
  account.freed("imported", page);
  if (again != memory || cudaIpcCloseMemHandle(memory) == cudaSuccess) std::exit(3);
  const int line = __LINE__ + 1;
  REQUIRE(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  account.allocated("imported", page);
  REQUIRE(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  REQUIRE(cudaIpcCloseMemHandle(memory));
  account.leaked({"cudaIpcOpenMemHandle", "imported", "opened_ipc", line, 1, page});
}

}  // namespace allocation_calls
