/* Functions of libcudart that nvcc's generated code calls; crt/host_runtime.h cannot be included on its own. */
