// Whose signatures the kept inputs of PyTorch's artifacts have.
#pragma once

#include <string>

#include "warmgraph/base/signing_key.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::fuzz {

/// Keys of two kinds are two keys, whose ids say the kind; those of another digit are strangers under the same id.
inline SigningKey torch_key(const std::string& kind, char digit = 'b')
{
    return SigningKey::parse(kind + ":" + kind + ":" + std::string(64, digit)).value();
}

inline Bytes sample_torch(const SigningKey& key)
{
    const store::TorchFacts facts{{"gpu", "NVIDIA \"H100\" \x01"}, {"model", "llama"}, {"torch", "2.11.0+cu130"}};
    return store::encode_torch(facts, "2026-11-25T08:00:00Z", Bytes(70, std::byte{'p'}), key).value();
}

} // namespace warmgraph::fuzz
