// Frees of pieces: in any thread and context, never before the device is done with the piece, and
// the addresses can be used by others at once.
#include <random>
#include <thread>

#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

namespace cuwarden::memory_contract {
namespace {

class Frees : public MemoryTest {
 protected:
  // Frees all pieces but every third, makes them again, and then does so with the others.
  template <class Free>
  void free_and_make_again(Free free) {
    for (const std::size_t kept : {0u, 1u, 2u}) {
      for (std::size_t i = 0; i < pieces.size(); ++i)
        if (i % 3 != kept) free(pieces[i].start);
      for (std::size_t i = 0; i < pieces.size(); ++i)
        if (i % 3 != kept) pieces[i] = make_piece(pieces[i].size());
      expect_all_right();
    }
  }
  static void in_another_thread(CUcontext context, auto work) {
    std::thread([&] {
      ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
      work();
    }).join();
  }

  // Frees all pieces while work on them has not begun yet, and makes as many new ones. The work
  // must be done on the freed pieces and must not change the new ones.
  template <class Free>
  void free_under_work(Free free) {
    constexpr unsigned char worked = 0x99;
    std::vector<void*> done(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i)
      ASSERT_EQ(cuMemAllocHost(&done[i], pieces[i].size()), CUDA_SUCCESS);
    begin_long_work(stream);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const CUdeviceptr start = pieces[i].start;
      const std::size_t count = pieces[i].size();
      ASSERT_EQ(cuMemsetD8Async(start, worked, count, stream), CUDA_SUCCESS);
      ASSERT_EQ(cuMemcpyDtoHAsync(done[i], start, count, stream), CUDA_SUCCESS);
    }
    for (const Piece& piece : pieces) ASSERT_NO_FATAL_FAILURE(free(piece.start));
    for (Piece& piece : pieces) piece = make_piece(piece.size());
    expect_all_right();
    synchronise();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto* const bytes = static_cast<unsigned char*>(done[i]);
      const std::size_t count = pieces[i].size();
      expect_same({bytes, count}, Bytes(count, worked), "what the work left");
      ASSERT_EQ(cuMemFreeHost(done[i]), CUDA_SUCCESS);
    }
  }
};

TEST_F(Frees, in_the_thread_that_made_it) {
  free_and_make_again([](CUdeviceptr start) { ASSERT_EQ(cuMemFree(start), CUDA_SUCCESS); });
}

TEST_F(Frees, by_the_runtime) {
  free_and_make_again(
      [](CUdeviceptr start) { ASSERT_EQ(cudaFree(reinterpret_cast<void*>(start)), cudaSuccess); });
}

TEST_F(Frees, in_another_thread) {
  free_and_make_again([](CUdeviceptr start) {
    in_another_thread(devices()[0].context, [start] { ASSERT_EQ(cuMemFree(start), CUDA_SUCCESS); });
  });
}

TEST_F(Frees, in_another_thread_by_the_runtime) {
  free_and_make_again([](CUdeviceptr start) {
    in_another_thread(
        nullptr, [start] { ASSERT_EQ(cudaFree(reinterpret_cast<void*>(start)), cudaSuccess); });
  });
}

TEST_F(Frees, in_a_thread_without_a_context) {
  free_and_make_again([](CUdeviceptr start) {
    in_another_thread(nullptr, [start] { ASSERT_EQ(cuMemFree(start), CUDA_SUCCESS); });
  });
}

TEST_F(Frees, in_another_context_of_the_device) {
  const CUcontext other = make_context(devices()[0].handle);
  free_and_make_again([&](CUdeviceptr start) {
    ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(start), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(devices()[0].context), CUDA_SUCCESS);
  });
  ASSERT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(devices()[0].context), CUDA_SUCCESS);
}

TEST_F(Frees, wait_for_work_that_is_pending) {
  free_under_work([](CUdeviceptr start) {
    ASSERT_EQ(cuMemFree(start), CUDA_SUCCESS);
    EXPECT_TRUE(is_long_work_done());
  });
}

TEST_F(Frees, in_stream_order) {
  free_and_make_again(
      [&](CUdeviceptr start) { ASSERT_EQ(cuMemFreeAsync(start, stream), CUDA_SUCCESS); });
}

TEST_F(Frees, in_stream_order_behind_pending_work) {
  free_under_work(
      [&](CUdeviceptr start) { ASSERT_EQ(cuMemFreeAsync(start, stream), CUDA_SUCCESS); });
}

TEST_F(Frees, in_stream_order_in_a_stream_that_knows_nothing_of_it) {
  CUstream other = nullptr;
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  free_and_make_again([&](CUdeviceptr start) {
    ASSERT_EQ(cudaFreeAsync(reinterpret_cast<void*>(start), other), cudaSuccess);
  });
  ASSERT_EQ(cuStreamDestroy(other), CUDA_SUCCESS);
}

TEST_F(Frees, frees_of_one_context_leave_anothers_memory_alone) {
  const CUcontext other = make_context(devices()[0].handle);
  std::vector<Piece> there;
  for (const std::size_t size : sizes) there.push_back(make_piece(size));
  for (const Piece& piece : there) expect_right(piece);
  ASSERT_EQ(cuMemFree(there[0].start), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);  // frees the pieces of the context, too
  ASSERT_EQ(cuCtxSetCurrent(devices()[0].context), CUDA_SUCCESS);
  for (const Piece& piece : there)
    EXPECT_EQ(cuMemFree(piece.start), CUDA_ERROR_INVALID_VALUE) << piece.size();
}

// Pieces of all sizes come and go at random, and the live ones have the right contents at each
// step.
TEST_F(Frees, many_pieces_come_and_go) {
  std::mt19937 random(11);
  std::vector<Piece> live;
  for (int step = 0; step < 400; ++step) {
    if (live.size() < 24 || (live.size() < 64 && random() % 2 == 0)) {
      const std::size_t most = sizes[random() % 11];  // the largest size is left out
      live.push_back(make_piece(most - random() % (most / 4 + 1)));
    } else {
      std::swap(live[random() % live.size()], live.back());
      expect_right(live.back());
      ASSERT_EQ(cuMemFree(live.back().start), CUDA_SUCCESS);
      live.pop_back();
    }
    if (step % 50 == 0)
      for (const Piece& piece : live) expect_right(piece);
  }
  for (const Piece& piece : live) {
    expect_right(piece);
    ASSERT_EQ(cuMemFree(piece.start), CUDA_SUCCESS);
  }
}

TEST_F(Frees, several_threads_free_at_once) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      ASSERT_EQ(cuCtxSetCurrent(devices()[0].context), CUDA_SUCCESS);
      for (int round = 0; round < 40; ++round) {
        const std::size_t size = sizes[(static_cast<std::size_t>(round + i)) % 11];
        const Bytes sent(size, static_cast<unsigned char>(16 * i + round % 16));
        Bytes got(size);
        CUdeviceptr start = 0;
        ASSERT_EQ(cuMemAlloc(&start, size), CUDA_SUCCESS);
        ASSERT_EQ(cuMemcpyHtoD(start, sent.data(), size), CUDA_SUCCESS);
        std::this_thread::yield();
        ASSERT_EQ(cuMemcpyDtoH(got.data(), start, size), CUDA_SUCCESS);
        expect_same(got, sent, "a thread's piece");
        ASSERT_EQ(cuMemFree(start), CUDA_SUCCESS);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace cuwarden::memory_contract
