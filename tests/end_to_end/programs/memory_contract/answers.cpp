// The driver's answers about any address in a piece, and that no two pieces overlap.
#include <algorithm>
#include <set>

#include "tests/end_to_end/programs/memory_contract/pieces.hpp"

namespace cuwarden::memory_contract {
namespace {

class Answers : public MemoryTest {
 protected:
  template <class Value>
  static Value attribute(CUpointer_attribute which, CUdeviceptr address) {
    Value value{};
    EXPECT_EQ(cuPointerGetAttribute(&value, which, address), CUDA_SUCCESS) << which;
    return value;
  }
  static std::vector<CUdeviceptr> addresses_in(const Piece& piece) {
    return {piece.start, piece.start + piece.size() / 2, piece.start + piece.size() - 1};
  }
};

TEST_F(Answers, each_begins_at_a_multiple_of_512_and_none_lies_in_another) {
  std::vector<const Piece*> all;
  for (const Piece& piece : pieces) all.push_back(&piece);
  std::ranges::sort(all, {}, &Piece::start);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i]->start % 512, 0u) << all[i]->size();
    if (i + 1 < all.size()) {
      EXPECT_LE(all[i]->start + all[i]->size(), all[i + 1]->start);
    }
  }
}

TEST_F(Answers, the_range_of_a_pointer_is_the_requested_range) {
  for (const Piece& piece : pieces) {
    for (const CUdeviceptr address : addresses_in(piece)) {
      CUdeviceptr start = 0;
      std::size_t count = 0;
      ASSERT_EQ(cuMemGetAddressRange(&start, &count, address), CUDA_SUCCESS);
      EXPECT_EQ(start, piece.start);
      EXPECT_EQ(count, piece.size());
      ASSERT_EQ(cuMemGetAddressRange(nullptr, &count, address), CUDA_SUCCESS);
      EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address),
                piece.start);
      EXPECT_EQ(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address), piece.size());
    }
  }
}

TEST_F(Answers, a_pointer_is_memory_of_the_device_and_of_the_context) {
  for (const Piece& piece : pieces) {
    for (const CUdeviceptr address : addresses_in(piece)) {
      EXPECT_EQ(attribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, address), devices()[0].context);
      EXPECT_EQ(attribute<CUmemorytype>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
                CU_MEMORYTYPE_DEVICE);
      EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address), address);
      EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address), 0);
      EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, address), 0u);
      void* host = nullptr;
      EXPECT_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address),
                CUDA_ERROR_INVALID_VALUE);
    }
  }
}

TEST_F(Answers, several_at_once_are_the_same) {
  for (const Piece& piece : pieces) {
    for (const CUdeviceptr address : addresses_in(piece)) {
      CUpointer_attribute wanted[] = {
          CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
          CU_POINTER_ATTRIBUTE_HOST_POINTER,     CU_POINTER_ATTRIBUTE_BUFFER_ID,
          CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
      std::uint64_t values[std::size(wanted)];
      void* to[std::size(wanted)];
      for (std::size_t i = 0; i < std::size(wanted); ++i) values[i] = ~0ull, to[i] = &values[i];
      ASSERT_EQ(cuPointerGetAttributes(std::size(wanted), wanted, to, address), CUDA_SUCCESS);
      EXPECT_EQ(values[0], reinterpret_cast<std::uint64_t>(devices()[0].context));
      EXPECT_EQ(values[1], address);
      EXPECT_EQ(values[2], 0u);
      EXPECT_EQ(values[3], attribute<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, address));
      EXPECT_EQ(values[4], piece.start);
      EXPECT_EQ(values[5], piece.size());
    }
  }
}

TEST_F(Answers, the_runtime_says_the_same) {
  for (const Piece& piece : pieces) {
    for (const CUdeviceptr address : addresses_in(piece)) {
      cudaPointerAttributes attributes{};
      ASSERT_EQ(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(address)),
                cudaSuccess);
      EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
      EXPECT_EQ(attributes.device, 0);
      EXPECT_EQ(attributes.devicePointer, reinterpret_cast<void*>(address));
      EXPECT_EQ(attributes.hostPointer, nullptr);
    }
  }
}

// "All allocations have a unique ID during the process": caches of registrations go by it.
TEST_F(Answers, the_id_of_a_pointer_is_given_to_no_other) {
  const auto id_at = [](CUdeviceptr address) {
    return attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
  };
  std::set<unsigned long long> seen;
  for (int round = 0; round < 3; ++round) {
    for (Piece& piece : pieces) {
      const unsigned long long id = id_at(piece.start);
      EXPECT_TRUE(seen.insert(id).second) << piece.size();
      for (const CUdeviceptr address : addresses_in(piece)) EXPECT_EQ(id_at(address), id);
      ASSERT_EQ(cuMemFree(piece.start), CUDA_SUCCESS);
      piece = make_piece(piece.size());
    }
  }
}

TEST_F(Answers, queries_of_freed_memory_fail) {
  for (Piece& piece : pieces) {
    const CUdeviceptr start = piece.start;
    ASSERT_EQ(cuMemFree(start), CUDA_SUCCESS);
    std::size_t count = 0;
    CUdeviceptr found = 0;
    EXPECT_EQ(cuMemGetAddressRange(&found, &count, start), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, start),
              CUDA_ERROR_INVALID_VALUE);
    cudaPointerAttributes attributes{};
    ASSERT_EQ(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(start)), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(cuMemFree(start), CUDA_ERROR_INVALID_VALUE);
    piece = make_piece(piece.size());
  }
}

TEST_F(Answers, only_its_start_can_be_freed) {
  for (const Piece& piece : pieces) {
    for (const std::size_t at : {std::size_t{1}, std::size_t{512}, piece.size() - 1}) {
      if (at == 0 || at >= piece.size()) continue;
      EXPECT_EQ(cuMemFree(piece.start + at), CUDA_ERROR_INVALID_VALUE);
      EXPECT_EQ(cudaFree(reinterpret_cast<void*>(piece.start + at)), cudaErrorInvalidValue);
    }
    EXPECT_EQ(cuMemFreeHost(reinterpret_cast<void*>(piece.start)), CUDA_ERROR_INVALID_VALUE);
  }
  cudaGetLastError();
}

// A process that shares memory may keep another allocator from serving afterwards: run by itself.
using Sharing = Answers;
TEST_F(Sharing, by_handle_is_possible_where_the_driver_says_so_and_refused_elsewhere) {
  for (const Piece& piece : pieces) {
    const bool may =
        attribute<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, piece.start) != 0;
    CUipcMemHandle handle;
    EXPECT_EQ(cuIpcGetMemHandle(&handle, piece.start),
              may ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace
}  // namespace cuwarden::memory_contract
