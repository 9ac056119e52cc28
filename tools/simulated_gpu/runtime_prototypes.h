/* Functions that the simulated libcudart exports and that cuda_runtime_api.h does not declare. */

/* Makes sure that the calling thread has a current context; there is no profiler. */
cudaError_t cudaProfilerStart(void);
/* Makes sure that the calling thread has a current context; there is no profiler. */
cudaError_t cudaProfilerStop(void);
