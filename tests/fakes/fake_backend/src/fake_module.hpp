#pragma once

#include <map>

#include "fake_kernels.hpp"
#include "fake_state.hpp"

namespace warmgraph::backends {

class FakeModule final : public Module {
public:
    [[nodiscard]] static Result<std::unique_ptr<Module>> compile(FakeState& state, std::string_view source,
                                                                 std::string_view options);
    [[nodiscard]] static Result<std::unique_ptr<Module>> load(FakeState& state, ByteView image);

    [[nodiscard]] Result<Bytes> image() override;
    [[nodiscard]] Digest origin() const noexcept override { return m_origin; }
    [[nodiscard]] Result<std::uint32_t> param_count(const std::string& kernel) override;

    [[nodiscard]] Result<const FakeKernel*> find(const std::string& kernel) const;

private:
    FakeModule(FakeState& state, std::string source)
        : m_state(state), m_source(std::move(source)), m_count(state.modules)
    {
    }
    [[nodiscard]] Result<void> parse();

    FakeState& m_state;
    std::string m_source;
    Digest m_origin;
    std::map<std::string, const FakeKernel*> m_kernels;
    LiveCount m_count;
};

} // namespace warmgraph::backends
