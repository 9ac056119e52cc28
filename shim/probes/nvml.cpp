#include "shim/probes/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>

#include "shim/support/real_libc.hpp"

namespace cuwarden::shim {
namespace {

using Answer = NvmlAnswer;

constexpr int nvml_success = 0, nvml_invalid_argument = 2, nvml_not_supported = 3,
              nvml_no_permission = 4, nvml_not_found = 6, nvml_insufficient_size = 7,
              nvml_function_not_found = 13;

Answer answer_to(int error) noexcept {
  switch (error) {
    case nvml_success:
      return Answer::listed;
    case nvml_not_supported:
      return Answer::not_supported;
    case nvml_no_permission:
      return Answer::not_permitted;
    case nvml_insufficient_size:
      return Answer::too_many;
    case nvml_function_not_found:
      return Answer::no_function;
    default:
      return Answer::failed;
  }
}

// Writes a text such as "GPU-73696d75-6c61-7465-642d-6770752d3030".
void write_uuid(const char* kind, std::span<const char, 16> uuid, char (&text)[41]) noexcept {
  constexpr char digits[] = "0123456789abcdef";
  char* at = std::copy(kind, kind + 4, text);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    const auto byte = static_cast<unsigned char>(uuid[i]);
    *at++ = digits[byte >> 4];
    *at++ = digits[byte & 15];
  }
  *at = '\0';
}

// Removes the error of the shim's own look-up, so that the program's next dlerror() does not show
// it.
void forget_error() noexcept {
  if (real_libc().dlerror != nullptr) real_libc().dlerror();
}

}  // namespace

Nvml::Nvml(const char* library) noexcept {
  const RealLibc& libc = real_libc();
  if (libc.dlopen == nullptr || libc.libc_dlsym == nullptr) return;
  // NVML is never closed: the program could notice that it is unloaded.
  library_ = libc.dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    forget_error();
    return;
  }
  const auto begin = find<int (*)()>("nvmlInit_v2");
  end_ = find<int (*)()>("nvmlShutdown");
  get_device_ = find<int (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByUUID");
  if (begin == nullptr || end_ == nullptr || get_device_ == nullptr) {
    answer_ = Answer::no_function;
    return;
  }
  error_ = begin();
  begun_ = error_ == nvml_success;
  answer_ = begun_                         ? Answer::listed
            : error_ == nvml_no_permission ? Answer::not_permitted
                                           : Answer::not_initialised;
}

Nvml::~Nvml() {
  if (begun_) end_();
}

NvmlDevice Nvml::device(std::span<const char, 16> uuid) noexcept {
  NvmlDevice found = nullptr;
  // CUDA's UUID does not tell if it is that of a device or of a slice (MIG).
  for (const char* kind : {"GPU-", "MIG-"}) {
    char text[41];
    write_uuid(kind, uuid, text);
    error_ = get_device_(text, &found);
    if (error_ == nvml_success) return found;
    if (error_ != nvml_not_found && error_ != nvml_invalid_argument) break;
  }
  answer_ = error_ == nvml_not_found || error_ == nvml_invalid_argument ? Answer::no_device
                                                                        : answer_to(error_);
  return nullptr;
}

void Nvml::answered(int error) noexcept {
  error_ = error;
  answer_ = answer_to(error);
}

void Nvml::lacks_function() noexcept {
  error_ = 0;
  answer_ = Answer::no_function;
}

void* Nvml::address_of(const char* name) const noexcept {
  if (library_ == nullptr) return nullptr;
  void* const found = real_libc().libc_dlsym(library_, name);
  if (found == nullptr) forget_error();
  return found;
}

}  // namespace cuwarden::shim
