// Entry points for initialisation, versions, and lookups.
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "tools/simulated_gpu/driver/entry.hpp"
#include "tools/simulated_gpu/driver/entry_guard.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// Finds a function by name and version. The rows of one name stand together, oldest first.
CUresult look_up(const char* symbol, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr ||
      flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int driver = simulator().settings.driver_version;
  *function = nullptr;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (version > driver) return CUDA_ERROR_INVALID_VALUE;
  std::size_t low = 0;
  std::size_t high = lookup_row_count;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (std::strcmp(lookup_rows[middle].name, symbol) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const LookupRow* chosen = nullptr;
  bool known = false;
  for (; low < lookup_row_count && std::strcmp(lookup_rows[low].name, symbol) == 0; ++low) {
    known = known || lookup_rows[low].since <= driver;
    if (lookup_rows[low].since <= version) chosen = &lookup_rows[low];
  }
  if (chosen == nullptr) {
    if (known && status != nullptr) *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    // As measured: a caller that asks for the status gets the answer there, and CUDA_SUCCESS.
    return status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  }
  const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  *function = per_thread && chosen->per_thread != nullptr ? chosen->per_thread : chosen->plain;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

// Starts threads that do nothing. As measured, the driver's threads block no signal, so a signal
// for the process that its own threads block is handled in one of them.
void start_threads(int count) {
  for (int i = 0; i < count; ++i)
    std::thread([] {
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);  // for this thread
      for (;;) pause();
    }).detach();
}

}  // namespace

namespace entry {

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
  Locked at;
  if (at.sim.devices.empty()) return CUDA_ERROR_NO_DEVICE;
  if (!at.sim.initialised) {
    arm_end_of_process();
    start_threads(at.sim.settings.threads);
  }
  at.sim.initialised = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = simulator().settings.driver_version;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return look_up(symbol, function, version, flags, nullptr);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return look_up(symbol, function, version, flags, status);
}

CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
