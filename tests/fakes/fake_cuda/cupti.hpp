// The reports that the fake CUPTI makes to its subscriber: loaded images, and the driver calls that load them.
#pragma once

#include <cstdint>

#include <cuda.h>

namespace fake_cuda {

/// Reports a driver call at its start and at its end, as CUPTI does. `params` is CUPTI's structure with the parameters
/// of the call. Both arguments must outlive this object.
class AnnouncedCall {
public:
    AnnouncedCall(std::uint32_t id, const char* name, const void* params);
    AnnouncedCall(const AnnouncedCall&) = delete;
    AnnouncedCall& operator=(const AnnouncedCall&) = delete;
    void begin();
    void end(CUresult status);

private:
    void announce(bool is_start);
    std::uint32_t m_id;
    const char* m_name;
    const void* m_params;
    std::uint32_t m_correlation;
    CUresult m_status = CUDA_SUCCESS;
};

/// Makes the reports that CUPTI makes about cuModuleLoadData: the start of the call, CUPTI_CBID_RESOURCE_MODULE_LOADED,
/// the end of the call. REQUIRES: the module is live.
void announce_module(CUmodule* loaded, const void* image);

} // namespace fake_cuda
