// The keys with which the kept inputs of PyTorch's artifacts are signed.
#pragma once

#include <string>

#include "warmgraph/base/signing_key.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::fuzz {

/// A key whose id is the name of its kind. A key made with another digit has the same id, but is not accepted.
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
