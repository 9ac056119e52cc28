/* Functions that the simulated libcudart exports and that cuda_runtime_api.h does not declare. */
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
