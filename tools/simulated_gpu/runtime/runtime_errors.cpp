// The texts of errors, and the few functions that return no error.
#include "tools/simulated_gpu/runtime/runtime_driver.hpp"

using namespace cuwarden::simulated_runtime;

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Text {
  cudaError_t code;
  const char* name;
  const char* description;
};

#define SIM_ERROR(code, description) \
  { code, #code, description }

constexpr Text kTexts[] = {
    SIM_ERROR(cudaSuccess, "no error"),
    SIM_ERROR(cudaErrorInvalidValue, "invalid argument"),
    SIM_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    SIM_ERROR(cudaErrorInitializationError, "initialization error"),
    SIM_ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    SIM_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    SIM_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    SIM_ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    SIM_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    SIM_ERROR(cudaErrorInsufficientDriver,
              "CUDA driver version is insufficient for CUDA runtime version"),
    SIM_ERROR(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    SIM_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    SIM_ERROR(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    SIM_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    SIM_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    SIM_ERROR(cudaErrorDeviceUninitialized, "invalid device context"),
    SIM_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    SIM_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    SIM_ERROR(cudaErrorNotReady, "device not ready"),
    SIM_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    SIM_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    SIM_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    SIM_ERROR(cudaErrorContextIsDestroyed, "context is destroyed"),
    SIM_ERROR(cudaErrorHostMemoryAlreadyRegistered,
              "part or all of the requested memory range is already mapped"),
    SIM_ERROR(cudaErrorHostMemoryNotRegistered,
              "pointer does not correspond to a registered memory region"),
    SIM_ERROR(cudaErrorNotSupported, "operation not supported"),
    SIM_ERROR(cudaErrorStreamCaptureUnsupported,
              "operation not permitted when stream is capturing"),
    SIM_ERROR(cudaErrorStreamCaptureInvalidated,
              "operation failed due to a previous error during capture"),
    SIM_ERROR(cudaErrorUnknown, "unknown error"),
};

}  // namespace

SIM_EXPORT const char* cudaGetErrorName(cudaError_t error) {
  for (const Text& text : kTexts) {
    if (text.code == error) return text.name;
  }
  return "unrecognized error code";
}

SIM_EXPORT const char* cudaGetErrorString(cudaError_t error) {
  for (const Text& text : kTexts) {
    if (text.code == error) return text.description;
  }
  return "unrecognized error code";
}

SIM_EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                       cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
