// Reads and writes tuned configurations in the tiers of a store.
#pragma once

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/autotune/module_configs.hpp"
#include "warmgraph/store/artifacts.hpp"

namespace warmgraph::autotune {

/// The common part of the codecs below, which store JSON text.
struct TunedCodec {
    static constexpr store::ArtifactKind k_kind = store::ArtifactKind::tuned;
    static constexpr ErrorCode k_misnamed = ErrorCode::stale;
    static constexpr store::RefusalScope k_refusing = store::RefusalScope::below_first;

    [[nodiscard]] static Digest key_of(const auto& value) { return value.key; }
    [[nodiscard]] static Result<Bytes> encode(const auto& value)
    {
        const std::string text = autotune::encode(value);
        const ByteView bytes = as_bytes(text);
        return Bytes(bytes.begin(), bytes.end());
    }
};

/// Stores the best configuration of one kernel.
struct BestConfigCodec : TunedCodec {
    using Value = BestConfig;
    static constexpr std::uint8_t k_form = 0;
    static constexpr std::uint64_t k_most_bytes = k_best_config_cap;
    [[nodiscard]] static Result<BestConfig> decode(ByteView bytes) { return autotune::decode(bytes); }
};

/// Stores the configurations of one module.
struct ModuleCodec : TunedCodec {
    using Value = ModuleConfigs;
    static constexpr std::uint8_t k_form = store::k_module_form;
    static constexpr std::uint64_t k_most_bytes = k_module_cap;
    [[nodiscard]] static Result<ModuleConfigs> decode(ByteView bytes) { return decode_module(bytes); }
};

class ConfigLibrary : public store::Artifacts<BestConfigCodec> {
public:
    using Artifacts::Artifacts;
    [[nodiscard]] store::Artifacts<ModuleCodec> modules() const { return store::Artifacts<ModuleCodec>(tiers()); }
};

} // namespace warmgraph::autotune
