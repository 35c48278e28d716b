// What CUPTI tells its subscriber here: the images that are loaded, and the call that loaded them.
#pragma once

#include <cuda.h>

namespace fake_cuda {

/// As CUPTI does around cuModuleLoadData: the call's entry, CUPTI_CBID_RESOURCE_MODULE_LOADED, the call's exit.
/// REQUIRES: the module is live.
void announce_module(CUmodule* loaded, const void* image);

} // namespace fake_cuda
