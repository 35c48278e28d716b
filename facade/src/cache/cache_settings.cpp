#include "cache/cache_settings.hpp"

#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph {

std::string CacheSettings::model_info(std::string_view backend) const
{
    const std::scoped_lock lock{m_mutex};
    auto known = m_models.find(backend);
    if (known == m_models.end())
        known =
            m_models.emplace(backend, cachefmt::model_info(options.model, backend, shape_mode(), options.config)).first;
    return known->second;
}

std::string_view CacheSettings::shape_mode() const noexcept
{
    return options.shapes == ShapeMode::dynamic ? "dynamic" : "static";
}

cachefmt::FunctionKey CacheSettings::key(const std::string& function, const backends::Device& device) const
{
    return {model_info(device.backend()), cachefmt::folder_name(rank), function};
}

} // namespace warmgraph
