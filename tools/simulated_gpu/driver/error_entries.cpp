// Entry points for names and descriptions of errors.
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

struct Text {
  CUresult code;
  const char* name;
  const char* description;
};

#define SIM_ERROR(code, description) \
  { code, #code, description }

constexpr Text kTexts[] = {
    SIM_ERROR(CUDA_SUCCESS, "no error"),
    SIM_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    SIM_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    SIM_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    SIM_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    SIM_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    SIM_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    SIM_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    SIM_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    SIM_ERROR(CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
    SIM_ERROR(CUDA_ERROR_NOT_MAPPED, "resource not mapped"),
    SIM_ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    SIM_ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
              "peer access is not supported between these two devices"),
    SIM_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    SIM_ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    SIM_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    SIM_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    SIM_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    SIM_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    SIM_ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    SIM_ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    SIM_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    SIM_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              "part or all of the requested memory range is already mapped"),
    SIM_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
              "pointer does not correspond to a registered memory region"),
    SIM_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    SIM_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              "operation not permitted when stream is capturing"),
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
              "operation failed due to a previous error during capture"),
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE,
              "operation would result in a merge of separate capture sequences"),
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
              "capture was not ended in the same stream as it began"),
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    SIM_ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
              "attempt to terminate a thread-local capture sequence from another thread"),
    SIM_ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph update was not performed"),
    SIM_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

const Text* find(CUresult code) {
  for (const Text& text : kTexts) {
    if (text.code == code) return &text;
  }
  return nullptr;
}

}  // namespace

namespace entry {

CUresult cuGetErrorString(CUresult error, const char** out) {
  const Text* text = find(error);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = text != nullptr ? text->description : nullptr;
  return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char** out) {
  const Text* text = find(error);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = text != nullptr ? text->name : nullptr;
  return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
