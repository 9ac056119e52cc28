/* Functions of libcuda whose headers (cudaGL.h, cudaEGL.h, cudaVDPAU.h) need OpenGL, EGL or VDPAU.
 * The simulated driver exports them, too; here the types of those libraries become plain ones. */
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource* resource, unsigned int buffer,
                                    unsigned int flags);
CUresult cuGraphicsGLRegisterImage(CUgraphicsResource* resource, unsigned int image,
                                   unsigned int target, unsigned int flags);
CUresult cuGraphicsEGLRegisterImage(CUgraphicsResource* resource, void* image, unsigned int flags);
CUresult cuGraphicsVDPAURegisterVideoSurface(CUgraphicsResource* resource, unsigned int surface,
                                             unsigned int flags);
CUresult cuGraphicsVDPAURegisterOutputSurface(CUgraphicsResource* resource, unsigned int surface,
                                              unsigned int flags);

/* A function that no header of CUDA declares, as a later driver may have one. Fills `bytes` bytes
 * from `start` on with `value`, if the other arguments are 1, 2, 3, 4, 0.5 and 0.25. */
CUresult cuFutureFill(CUdeviceptr start, size_t bytes, unsigned int value, int one, int two,
                      int three, int four, double half, float quarter);
