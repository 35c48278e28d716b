// What CUPTI tells its subscriber here: the images that are loaded, and the call that loaded them; textures.
#pragma once

#include <cuda.h>

namespace fake_cuda {

/// As CUPTI does around cuModuleLoadData: the call's entry, CUPTI_CBID_RESOURCE_MODULE_LOADED, the call's exit.
/// REQUIRES: the module is live.
void announce_module(CUmodule* loaded, const void* image);
/// The whole call that made or destroyed it.
void announce_texture(CUtexObject* made);
void announce_texture_gone(CUtexObject object);

} // namespace fake_cuda
