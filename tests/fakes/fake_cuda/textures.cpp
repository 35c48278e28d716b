// Texture objects. As in the driver, their handles are small numbers. No kernel of the fake reads a texture.
#include <set>

#include "driver_state.hpp"

namespace fake_cuda {
namespace {

std::set<CUtexObject>& textures()
{
    static std::set<CUtexObject> all;
    return all;
}

} // namespace
} // namespace fake_cuda

using namespace fake_cuda;

CUresult cuTexObjectCreate(CUtexObject* made, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*,
                           const CUDA_RESOURCE_VIEW_DESC*)
{
    FAKE_CUDA_CHECK(require_context());
    for (*made = 1; textures().contains(*made);) ++*made;
    textures().insert(*made);
    return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject object)
{
    FAKE_CUDA_CHECK(require_context());
    return textures().erase(object) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject object)
{
    FAKE_CUDA_CHECK(require_context());
    *resource = {};
    return textures().contains(object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC*, CUsurfObject)
{
    FAKE_CUDA_CHECK(require_context());
    return CUDA_ERROR_INVALID_VALUE; // the fake makes no surface objects
}
