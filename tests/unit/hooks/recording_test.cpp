#include <algorithm>

#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "tests/unit/hooks/fake_driver.hpp"

namespace cuwarden::hooks {
namespace {

using driver::Row;

TEST_F(HooksTest, notice_of_an_incomplete_ledger_is_given_once_for_each_reason) {
  allocate();
  EXPECT_TRUE(noticed.empty());
  writer->file.add_reason(ledger::reason_ledger_in_memory);  // no record is missing for this reason
  writer->file.add_reason(ledger::reason_ledger_full);
  allocate();
  EXPECT_EQ(noticed, std::vector{ledger::reason_ledger_full});
  writer->file.add_reason(ledger::reason_recording_stopped);
  hooked(Row::cuMemFree_v2, cuMemFree_v2, CUdeviceptr{0x123});  // an unknown free in a full ledger
  allocate();
  EXPECT_EQ(noticed, (std::vector{ledger::reason_ledger_full, ledger::reason_recording_stopped}));
  EXPECT_EQ(unknown_frees(), 0u);
}

// With one device, the device is known. It is asked for only when session.queries.current() is
// called.
TEST_F(HooksTest, with_one_device_a_served_request_does_not_ask_for_the_device) {
  fake.devices = 1;
  allocate();
  const int before = fake.device_questions;
  allocate();
  EXPECT_EQ(fake.device_questions, before);
  EXPECT_EQ(session.ledger.groups.device_of(records()[1].group), DeviceOrdinal{0});
  EXPECT_EQ(session.queries.current().device, DeviceOrdinal{0});
  EXPECT_EQ(fake.device_questions, before + 1);
}

TEST_F(HooksTest, with_several_devices_each_served_request_asks_for_the_device) {
  allocate();
  fake.current_device = 1;
  const int before = fake.device_questions;
  allocate();
  EXPECT_EQ(fake.device_questions, before + 1);
  EXPECT_EQ(session.ledger.groups.device_of(records()[1].group), DeviceOrdinal{1});
}

#if CUDA_VERSION >= 12040
class GreenContextEndTest : public HooksTest {
 protected:
  // Retains the primary context, and allocates under a green context, which is destroyed then.
  void allocate_under_green_context() {
    CUcontext context = nullptr;
    CUgreenCtx green = nullptr;
    hooked(Row::cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, &context, 0);
    hooked(Row::cuGreenCtxCreate, cuGreenCtxCreate, &green, nullptr, 0, 0u);
    hooked(Row::cuCtxFromGreenCtx, cuCtxFromGreenCtx, &context, green);
    fake.current = fake.green;
    allocate();
    hooked(Row::cuGreenCtxDestroy, cuGreenCtxDestroy, green);
  }
};

TEST_F(GreenContextEndTest, at_exit_only_live_contexts_are_made_current) {
  allocate_under_green_context();
  session.readings.read_at_exit([] { return true; });
  EXPECT_EQ(fake.pushed, std::vector{fake.primary});

  CUcontext context = nullptr;
  fake.pushed.clear();
  hooked(Row::cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset_v2, 0);
  hooked(Row::cuCtxCreate_v2, cuCtxCreate_v2, &context, 0u, 0);
  session.readings.read_at_exit([] { return true; });
  EXPECT_EQ(fake.pushed, std::vector{context});

  fake.pushed.clear();
  hooked(Row::cuCtxDestroy_v2, cuCtxDestroy_v2, context);
  session.readings.read_at_exit([] { return true; });
  EXPECT_TRUE(fake.pushed.empty());
}

TEST_F(GreenContextEndTest, memory_allocated_under_a_green_context_ends_with_its_primary_context) {
  allocate_under_green_context();
  EXPECT_EQ(records().size(), 1u);  // the primary context still exists
  hooked(Row::cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset_v2, 0);
  EXPECT_TRUE(records().empty());
}

TEST_F(GreenContextEndTest, a_green_context_that_held_the_primary_one_as_the_last_ends_it) {
  CUcontext context = nullptr;
  CUgreenCtx green = nullptr;
  hooked(Row::cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, &context, 0);
  hooked(Row::cuGreenCtxCreate, cuGreenCtxCreate, &green, nullptr, 0, 0u);
  allocate();
  fake.primary_active = false;
  hooked(Row::cuGreenCtxDestroy, cuGreenCtxDestroy, green);
  EXPECT_TRUE(records().empty());
}
#endif

TEST_F(HooksTest, while_the_process_ends_only_releases_of_primary_contexts_are_cudarts_own) {
  CUcontext context = nullptr;
  hooked(Row::cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, &context, 0);
  allocate();
  session.process_is_ending();
  fake.primary_active = false;
  hooked(Row::cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease_v2, 0);
  EXPECT_EQ(records().size(), 1u);
  hooked(Row::cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset_v2, 0);
  EXPECT_TRUE(records().empty());
}

TEST_F(HooksTest, questions_to_the_driver_leave_errno_alone) {
  hooked(Row::cuStreamBeginCapture, cuStreamBeginCapture, nullptr);
  CUdeviceptr memory = 0;
  CUcontext context = nullptr;
  const auto keeps = [&](const char* what, auto call) {
    errno = 4242;
    call();
    EXPECT_EQ(errno, 4242) << what;
  };
  keeps("alloc", [&] { allocate(); });
  keeps("alloc_async",
        [&] { hooked(Row::cuMemAllocAsync, cuMemAllocAsync, &memory, std::size_t{64}, nullptr); });
  keeps("pool pointer", [&] {
    hooked(Row::cuMemPoolImportPointer, cuMemPoolImportPointer, &memory, nullptr, nullptr);
  });
  keeps("ipc", [&] {
    hooked(Row::cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle_v2, &memory, CUipcMemHandle{}, 0u);
  });
  hooked(Row::cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, &context, 0);
  keeps("release",
        [&] { hooked(Row::cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease_v2, 0); });
  keeps("exit", [&] { session.readings.read_at_exit([] { return true; }); });
}

TEST_F(HooksTest, an_updated_executable_graph_has_the_effects_of_its_new_graph) {
  const auto first = reinterpret_cast<CUgraph>(0x100), second = reinterpret_cast<CUgraph>(0x200);
  CUDA_MEM_ALLOC_NODE_PARAMS one{}, other{};
  one.bytesize = 111;
  other.bytesize = 222;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  const CUgraphNode* const none = nullptr;
  for (auto [graph, parameters] : {std::pair{first, &one}, std::pair{second, &other}})
    hooked(Row::cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, &node, graph, none, std::size_t{0},
           parameters);
  hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, first, 0ull);
  hooked(Row::cuGraphExecUpdate_v2, cuGraphExecUpdate_v2, exec, second, nullptr);
  hooked(Row::cuGraphLaunch, cuGraphLaunch, exec, nullptr);
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records()[0].bytes.value, 222u);
}

// Two nodes have one address. The driver may list them, and other nodes, in any order.
TEST_F(HooksTest, a_node_that_takes_a_freed_address_of_its_graph_is_live_after_the_launch) {
  const auto graph = reinterpret_cast<CUgraph>(0x100);
  const CUgraphNode* const none = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS first{}, second{};
  first.bytesize = 111;
  second.bytesize = 222;
  hooked(Row::cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, &node, graph, none, std::size_t{0},
         &first);
  fake.next_address = first.dptr - 0x1000;
  hooked(Row::cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, &node, graph, none, std::size_t{0},
         &second);
  ASSERT_EQ(second.dptr, first.dptr);
  std::vector<FakeNode> nodes = fake.graphs[graph];
  nodes.push_back({false, first.dptr, 0, nullptr});
  std::size_t orders = 0;
  for (std::size_t turn = 0; turn < nodes.size(); ++turn, ++orders) {
    std::rotate(nodes.begin(), nodes.begin() + 1, nodes.end());
    fake.graphs[graph] = nodes;
    hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, graph, 0ull);
    hooked(Row::cuGraphLaunch, cuGraphLaunch, exec, nullptr);
    ASSERT_EQ(records().size(), 1u);
    EXPECT_EQ(records()[0].bytes.value, 222u);
    hooked(Row::cuMemFree_v2, cuMemFree_v2, second.dptr);
    EXPECT_EQ(records().size(), 0u);
  }
  EXPECT_EQ(orders, 3u);
  nodes.push_back({false, first.dptr, 0, nullptr});
  fake.graphs[graph] = nodes;
  hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, graph, 0ull);
  hooked(Row::cuGraphLaunch, cuGraphLaunch, exec, nullptr);
  EXPECT_EQ(records().size(), 0u);
}

TEST_F(HooksTest, a_child_graphs_memory_nodes_belong_to_the_launch) {
  const auto graph = reinterpret_cast<CUgraph>(0x100), child = reinterpret_cast<CUgraph>(0x200);
  const CUgraphNode* const none = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS kept{}, freed{};
  kept.bytesize = 111;
  freed.bytesize = 222;
  for (auto* parameters : {&kept, &freed})
    hooked(Row::cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, &node, child, none, std::size_t{0},
           parameters);
  fake.graphs[graph].push_back({false, 0, 0, child});
  fake.graphs[graph].push_back({false, freed.dptr, 0, nullptr});
  hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, graph, 0ull);
  hooked(Row::cuGraphLaunch, cuGraphLaunch, exec, nullptr);
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records()[0].bytes.value, 111u);
}

TEST_F(HooksTest, a_graph_that_is_its_own_child_is_given_up) {
  const auto graph = reinterpret_cast<CUgraph>(0x100);
  const CUgraphNode* const none = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  parameters.bytesize = 111;
  hooked(Row::cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, &node, graph, none, std::size_t{0},
         &parameters);
  fake.graphs[graph].push_back({false, 0, 0, graph});
  hooked(Row::cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, &exec, graph, 0ull);
  EXPECT_NE(writer->file.header().reasons.load() & ledger::reason_ledger_full, 0u);
}

TEST_F(HooksTest, a_free_is_not_unknown_if_a_seccomp_filter_kept_the_ledger_from_growing) {
  writer->file.header().reasons.fetch_or(ledger::reason_confined);
  hooked(Row::cuMemRelease, cuMemRelease, 555ull);
  EXPECT_EQ(unknown_frees(), 0u);
}

TEST_F(HooksTest,
       releasing_an_unseen_handle_is_an_unknown_free_and_unmapping_an_empty_range_is_not) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp prop{};
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  hooked(Row::cuMemCreate, cuMemCreate, &handle, std::size_t{4096}, &prop, 0ull);
  hooked(Row::cuMemRelease, cuMemRelease, handle);
  EXPECT_EQ(unknown_frees(), 0u);
  hooked(Row::cuMemRelease, cuMemRelease, 555ull);
  EXPECT_EQ(unknown_frees(), 1u);
  hooked(Row::cuMemUnmap, cuMemUnmap, 0x70000ull, std::size_t{4096});
  EXPECT_EQ(unknown_frees(), 1u);  // the driver succeeds in unmapping an empty range
}

TEST_F(HooksTest, a_refused_unmapping_of_an_empty_range_leaves_ended_mappings_ended) {
  constexpr CUdeviceptr range = 0x70000;
  constexpr std::size_t bytes = 4096;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp prop{};
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  hooked(Row::cuMemCreate, cuMemCreate, &handle, bytes, &prop, 0ull);
  hooked(Row::cuMemMap, cuMemMap, range, bytes, std::size_t{0}, handle, 0ull);
  hooked(Row::cuMemRelease, cuMemRelease, handle);
  hooked(Row::cuMemUnmap, cuMemUnmap, range, bytes);
  ASSERT_TRUE(records().empty());
  const_cast<driver::RealDriver&>(real).cuMemUnmap = [](CUdeviceptr, size_t) {
    return CUDA_ERROR_INVALID_VALUE;
  };
  hooked(Row::cuMemUnmap, cuMemUnmap, range, bytes);
  EXPECT_TRUE(records().empty());
}

#if CUDA_VERSION >= 12010
TEST_F(HooksTest, releasing_a_multicast_object_is_no_unknown_free) {
  CUmemGenericAllocationHandle handle = 0;
  hooked(Row::cuMulticastCreate, cuMulticastCreate, &handle, nullptr);
  hooked(Row::cuMemRelease, cuMemRelease, handle);
  EXPECT_EQ(unknown_frees(), 0u);
}
#endif

}  // namespace
}  // namespace cuwarden::hooks
