#include "image_table.hpp"

#include <algorithm>
#include <set>

#include "cubin.hpp"

namespace warmgraph::backends::cuda {

namespace {

bool may_be_of(const ModuleCall& call, const Bytes& image)
{
    const auto kernels = kernels_of(image);
    if (!kernels) return false;
    if (call.function && std::ranges::find(*kernels, *call.function) == kernels->end()) return false;
    if (call.all_functions.empty()) return true;
    return std::set(kernels->begin(), kernels->end()) == std::set(call.all_functions.begin(), call.all_functions.end());
}

} // namespace

void ImageTable::associate(const ModuleCall& call, const std::vector<LoadedImage>& loaded)
{
    std::vector<LoadedImage> fitting;
    for (const LoadedImage& image : loaded)
        if (image.bytes && may_be_of(call, *image.bytes)) fitting.push_back(image);

    const std::lock_guard lock(m_mutex);
    if (call.module == ModuleCall::Module::made) m_images.erase(call.handle);
    const auto known = m_images.find(call.handle);
    if (fitting.empty() || (known != m_images.end() && !known->second.image.bytes)) return;
    // The image that is already tied to this handle also counts if it fits. If it does not, its module was unloaded
    // unseen and the handle was reused.
    if (known != m_images.end() && may_be_of(call, *known->second.image.bytes)) fitting.push_back(known->second.image);
    const bool same =
        std::ranges::all_of(fitting, [&](const LoadedImage& image) { return *image.bytes == *fitting.front().bytes; });
    m_images[call.handle] = HandleImage{same ? fitting.front() : LoadedImage{}, call.context};
}

void ImageTable::forget_module(const void* handle) noexcept
{
    const std::lock_guard lock(m_mutex);
    m_images.erase(handle);
}

void ImageTable::forget_image(std::uint32_t id) noexcept
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_images, [&](const auto& tie) { return tie.second.image.bytes && tie.second.image.id == id; });
}

void ImageTable::forget_context(const void* context) noexcept
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_images, [&](const auto& tie) { return tie.second.context == context; });
}

void ImageTable::forget_all_but(const std::function<bool(const void*)>& stays)
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_images, [&](const auto& tie) { return !stays(tie.first); });
}

std::shared_ptr<const Bytes> ImageTable::find(const void* handle) const
{
    const std::lock_guard lock(m_mutex);
    const auto known = m_images.find(handle);
    return known != m_images.end() ? known->second.image.bytes : nullptr;
}

bool ImageTable::is_known(const void* handle) const
{
    const std::lock_guard lock(m_mutex);
    return m_images.contains(handle);
}

} // namespace warmgraph::backends::cuda
