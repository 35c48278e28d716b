#include "cupti.hpp"

#include <set>
#include <utility>

#include <cupti.h>

#include "faults.hpp"
#include "modules.hpp"

namespace fake_cuda {
namespace {

struct Subscriber {
    CUpti_CallbackFunc callback = nullptr;
    void* data = nullptr;
    std::set<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> enabled;
    std::set<CUpti_CallbackDomain> domains;

    [[nodiscard]] bool wants(CUpti_CallbackDomain domain, CUpti_CallbackId id) const
    {
        return callback != nullptr && (domains.contains(domain) || enabled.contains({domain, id}));
    }
};

Subscriber& subscriber()
{
    static Subscriber one;
    return one;
}

// The handle of the only subscriber.
CUpti_SubscriberHandle the_handle() { return reinterpret_cast<CUpti_SubscriberHandle>(&subscriber()); }

} // namespace

AnnouncedCall::AnnouncedCall(std::uint32_t id, const char* name, const void* params)
    : m_id(id), m_name(name), m_params(params)
{
    static std::uint32_t correlation = 0;
    m_correlation = ++correlation;
}

void AnnouncedCall::begin() { announce(true); }

void AnnouncedCall::end(CUresult status)
{
    m_status = status;
    announce(false);
}

void AnnouncedCall::announce(bool is_start)
{
    if (!subscriber().wants(CUPTI_CB_DOMAIN_DRIVER_API, m_id)) return;
    CUpti_CallbackData data{};
    data.callbackSite = is_start ? CUPTI_API_ENTER : CUPTI_API_EXIT;
    data.functionName = m_name;
    data.functionParams = m_params;
    data.functionReturnValue = &m_status;
    data.correlationId = m_correlation;
    static_cast<void>(cuCtxGetCurrent(&data.context));
    subscriber().callback(subscriber().data, CUPTI_CB_DOMAIN_DRIVER_API, m_id, &data);
}

void announce_module(CUmodule* loaded, const void* image)
{
    const cuModuleLoadData_params params{loaded, image};
    AnnouncedCall call(CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData, "cuModuleLoadData", &params);
    call.begin();
    const auto& bytes = (*loaded)->image;
    CUpti_ModuleResourceData module{};
    module.cubinSize = bytes.size();
    module.pCubin = reinterpret_cast<const char*>(bytes.data());
    CUpti_ResourceData data{};
    data.resourceDescriptor = &module;
    static_cast<void>(cuCtxGetCurrent(&data.context));
    if (subscriber().wants(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED))
        subscriber().callback(subscriber().data, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, &data);
    call.end(CUDA_SUCCESS);
}

} // namespace fake_cuda

using namespace fake_cuda;

#define FAKE_CUPTI_ENTER(name)                                                                                         \
    if (enter(name)) return CUPTI_ERROR_UNKNOWN;                                                                       \
    const std::scoped_lock lock(driver_mutex())

FAKE_CUDA_EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* data)
{
    FAKE_CUPTI_ENTER("cuptiSubscribe");
    if (subscriber().callback != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    subscriber() = {callback, data, {}, {}};
    *handle = the_handle();
    return CUPTI_SUCCESS;
}

FAKE_CUDA_EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
    FAKE_CUPTI_ENTER("cuptiUnsubscribe");
    if (handle != the_handle()) return CUPTI_ERROR_INVALID_PARAMETER;
    subscriber() = {};
    return CUPTI_SUCCESS;
}

FAKE_CUDA_EXPORT CUptiResult cuptiFinalize()
{
    FAKE_CUPTI_ENTER("cuptiFinalize");
    subscriber() = {};
    return CUPTI_SUCCESS;
}

FAKE_CUDA_EXPORT CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle handle,
                                                 CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    FAKE_CUPTI_ENTER("cuptiEnableCallback");
    if (handle != the_handle()) return CUPTI_ERROR_INVALID_PARAMETER;
    if (enable != 0)
        subscriber().enabled.insert({domain, id});
    else
        subscriber().enabled.erase({domain, id});
    return CUPTI_SUCCESS;
}

FAKE_CUDA_EXPORT CUptiResult cuptiEnableDomain(std::uint32_t enable, CUpti_SubscriberHandle handle,
                                               CUpti_CallbackDomain domain)
{
    FAKE_CUPTI_ENTER("cuptiEnableDomain");
    if (handle != the_handle()) return CUPTI_ERROR_INVALID_PARAMETER;
    if (enable != 0)
        subscriber().domains.insert(domain);
    else
        subscriber().domains.erase(domain);
    return CUPTI_SUCCESS;
}

FAKE_CUDA_EXPORT CUptiResult cuptiGetVersion(std::uint32_t* version)
{
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

FAKE_CUDA_EXPORT CUptiResult cuptiGetResultString(CUptiResult, const char** text)
{
    *text = "text of the fake CUPTI";
    return CUPTI_SUCCESS;
}
