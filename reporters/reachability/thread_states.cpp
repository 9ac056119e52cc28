#include "reporters/reachability/thread_states.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "reporters/reachability/proc_text.hpp"
#include "runtime_hooks/core/files/folder_entries.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/core/files/small_file.hpp"
#include "runtime_hooks/core/thread_id.hpp"

namespace cuwarden::reachability {

namespace {

// True if the CUDA driver gives this name to its threads: "cuda-EvtHandlr", or "cuda" and eleven
// hexadecimal digits. (Seen with driver 580.)
bool is_drivers_name(std::string_view name) {
  name = name.substr(0, name.find('\n'));
  if (name == "cuda-EvtHandlr") return true;
  constexpr std::size_t digits = 11;
  return name.starts_with("cuda") && name.size() == 4 + digits &&
         name.find_first_not_of("0123456789abcdef", 4) == name.npos;
}

// Fills in the state of a thread. `folder`: /proc/PID/task/TID.
void read_state(const std::string& folder, ThreadState& thread) {
  char text[512];
  thread.is_drivers = is_drivers_name(read_small_file((folder + "/comm").c_str(), text));
  std::string_view times = read_small_file((folder + "/schedstat").c_str(), text);
  thread.ran_ns = take_number(times).value_or(0);
  // "running", or the number of the system call, six arguments, stack pointer and program counter;
  // or -1, stack pointer and program counter.
  std::string_view rest = read_small_file((folder + "/syscall").c_str(), text);
  rest = rest.substr(0, rest.find('\n'));
  const std::string_view number = take_word(rest);
  std::vector<std::uint64_t> values;
  while (!rest.empty()) {
    std::string_view word = take_word(rest);
    if (word.starts_with("0x")) values.push_back(take_hexadecimal(word));
  }
  if (number.empty() || number == "running" || values.size() < 2) return;
  thread.stack_pointer = values[values.size() - 2];
  values.resize(values.size() - 2);
  thread.arguments = std::move(values);
}

}  // namespace

std::vector<ThreadState> thread_states(int pid, bool& is_whole) {
  std::vector<ThreadState> threads;
  const std::string folder = proc_folder(pid) + "/task";
  const Descriptor listed = open_folder_to_list(AT_FDCWD, folder.c_str());
  const int own = pid == 0 ? own_thread_id() : 0;
  is_whole = listed && each_folder_entry(listed.number(), [&](const char* name) {
               int id = 0;
               const auto read = std::from_chars(name, name + std::strlen(name), id);
               if (read.ec != std::errc() || id == own) return true;
               ThreadState& thread = threads.emplace_back();
               thread.id = id;
               read_state(folder + "/" + name, thread);
               return true;
             });
  return threads;
}

bool have_rested(const std::vector<ThreadState>& before, const std::vector<ThreadState>& after) {
  const auto of_program = [](const ThreadState& thread) {
    return !thread.is_drivers && !thread.is_caller;
  };
  return std::ranges::count_if(before, of_program) == std::ranges::count_if(after, of_program) &&
         std::ranges::all_of(after, [&](const ThreadState& now) {
           if (!of_program(now)) return true;
           const auto then = std::ranges::find(before, now.id, &ThreadState::id);
           // A thread that runs has no known stack pointer.
           return then != before.end() && then->stack_pointer != 0 && now.stack_pointer != 0 &&
                  now.ran_ns != 0 && then->ran_ns == now.ran_ns;
         });
}

}  // namespace cuwarden::reachability
