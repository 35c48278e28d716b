// Reads .mega_cache files, which contain code for processes that trust their signature. Most mutations are sealed
// again, because an attacker can do that, too. Some are signed, with an accepted key or with another one.
#include "fuzz.hpp"
#include "reseal_torch.hpp"
#include "torch_keys.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace warmgraph;

const cachefmt::Trust& trust()
{
    static const cachefmt::Trust trust{
        .accepted = {std::make_shared<const SigningKey>(fuzz::torch_key("ed25519")),
                     std::make_shared<const SigningKey>(fuzz::torch_key("hmac-sha256"))}};
    return trust;
}

void make_whole(Bytes& object)
{
    namespace at = test::torch_at;
    std::memcpy(object.data(), "WGTORCH\n", 8);
    test::write_at(object, at::format, store::k_torch_format);
    const std::size_t facts = test::torch_facts_of(object).size();
    test::write_at(object, at::facts_size, static_cast<std::uint32_t>(facts));
    test::write_at(object, at::bytes_size, std::uint64_t{object.size() - at::facts - facts});
    test::fix_torch_bytes_digest(object);
}

void check_refusal(const Error& error)
{
    fuzz::require(error.code == ErrorCode::corrupt || error.code == ErrorCode::stale ||
                      error.code == ErrorCode::untrusted,
                  "a refusal is corrupt, stale or untrusted");
    fuzz::require(!error.message.empty(), "a refusal says why");
}

/// The bytes that are returned must be the signed bytes. The object must be exactly the one that the owner of the key
/// would write.
void check_given(ByteView object, const store::TorchLabel& label, const Bytes& given)
{
    fuzz::require(std::ranges::equal(given, object.last(label.size)), "PyTorch's bytes are the object's last");
    const auto again = store::encode_torch(label.facts, label.written, given, *trust().find(label.key_id));
    fuzz::require(again && std::ranges::equal(*again, object), "what is accepted is what would be written");
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size < test::torch_at::facts || seed % 8 == 0) return size; // unchanged digests, as after accidental damage
    Bytes object(size);
    std::memcpy(object.data(), data, size);
    if (seed % 8 != 1) make_whole(object); // in the other case, the sizes are wrong but the digests match
    if (seed % 8 > 4) test::sign_torch(object, *trust().accepted[seed % 2]);
    if (seed % 8 == 4) test::sign_torch(object, fuzz::torch_key("ed25519", 'c')); // with a key that is not accepted
    test::seal_torch(object);
    std::memcpy(data, object.data(), size);
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const ByteView object{reinterpret_cast<const std::byte*>(data), size};
    const auto label = store::inspect_torch(object);
    const auto given = store::decode_torch(object, trust());
    if (!label) check_refusal(label.error());
    if (!given) check_refusal(given.error());
    fuzz::require(label || label.error().code != ErrorCode::untrusted, "who only looks asks for no key");
    fuzz::require(label || !given, "nothing is given of an object that says nothing of itself");
    if (label && given) check_given(object, *label, *given);
    const auto without_keys = store::decode_torch(object, {});
    fuzz::require(!without_keys, "without a key nothing is given");
    fuzz::require(!label || without_keys.error().code == ErrorCode::untrusted, "a whole object lacks the key alone");
    return 0;
}
