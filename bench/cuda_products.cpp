#include "cuda_products.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "cublaslt.hpp"

namespace warmgraph::bench {
namespace {

constexpr std::size_t k_shapes = ProductsDevice::k_widths.size();
constexpr std::uint32_t k_widest = *std::ranges::max_element(ProductsDevice::k_widths);

std::uint32_t width(std::size_t index) { return ProductsDevice::k_widths[index % k_shapes]; }

/// Makes a matrix. Each of its rows adds up to about one, so that results stay as large as the inputs.
std::vector<float> matrix(std::uint32_t in, std::uint32_t out)
{
    std::vector<float> result(std::size_t{in} * out);
    for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = (0.5F + static_cast<float>(i * 7 % 101) / 100.0F) / static_cast<float>(in);
    return result;
}

std::vector<float> input_values()
{
    std::vector<float> result(std::size_t{ProductsDevice::k_rows} * width(0));
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = 1.0F + 0.001F * static_cast<float>(i % 997);
    return result;
}

Buffer upload(const Device& device, const std::vector<float>& values)
{
    return device.upload(std::span<const float>(values));
}

} // namespace

ProductsDevice::ProductsDevice()
    : x(upload(device, input_values())),
      y(device.allocate(std::uint64_t{k_rows} * width(0) * sizeof(float))),
      matrices{upload(device, matrix(width(0), width(1))), upload(device, matrix(width(1), width(2))),
               upload(device, matrix(width(2), width(3))), upload(device, matrix(width(3), width(4))),
               upload(device, matrix(width(4), width(5))), upload(device, matrix(width(5), width(6)))}
{
}

Function wrap_products(Cache& cache, const ProductsDevice& shared, std::uint32_t count)
{
    const std::uint32_t last = width(count);
    Spec spec;
    spec.inputs = {input("x", f32, {ProductsDevice::k_rows, width(0)})};
    spec.outputs = {output("y", f32, {ProductsDevice::k_rows, last})};
    for (std::size_t i = 0; i < k_shapes; ++i)
        spec.states.push_back(weights(fmt::format("matrix{}", i), shared.matrices[i]));
    const auto library = std::make_shared<std::unique_ptr<llm::CublasLt>>();
    return cache.wrap(fmt::format("products{}", count), shared.device, std::move(spec), [library, count](Recorder& r) {
        if (!*library) *library = llm::CublasLt::load();
        constexpr std::uint64_t k_bytes = std::uint64_t{ProductsDevice::k_rows} * k_widest * sizeof(float);
        const Address workspace = r.alloc("workspace", llm::CublasLt::k_workspace_bytes);
        const std::array<Address, 2> scratch{r.alloc("even", k_bytes), r.alloc("odd", k_bytes)};
        Address from = r["x"];
        for (std::uint32_t i = 0; i < count; ++i) {
            const Address to = i + 1 == count ? r["y"] : scratch[i % 2];
            (*library)->enqueue({r[fmt::format("matrix{}", i % k_shapes)].pointer<const float>(),
                                 from.pointer<const float>(), to.pointer<float>(), ProductsDevice::k_rows, width(i),
                                 width(i + 1), llm::Onto::nothing},
                                workspace.pointer<>(), r.stream().native());
            from = to;
        }
    });
}

} // namespace warmgraph::bench
