/* Functions of libcuda whose headers (cudaGL.h, cudaEGL.h, cudaVDPAU.h) need OpenGL, EGL or VDPAU.
 * The simulated driver exports them, too; here the types of those libraries become plain ones. */

/* As in cudaGL.h, but for plain types. The simulated driver returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource* resource, unsigned int buffer,
                                    unsigned int flags);
/* As in cudaGL.h, but for plain types. The simulated driver returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult cuGraphicsGLRegisterImage(CUgraphicsResource* resource, unsigned int image,
                                   unsigned int target, unsigned int flags);
/* As in cudaEGL.h, but for plain types. The simulated driver returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult cuGraphicsEGLRegisterImage(CUgraphicsResource* resource, void* image, unsigned int flags);
/* As in cudaVDPAU.h, but for plain types. The simulated driver returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult cuGraphicsVDPAURegisterVideoSurface(CUgraphicsResource* resource, unsigned int surface,
                                             unsigned int flags);
/* As in cudaVDPAU.h, but for plain types. The simulated driver returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult cuGraphicsVDPAURegisterOutputSurface(CUgraphicsResource* resource, unsigned int surface,
                                              unsigned int flags);

/* A function that no header of CUDA declares, as a later driver may have one. Fills `bytes` bytes
 * from `start` on with the lowest byte of `value`. Returns CUDA_ERROR_INVALID_VALUE if the other
 * arguments are not 1, 2, 3, 4, 0.5 and 0.25. */
CUresult cuFutureFill(CUdeviceptr start, size_t bytes, unsigned int value, int one, int two,
                      int three, int four, double half, float quarter);
