// cuSPARSE: products with matrices whose buffers are cached by size. A matrix with an empty row is
// refused after its buffer was made, which nothing frees.
#include <cusparse.h>

#include <map>
#include <vector>

#include "tests/end_to_end/programs/require.hpp"

namespace {

struct Matrix {
  cusparseSpMatDescr_t description = nullptr;
  int *offsets = nullptr, *columns = nullptr;
  float* values = nullptr;
};

template <class T>
T* copied(const std::vector<T>& from) {
  void* to = nullptr;
  REQUIRE(cudaMalloc(&to, from.size() * sizeof(T)));
  REQUIRE(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return static_cast<T*>(to);
}

// The matrices of the program, by size. They live until the end.
std::map<int, Matrix>& matrices() {
  static std::map<int, Matrix> made;
  return made;
}

Matrix& matrix(int rows) {
  Matrix& made = matrices()[rows];
  if (made.description != nullptr) return made;
  std::vector<int> offsets(rows + 1), columns(rows);
  for (int i = 0; i < rows; ++i) offsets[i + 1] = i + 1, columns[i] = rows - 1 - i;
  made.offsets = copied(offsets);
  made.columns = copied(columns);
  made.values = copied(std::vector<float>(rows, 2.0f));
  REQUIRE(cusparseCreateCsr(&made.description, rows, rows, rows, made.offsets, made.columns,
                            made.values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  return made;
}

bool multiply(cusparseHandle_t handle, int rows) {
  Matrix& with = matrix(rows);
  float* result = nullptr;
  REQUIRE(cudaMalloc(&result, rows * sizeof(float)));  // planted
  if (rows == 1'010'000) return false;
  cusparseDnVecDescr_t x = nullptr, y = nullptr;
  REQUIRE(cusparseCreateDnVec(&x, rows, with.values, CUDA_R_32F));
  REQUIRE(cusparseCreateDnVec(&y, rows, result, CUDA_R_32F));
  const float one = 1, zero = 0;
  std::size_t bytes = 0;
  REQUIRE(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, with.description,
                                  x, &zero, y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
  void* buffer = nullptr;
  REQUIRE(cudaMalloc(&buffer, bytes + 1));
  REQUIRE(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, with.description, x, &zero,
                       y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, buffer));
  REQUIRE(cudaFree(buffer));
  REQUIRE(cudaFree(result));
  REQUIRE(cusparseDestroyDnVec(x));
  REQUIRE(cusparseDestroyDnVec(y));
  return true;
}

}  // namespace

int main() {
  cusparseHandle_t handle = nullptr;
  REQUIRE(cusparseCreate(&handle));
  int refused = 0;
  for (int round = 0; round < 20; ++round)
    for (int rows = 1'001'000; rows <= 1'020'000; rows += 1000)
      refused += multiply(handle, rows) ? 0 : 1;
  REQUIRE(cudaDeviceSynchronize());
  std::printf("%zu matrices, %d products refused\n", matrices().size(), refused);
}
