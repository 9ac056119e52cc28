// UUIDs of the simulated devices: 16 bytes in CUDA, a text in NVML.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace cuwarden::simulated_gpu {

// A device's UUID, as cuDeviceGetUuid_v2 gives it.
using DeviceUuid = std::array<char, 16>;

// Returns the UUID of a device: the first 16 letters of "simulated-gpu-NN". `device`: number in the
// machine, 0 to 99.
inline DeviceUuid uuid_of_device(int device) {
  char text[32];
  std::snprintf(text, sizeof text, "simulated-gpu-%02d", device);
  DeviceUuid uuid;
  std::copy_n(text, uuid.size(), uuid.begin());
  return uuid;
}

// Returns the UUID of a device as NVML writes it, such as
// "GPU-73696d75-6c61-7465-642d-6770752d3030". `slice`: true if the device is a MIG slice; then the
// text begins with "MIG".
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
