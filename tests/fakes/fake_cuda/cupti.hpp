// The fake CUPTI's reports to its subscriber: loaded images, and the call that loaded them.
#pragma once

#include <cstdint>

#include <cuda.h>

namespace fake_cuda {

/// A driver call in CUPTI's reports, at its start and its end. `params` is CUPTI's structure of the call's parameters;
/// both outlive this.
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

/// Reports as CUPTI does around cuModuleLoadData: the call's entry, CUPTI_CBID_RESOURCE_MODULE_LOADED, the call's exit.
/// REQUIRES: the module is live.
void announce_module(CUmodule* loaded, const void* image);

} // namespace fake_cuda
