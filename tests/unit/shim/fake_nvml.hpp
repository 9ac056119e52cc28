// What a test tells the NVML of its own to answer, and what that one counted.
#pragma once

struct FakeNvml {
  struct Process {
    unsigned pid;
    unsigned long long used_bytes;
  };
  static constexpr int most = 4;

  int init_result = 0;
  const char* known_uuid = nullptr;
  int handle_result = 0;  // for the device that is known
  int compute_result = 0;
  int graphics_result = 0;
  // What the function of the newest version answers, where it is not to do its work.
  int newest_result = 0;
  Process compute[most] = {};
  unsigned compute_count = 0;  // above `most`: numbered from 1000 on, of 1, 2, 3… bytes
  Process graphics[most] = {};
  unsigned graphics_count = 0;
  unsigned entry_bytes = 0;  // 0: as its version says
  bool clears_all = false;   // the whole of what it was given, first

  // Of the device that the known one is a slice of; 2 is NVML_ERROR_INVALID_ARGUMENT: it is none.
  int whole_result = 2;
  int memory_result = 0;
  unsigned long long whole_bytes = 0;
  unsigned long long own_bytes = 1;  // of the known one

  int inits = 0;
  int shutdowns = 0;
};

extern "C" FakeNvml fake_nvml;
