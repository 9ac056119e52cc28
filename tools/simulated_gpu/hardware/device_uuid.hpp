// UUIDs of the simulated devices: 16 bytes in CUDA, a text in NVML.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace cuwarden::simulated_gpu {

// UUID of a simulated device, in the 16 bytes that cuDeviceGetUuid_v2 writes.
using DeviceUuid = std::array<char, 16>;

// Returns the UUID of a simulated device: the 16 letters of "simulated-gpu-NN". NN is `device`, the
// number of the device in the machine, 0 to 99.
inline DeviceUuid uuid_of_device(int device) {
  char text[32];
  std::snprintf(text, sizeof text, "simulated-gpu-%02d", device);
  DeviceUuid uuid;
  std::copy_n(text, uuid.size(), uuid.begin());
  return uuid;
}

// Returns the UUID of a simulated device in the form that NVML uses, such as
// "GPU-73696d75-6c61-7465-642d-6770752d3030". `device`: number of the device in the machine, 0 to
// 99 (no CUDA ordinal). `slice`: true if the device is a MIG slice; then the text begins with "MIG"
// instead of "GPU".
inline std::string uuid_text_of_device(int device, bool slice) {
  std::string text = slice ? "MIG" : "GPU";
  int at = 0;
  for (const char byte : uuid_of_device(device)) {
    if (at == 0 || at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    ++at;
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

}  // namespace cuwarden::simulated_gpu
