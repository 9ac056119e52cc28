// The processes on a device, read from a fake NVML that answers as a test says, or without any
// NVML.
#include "shim/probes/nvml_processes.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/shim/fake_nvml.hpp"

namespace cuwarden::shim {
namespace {

using Answer = DeviceProcessesAnswer;
using Whose = DeviceProcess::Whose;

class DeviceProcessesTest : public testing::Test {
 protected:
  // Loads a fake NVML. Its first answers are those of a device that no process uses.
  void use(const char* library) {
    library_ = library;
    fake_ = load_fake_nvml(library, gpu_text);
    ASSERT_NE(fake_, nullptr) << dlerror();
  }
  void compute(std::vector<FakeNvml::Process> processes) {
    std::copy(processes.begin(), processes.end(), fake_->compute);
    fake_->compute_count = static_cast<unsigned>(processes.size());
  }
  void graphics(std::vector<FakeNvml::Process> processes) {
    std::copy(processes.begin(), processes.end(), fake_->graphics);
    fake_->graphics_count = static_cast<unsigned>(processes.size());
  }
  DeviceProcesses read(std::span<DeviceProcess> into) {
    return read_device_processes(std::span<const char, 16>(device_uuid, 16), into, library_);
  }
  // Returns the listed processes, one text for each.
  std::vector<std::string> listed() {
    DeviceProcess into[8];
    const auto result = read(into);
    EXPECT_EQ(result.answer, Answer::listed) << text_of(result.answer) << result.nvml_error;
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < result.found && i < 8; ++i)
      texts.push_back(std::to_string(into[i].pid) + ":" +
                      (into[i].used_bytes == DeviceProcess::unknown
                           ? "?"
                           : std::to_string(into[i].used_bytes)));
    return texts;
  }
  Answer answer() { return read({}).answer; }

  const char* library_ = nullptr;
  FakeNvml* fake_ = nullptr;
};

using Texts = std::vector<std::string>;

TEST_F(DeviceProcessesTest, processes_of_both_kinds_are_listed_once_with_the_largest_first) {
  use(FAKE_NVML_3);
  compute({{10, 100}, {11, 300}, {12, 50}});
  graphics({{20, 200}, {11, 300}, {12, 70}, {10, 30}});
  EXPECT_EQ(listed(), (Texts{"11:300", "20:200", "10:100", "12:70"}));
}

TEST_F(DeviceProcessesTest, the_number_of_the_devices_file_is_told_if_NVML_knows_it) {
  const auto file_number = [&] { return read({}).file_number; };
  use(FAKE_NVML_3);
  EXPECT_EQ(file_number(), std::nullopt);
  fake_->file_number = 7;
  EXPECT_EQ(file_number(), 7u);
  fake_->compute_result = 4;  // no permission to list processes
  EXPECT_EQ(file_number(), 7u);
  use(FAKE_NVML_2);  // this version lacks the function
  EXPECT_EQ(file_number(), std::nullopt);
}

TEST_F(DeviceProcessesTest, every_version_of_NVMLs_functions_lists_the_processes) {
  for (const char* library : {FAKE_NVML_1, FAKE_NVML_2, FAKE_NVML_3}) {
    use(library);
    compute({{10, 100}, {11, 300}, {12, 200}});
    EXPECT_EQ(listed(), (Texts{"11:300", "12:200", "10:100"})) << library;
  }
}

TEST_F(DeviceProcessesTest, an_older_function_is_asked_if_the_driver_lacks_the_newest) {
  use(FAKE_NVML_2);
  compute({{10, 100}, {11, 300}});
  fake_->newest_result = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND
  EXPECT_EQ(listed(), (Texts{"11:300", "10:100"}));
}

TEST_F(DeviceProcessesTest, entries_are_read_by_the_size_in_which_they_were_written) {
  for (const unsigned bytes : {16u, 24u, 32u}) {
    use(FAKE_NVML_3);
    fake_->entry_bytes = bytes;
    compute({{10, 100}, {11, 300}, {12, 200}});
    EXPECT_EQ(listed(), (Texts{"11:300", "12:200", "10:100"})) << bytes;
    compute({{10, 100}});
    EXPECT_EQ(listed(), (Texts{"10:100"})) << bytes;
  }
}

TEST_F(DeviceProcessesTest, entries_are_read_by_the_declared_size_if_the_whole_buffer_was_written) {
  use(FAKE_NVML_3);
  fake_->clears_all = true;
  compute({{10, 100}, {11, 300}});
  EXPECT_EQ(listed(), (Texts{"11:300", "10:100"}));
}

TEST_F(DeviceProcessesTest, processes_of_unknown_bytes_are_listed_last) {
  use(FAKE_NVML_3);
  compute({{10, ~0ull}, {11, 300}, {12, ~0ull}});
  graphics({{12, 5}});
  EXPECT_EQ(listed(), (Texts{"11:300", "12:5", "10:?"}));
}

TEST_F(DeviceProcessesTest, processes_that_do_not_fit_are_counted_and_the_largest_are_kept) {
  use(FAKE_NVML_3);
  compute({{10, 100}, {11, 300}, {12, 50}, {13, 200}});
  DeviceProcess into[2];
  EXPECT_EQ(read(into).found, 4u);
  EXPECT_EQ(into[0].pid, 11u);
  EXPECT_EQ(into[1].pid, 13u);
  EXPECT_EQ(read({}).found, 4u);
}

TEST_F(DeviceProcessesTest, two_lists_of_512_processes_are_read) {
  use(FAKE_NVML_3);
  fake_->compute_count = 512;
  graphics({{1, 5}, {2, 5}});
  DeviceProcess into[600];
  const auto result = read(into);
  EXPECT_EQ(result.answer, Answer::listed);
  EXPECT_EQ(result.found, 514u);
  std::set<std::uint32_t> pids;
  for (std::uint32_t i = 0; i < result.found; ++i) pids.insert(into[i].pid);
  EXPECT_EQ(pids.size(), 514u);
  EXPECT_EQ(into[0].used_bytes, 512u);
}

TEST_F(DeviceProcessesTest, processes_beyond_those_that_are_read_are_counted_by_NVML) {
  use(FAKE_NVML_3);
  fake_->compute_count = 4000;
  const auto result = read({});
  EXPECT_EQ(result.answer, Answer::too_many);
  EXPECT_EQ(result.nvml_error, 7);
  EXPECT_EQ(result.found, 4000u);
  EXPECT_EQ(fake_->shutdowns, 1);
}

TEST_F(DeviceProcessesTest, processes_of_a_slice_are_found_by_the_slices_name) {
  use(FAKE_NVML_3);
  fake_->known_uuid = mig_text;
  compute({{10, 100}});
  EXPECT_EQ(listed(), (Texts{"10:100"}));
}

TEST_F(DeviceProcessesTest, without_graphics_functions_the_compute_processes_are_listed) {
  use(FAKE_NVML_3);
  compute({{10, 100}});
  fake_->graphics_result = 3;
  EXPECT_EQ(listed(), (Texts{"10:100"}));
}

TEST_F(DeviceProcessesTest, a_list_that_NVML_refuses_has_a_reason) {
  library_ = "libno-such-nvml.so.1";
  EXPECT_EQ(answer(), Answer::no_library);
  use(FAKE_NVML_0);
  EXPECT_EQ(answer(), Answer::no_function);
  EXPECT_EQ(fake_->shutdowns, 1);

  use(FAKE_NVML_3);
  fake_->known_uuid = "GPU-00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(answer(), Answer::no_device);
  use(FAKE_NVML_3);
  fake_->handle_result = 4;
  EXPECT_EQ(answer(), Answer::not_permitted);
  use(FAKE_NVML_3);
  fake_->handle_result = 15;
  EXPECT_EQ(answer(), Answer::failed);
  EXPECT_EQ(read({}).nvml_error, 15);

  for (const auto& [code, expected] : {std::pair(3, Answer::not_supported),
                                       {4, Answer::not_permitted},
                                       {13, Answer::no_function},
                                       {999, Answer::failed}}) {
    use(FAKE_NVML_3);
    fake_->compute_result = code;
    graphics({{10, 100}});
    EXPECT_EQ(answer(), expected) << code;
    EXPECT_EQ(read({}).nvml_error, code);
    EXPECT_EQ(read({}).found, 0u);
  }
}

TEST_F(DeviceProcessesTest, an_NVML_that_fails_to_initialise_is_asked_nothing_and_not_shut_down) {
  for (const auto& [code, expected] : {std::pair(9, Answer::not_initialised),
                                       {18, Answer::not_initialised},
                                       {4, Answer::not_permitted}}) {
    use(FAKE_NVML_3);
    fake_->init_result = code;
    EXPECT_EQ(read({}).answer, expected);
    EXPECT_EQ(read({}).nvml_error, code);
    EXPECT_EQ(fake_->shutdowns, 0);
  }
}

TEST_F(DeviceProcessesTest, NVML_is_shut_down_after_each_use) {
  use(FAKE_NVML_3);
  for (int i = 0; i < 3; ++i) answer();
  EXPECT_EQ(fake_->inits, 3);
  EXPECT_EQ(fake_->shutdowns, 3);
}

TEST_F(DeviceProcessesTest, errno_and_dlerror_stay_as_they_were) {
  dlerror();
  for (const char* library : {"libno-such-nvml.so.1", FAKE_NVML_0, FAKE_NVML_1}) {
    library_ = library;
    errno = 4711;
    answer();
    EXPECT_EQ(errno, 4711);
    EXPECT_EQ(dlerror(), nullptr) << library;
  }
}

TEST_F(DeviceProcessesTest, every_answer_of_NVML_has_a_text) {
  std::set<std::string> texts;
  for (int i = 0; i <= static_cast<int>(Answer::failed); ++i)
    texts.insert(text_of(static_cast<Answer>(i)));
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(Answer::failed) + 1);
}

TEST_F(DeviceProcessesTest, a_process_with_this_processs_pid_is_this_process) {
  use(FAKE_NVML_3);
  compute({{static_cast<unsigned>(getpid()), 300}, {static_cast<unsigned>(getppid()), 200}});
  DeviceProcess into[2];
  read(into);
  EXPECT_EQ(into[0].whose, Whose::this_process);
  EXPECT_EQ(into[1].whose, getppid() != 0 ? Whose::another : Whose::unsure);
}

// Runs `holds` in a child with its own pid namespace, in which the child is alone and has pid 1.
int in_own_namespace(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(77);
    const pid_t inner = fork();
    if (inner == 0) _exit(holds() ? 0 : 1);
    int status = -1;
    waitpid(inner, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(DeviceProcessesTest,
       in_a_pid_namespace_this_process_is_found_only_if_all_pids_are_of_that_namespace) {
  use(FAKE_NVML_3);
  const auto whose_of_first = [&] {
    DeviceProcess into[2];
    read(into);
    return into[0].whose;
  };
  const int status = in_own_namespace([&] {
    // /proc is still that of the outer namespace, in which a process's inner namespace is not seen.
    compute({{1, 300}});
    if (whose_of_first() != Whose::this_process) return false;
    compute({{1, 300}, {4'000'000, 200}});  // a pid unknown here: NVML tells the machine's pids
    if (whose_of_first() != Whose::unsure) return false;
    compute({{4'000'000, 200}});
    return whose_of_first() == Whose::unsure;
  });
  if (status == 77) GTEST_SKIP() << "no namespace can be made here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace cuwarden::shim
