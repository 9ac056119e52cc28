// The simulated devices' UUIDs, which CUDA gives as bytes and NVML as text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace cuwarden::simulated_gpu {

using DeviceUuid = std::array<char, 16>;

inline DeviceUuid uuid_of_device(int device) {
  char text[32];
  std::snprintf(text, sizeof text, "simulated-gpu-%02d", device);
  DeviceUuid uuid;
  std::copy_n(text, uuid.size(), uuid.begin());
  return uuid;
}

// Returns the UUID as NVML writes it. `slice`: true for a MIG slice.
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
