// Data of the live view of `cuwarden top` whose figures a test knows.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cuwarden/top/live/drawn_screen.hpp"
#include "tools/cuwarden/top/live/live_data.hpp"
#include "tools/cuwarden/top/live/live_lists.hpp"
#include "tools/cuwarden/top/live/live_state.hpp"

namespace cuwarden::test {

// Bytes of a mebibyte.
inline constexpr std::uint64_t mebibyte = 1 << 20;

// Returns a process that has `device_bytes` of live memory on device 0, and had twice as much at
// its peak. `program`: file name of its program, in /home/u.
inline LiveProcess live_process(std::int64_t pid, const std::string& program,
                                std::uint64_t device_bytes) {
  LiveProcess process;
  process.row.pid = pid;
  process.row.program = "/home/u/" + program;
  process.row.start = "2026-01-31T12:00:00Z";
  process.row.running_ns = 90'000'000'000;
  process.row.user = "u";
  process.row.device_bytes = device_bytes;
  process.row.host_bytes = 0;
  process.row.peak_bytes = 2 * device_bytes;
  process.row.growth_bytes_per_minute = 0;
  process.row.allocations_per_minute = 0;
  LiveTotal total;
  total.row.pid = pid;
  total.row.kind = "device";
  total.row.device = 0;
  total.row.live_bytes = device_bytes;
  total.row.peak_bytes = 2 * device_bytes;
  total.row.live_count = 3;
  total.trend = {0, {0, 0, 0, 0, 0, device_bytes}};
  process.trend = total.trend;
  process.totals.push_back(total);
  return process;
}

// Returns a call stack with `bytes` of live memory on device 0, from cudaMalloc. `group`: id of its
// group, and number of its live allocations. `location`: line of code that the view shows for the
// stack. `module`: file name of the library with that code.
inline LiveStack live_stack(std::uint32_t group, const std::string& location,
                            const std::string& module, std::uint64_t bytes) {
  LiveStack stack;
  stack.group = group;
  stack.row.kind = "device";
  stack.row.device = 0;
  stack.row.api = "cudaMalloc";
  stack.row.live_bytes = bytes;
  stack.row.live_count = group;
  stack.row.allocations = 10 * group;
  stack.row.growth_bytes_per_minute = 0;
  stack.row.allocations_per_minute = 60;
  stack.location = location;
  stack.module = module;
  return stack;
}

// Returns the data of three processes, and of four call stacks of the process whose page is open.
inline LiveData live_data() {
  LiveData data;
  data.processes.push_back(live_process(11, "small", 1 * mebibyte));
  data.processes.push_back(live_process(12, "large", 3 * mebibyte));
  data.processes.push_back(live_process(13, "middle", 2 * mebibyte));
  data.stacks.push_back(live_stack(1, "a.cpp:1 in load", "liba.so", 4 * mebibyte));
  data.stacks.push_back(live_stack(2, "b.cpp:2 in step", "libb.so", 3 * mebibyte));
  data.stacks.push_back(live_stack(3, "a.cpp:3 in keep", "liba.so", 2 * mebibyte));
  data.stacks.push_back(live_stack(4, "c.cpp:4 in Cache::insert", "libc_cache.so", 1 * mebibyte));
  data.stacks[3].row.kind = "pinned";
  data.stacks[3].row.device.reset();
  data.stacks[3].row.api = "cudaMallocHost";
  return data;
}

// The live view of `cuwarden top` without a terminal. A test presses keys and reads the lines that
// the view draws.
struct LiveViewUnderTest {
  LiveData data = live_data();
  LiveState state{};
  LiveScreen screen{100, 24, false, false};

  // Presses the keys of these characters, one after the other.
  void type(std::string_view characters) {
    for (const char character : characters)
      press(state, {Key::Name::text, std::string(1, character)}, data);
  }
  // Presses a key that is no character, such as Enter.
  void press_key(Key::Name name) { press(state, {name}, data); }
  // Draws the view, then opens the page of the selected process.
  void open() {
    lines();
    press_key(Key::Name::enter);
  }
  // Returns the lines that the view draws now.
  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    std::istringstream stream(live_text(state, data, screen));
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  // Returns the lines that the view draws now as one text, each with a line break.
  std::string text() {
    std::string text;
    for (const std::string& line : lines()) text += line + "\n";
    return text;
  }
  // Returns the drawn line that is selected; empty if none is selected.
  std::string selected() {
    for (const std::string& line : lines())
      if (line.starts_with('>')) return line;
    return {};
  }
  // Returns the file names of the programs in the list of processes, in the order of the list.
  std::vector<std::string> programs() const {
    std::vector<std::string> programs;
    for (const LiveProcess* const process : listed_processes(state, data))
      programs.push_back(process->row.program->substr(std::string_view("/home/u/").size()));
    return programs;
  }
  // Returns the locations of the stacks in the list of stacks, in the order of the list.
  std::vector<std::string> locations() const {
    std::vector<std::string> locations;
    const ListedStacks listed = listed_stacks(state, data);
    for (const LiveStack* const stack : listed.lines) locations.push_back(stack->location);
    return locations;
  }
};

}  // namespace cuwarden::test
