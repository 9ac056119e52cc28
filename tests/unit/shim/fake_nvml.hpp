// The answers that a test gives to the fake NVML, and the calls that the fake NVML has counted.
#pragma once

struct FakeNvml {
  struct Process {
    unsigned pid;
    unsigned long long used_bytes;
  };
  static constexpr int most = 4;

  int init_result = 0;
  const char* known_uuid = nullptr;
  int handle_result = 0;  // result of looking up the known device
  int compute_result = 0;
  int graphics_result = 0;
  // Result of the newest version of the function; 0 if it works.
  int newest_result = 0;
  Process compute[most] = {};
  // Number of processes. Processes above `most` have pids from 1000 on, and 1, 2, 3 and so on
  // bytes.
  unsigned compute_count = 0;
  Process graphics[most] = {};
  unsigned graphics_count = 0;
  unsigned entry_bytes = 0;  // size of a written entry; 0: as the function's version declares it
  bool clears_all = false;   // true: the whole given buffer is cleared before it is written to

  // Result of looking up the device of which the known one is a slice. 2 is
  // NVML_ERROR_INVALID_ARGUMENT: the known one is no slice.
  int whole_result = 2;
  int memory_result = 0;
  unsigned long long whole_bytes = 0;
  unsigned long long own_bytes = 1;  // bytes of the known device

  // Number in the name of the known device's file; -1: the question fails.
  int file_number = -1;
  // Limits of cgroups on the known device's memory. `cgroup`: path of the folder; null: no limit.
  // For other folders the question fails.
  struct Limit {
    const char* cgroup;
    unsigned long long hard, used;
  };
  Limit limits[2] = {};

  int inits = 0;
  int shutdowns = 0;
};

extern "C" FakeNvml fake_nvml;
