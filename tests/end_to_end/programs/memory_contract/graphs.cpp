// Graphs that copy and fill: captured, and built of nodes; each launched several times.
#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

namespace cuwarden::memory_contract {
namespace {

class Graphs : public MemoryTest {
 protected:
  static constexpr int launches = 3;

  // Before each launch, `between` gives the graph new input, and does the graph's work on the host.
  template <class Between>
  void launch(CUgraph graph, Between between) {
    CUgraphExec exec = nullptr;
    ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < launches; ++i) {
      ASSERT_NO_FATAL_FAILURE(between());
      ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
      synchronise();
      expect_all_right();
    }
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  }
  template <class Work>
  CUgraph capture(Work work) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    work();
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    return graph;
  }
};

TEST_F(Graphs, captured_from_the_host_and_back) {
  std::vector<Bytes> sent, got;
  for (const Piece& piece : pieces) {
    sent.emplace_back(piece.size());
    got.emplace_back(piece.size());
  }
  const CUgraph graph = capture([&] {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_EQ(cuMemcpyHtoDAsync(pieces[i].start, sent[i].data(), sent[i].size(), stream),
                CUDA_SUCCESS);
      EXPECT_EQ(cuMemcpyDtoHAsync(got[i].data(), pieces[i].start, got[i].size(), stream),
                CUDA_SUCCESS);
    }
  });
  launch(graph, [&] {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Bytes next = random_bytes(sent[i].size());
      std::memcpy(sent[i].data(), next.data(), next.size());  // the graph copies from there
      pieces[i].bytes = next;
    }
  });
  for (std::size_t i = 0; i < pieces.size(); ++i) expect_same(got[i], sent[i], "what came back");
}

// The graph copies from each piece to the next, and fills parts of the copies.
TEST_F(Graphs, captured_between_pieces) {
  const CUgraph graph = capture([&] {
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      EXPECT_EQ(cuMemcpyDtoDAsync(pieces[i + 1].start, pieces[i].start, pieces[i].size(), stream),
                CUDA_SUCCESS);
      EXPECT_EQ(cuMemsetD8Async(pieces[i].start + pieces[i].size() / 2, 0x77, 1, stream),
                CUDA_SUCCESS);
    }
    for (Piece* const piece : from_size(4 * kKiB))
      EXPECT_EQ(cuMemsetD2D32Async(piece->start + 512, 1024, 0x12345678, 3, 2, stream),
                CUDA_SUCCESS);
  });
  launch(graph, [&] {
    for (Piece& piece : pieces) refill(piece);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      pieces[i + 1].put(0, pieces[i].bytes.data(), pieces[i].size());
      pieces[i].set(pieces[i].size() / 2, 0x77, 1);
    }
    for (Piece* const piece : from_size(4 * kKiB)) {
      const std::uint32_t values[] = {0x12345678, 0x12345678, 0x12345678};
      for (const std::size_t at : {std::size_t{512}, std::size_t{512 + 1024}})
        piece->put(at, reinterpret_cast<const unsigned char*>(values), sizeof values);
    }
  });
}

TEST_F(Graphs, built_of_nodes) {
  const CUcontext context = devices()[0].context;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUgraphNode last = nullptr;
  const auto add_copy = [&](const Side& to, const Side& from, const Extent& extent) {
    const CUDA_MEMCPY3D box = box_of(to, from, extent);
    const CUgraphNode before = last;
    ASSERT_EQ(cuGraphAddMemcpyNode(&last, graph, &before, before != nullptr ? 1 : 0, &box, context),
              CUDA_SUCCESS);
  };
  const auto add_fill = [&](const CUDA_MEMSET_NODE_PARAMS& rows) {
    const CUgraphNode before = last;
    ASSERT_EQ(
        cuGraphAddMemsetNode(&last, graph, &before, before != nullptr ? 1 : 0, &rows, context),
        CUDA_SUCCESS);
  };
  std::vector<Bytes> sent;
  for (Piece& piece : pieces) sent.emplace_back(piece.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::size_t size = pieces[i].size();
    add_copy(side_of(pieces[i], size, 1), side_of(sent[i], size, 1), {size, 1, 1});
    add_fill({.dst = pieces[i].start,
              .pitch = 0,
              .value = 0x5c,
              .elementSize = 1,
              .width = (size + 1) / 2,
              .height = 1});
  }
  for (Piece* const piece : from_size(4 * kKiB)) {
    Side upper = side_of(*piece, 512, 8), lower = upper;
    lower.y = 4, lower.x = 19;
    add_copy(lower, upper, {400, 3, 1});
    add_fill({.dst = piece->start + 8,
              .pitch = 512,
              .value = 0xabcd,
              .elementSize = 2,
              .width = 100,
              .height = 4});
  }
  launch(graph, [&] {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Bytes next = random_bytes(sent[i].size());
      std::memcpy(sent[i].data(), next.data(), next.size());
      pieces[i].bytes = next;
      pieces[i].set(0, 0x5c, (next.size() + 1) / 2);
    }
    for (Piece* const piece : from_size(4 * kKiB)) {
      Side upper = side_of(*piece, 512, 8), lower = upper;
      lower.y = 4, lower.x = 19;
      copy_on_host(lower, upper, {400, 3, 1});
      const Bytes filled = [] {
        Bytes bytes(200);
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = i % 2 == 0 ? 0xcd : 0xab;
        return bytes;
      }();
      for (std::size_t y = 0; y < 4; ++y) piece->put(8 + y * 512, filled.data(), filled.size());
    }
  });
}

#if CUDA_VERSION >= 13000
TEST_F(Graphs, built_of_nodes_in_the_general_form) {
  CUgraph graph = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const std::size_t half = pieces[i].size() / 2;
    CUgraphNodeParams fill{};
    fill.type = CU_GRAPH_NODE_TYPE_MEMSET;
    fill.memset.dst = pieces[i].start;
    fill.memset.value = 0x3d;
    fill.memset.elementSize = 1;
    fill.memset.width = half;
    fill.memset.height = 1;
    fill.memset.ctx = devices()[0].context;
    CUgraphNode filled = nullptr, copied = nullptr;
    ASSERT_EQ(cuGraphAddNode(&filled, graph, nullptr, nullptr, 0, &fill), CUDA_SUCCESS);
    CUgraphNodeParams copy{};
    copy.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    copy.memcpy.copyCtx = devices()[0].context;
    Side from = side_of(pieces[i], pieces[i].size(), 1), to = from;
    to.x = half;
    copy.memcpy.copyParams = box_of(to, from, {half, 1, 1});
    ASSERT_EQ(cuGraphAddNode(&copied, graph, &filled, nullptr, 1, &copy), CUDA_SUCCESS);
  }
  launch(graph, [&] {
    for (Piece& piece : pieces) {
      refill(piece);
      piece.set(0, 0x3d, piece.size() / 2 * 2);
    }
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
}
#endif

TEST_F(Graphs, graphs_are_launched_while_others_come_and_go) {
  const CUgraph graph = capture([&] {
    for (const Piece& piece : pieces)
      EXPECT_EQ(cuMemsetD8Async(piece.start, 0x6b, piece.size(), stream), CUDA_SUCCESS);
  });
  launch(graph, [&] {
    std::vector<Piece> others;
    for (const std::size_t size : sizes) others.push_back(make_piece(size));
    for (const Piece& other : others) {
      expect_right(other);
      EXPECT_EQ(cuMemFree(other.start), CUDA_SUCCESS);
    }
    for (Piece& piece : pieces) {
      refill(piece);
      piece.set(0, 0x6b, piece.size());
    }
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  });
}

}  // namespace
}  // namespace cuwarden::memory_contract
