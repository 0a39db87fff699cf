/* split_encode_avx512vbmi.c - the encoder's AVX-512 kernel (VBMI and VBMI2). */
#include "split_encode.h"

const struct wfs_encode_kernel *wfs_encode_kernel_avx512vbmi_get(void)
{
	return NULL;
}
