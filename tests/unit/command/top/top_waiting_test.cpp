// `top`: requests that wait for memory, as rows and as lines of the text.
#include "tools/cuwarden/top/top_waiting.hpp"

#include <gtest/gtest.h>

#include "tests/unit/reporters/fake_ledger.hpp"
#include "tools/cuwarden/top/once_text.hpp"

namespace cuwarden {
namespace {

constexpr std::uint64_t one_second = 1'000'000'000;

class WaitingRequests : public testing::Test {
 protected:
  WaitingRequests() {
    ledger.process.program = "/home/u/train";
    ledger.process.start_monotonic_ns = 1000 * one_second;
    ledger.hooks = {{{0}, "cudaMalloc", 1}};
    ledger.threads = {{{1}, 41, "train", 0}, {{2}, 42, "loader", 0}};
    ledger.add_group(ledger.add_stack({0x1000}), {0}, Kind::pinned, no_device);
    wanting = ledger.add_group(ledger.add_stack({0x2000}), {0}, Kind::device, {3});
    ledger::IncidentView& incident = ledger.incidents.emplace_back();
    incident.id = {1};
    incident.group = wanting;
    recent.add(take_sample(ledger.reader()));
  }
  // The second thread waits from the 50th second of the process on.
  void let_thread_wait() {
    ledger.threads[1].under_way = {{1}, ledger::Rung::wait, 50 * one_second, 8ull << 30};
  }
  std::vector<WaitingRequest> at(std::uint64_t running_ns, bool ended = false) {
    const ledger::Reader reader = ledger.reader();
    return waiting_requests({17, &reader, &recent, &growing, ended},
                            ledger.process.start_monotonic_ns + running_ns);
  }
  TopAnswer answer() {
    TopAnswer made;
    const ledger::Reader reader = ledger.reader();
    add_process({17, &reader, &recent, &growing, false}, made);
    for (WaitingRequest& request : at(62 * one_second)) {
      request.row.api = "cudaMalloc";
      request.row.where = "model.cu:31 in load()";
      made.waiting.push_back(request.row);
    }
    return made;
  }

  test::FakeLedger ledger;
  GroupId wanting;
  Recent recent;
  GrowingGroups growing;
};

TEST_F(WaitingRequests, a_request_under_way_has_its_thread_size_device_and_rung) {
  let_thread_wait();
  const auto requests = at(62 * one_second);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].group, wanting.value);
  const WaitingRow expected{17,         42,           "device",     3,      "memory",
                            8ull << 30, std::nullopt, std::nullopt, "wait", 12 * one_second};
  EXPECT_TRUE(model::operator==(requests[0].row, expected));
}

TEST_F(WaitingRequests, a_call_that_does_not_say_its_size_has_none) {
  let_thread_wait();
  ledger.threads[1].under_way->bytes = 0;
  ledger.incidents[0].asked = ledger::Asked::module;
  const auto requests = at(62 * one_second);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].row.bytes, std::nullopt);
  EXPECT_EQ(requests[0].row.asked_for, "module");
}

TEST_F(WaitingRequests, there_are_none_of_threads_that_do_not_wait) { EXPECT_TRUE(at(0).empty()); }

TEST_F(WaitingRequests, there_are_none_of_a_process_that_has_ended) {
  let_thread_wait();
  EXPECT_TRUE(at(62 * one_second, true).empty());
}

TEST_F(WaitingRequests, a_ledger_that_names_an_incident_that_it_lacks_has_none) {
  let_thread_wait();
  ledger.threads[1].under_way->incident = {2};
  EXPECT_TRUE(at(62 * one_second).empty());
}

TEST_F(WaitingRequests, both_views_have_a_line_for_each) {
  constexpr char nobody[] = "waits for memory";
  EXPECT_EQ(process_view(answer(), {}).find(nobody), std::string::npos);
  EXPECT_EQ(processes_view(answer(), {}).find(nobody), std::string::npos);
  let_thread_wait();
  const std::string line =
      "waits for memory: cudaMalloc of 8.0 GiB (GPU 3), rung wait for 12.0 s: model.cu:31 "
      "in load()\n";
  const std::string one = process_view(answer(), {});
  EXPECT_NE(one.find("\n" + line), std::string::npos) << one;
  const std::string all = processes_view(answer(), {});
  EXPECT_NE(all.find("\ntrain (pid 17) " + line), std::string::npos) << all;
}

}  // namespace
}  // namespace cuwarden
