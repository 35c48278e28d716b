#include "stored_bytes.hpp"

#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include <elf.h>

#include "checked.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::bench {
namespace {

template <class T>
T read_at(ByteView bytes, std::uint64_t offset)
{
    if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) throw std::runtime_error("an image is cut off");
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

/// True if the section is of one of these kernels. In ".text.K", ".nv.info.K", ".nv.constant0.K" and ".rela.text.K",
/// the part behind the last prefix is the kernel K.
bool belongs_to(std::string_view section, const std::set<std::string>& kernels)
{
    for (const std::string& kernel : kernels) {
        if (section.size() > kernel.size() && section.ends_with(kernel) &&
            section[section.size() - kernel.size() - 1] == '.')
            return true;
    }
    return false;
}

/// Bytes of a cubin (ELF64, System V gABI) that belong to these kernels.
std::uint64_t kernel_bytes(ByteView image, const std::set<std::string>& kernels)
{
    const auto header = read_at<Elf64_Ehdr>(image, 0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) throw std::runtime_error("an image is not a cubin");
    const auto section_at = [&](std::uint64_t index) {
        return read_at<Elf64_Shdr>(image, header.e_shoff + index * sizeof(Elf64_Shdr));
    };
    const auto names = section_at(header.e_shstrndx);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
        const auto section = section_at(i);
        if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) continue;
        const std::uint64_t at = names.sh_offset + section.sh_name;
        if (at >= image.size()) throw std::runtime_error("an image's names are cut off");
        const char* const name = reinterpret_cast<const char*>(image.data() + at);
        if (belongs_to({name, ::strnlen(name, image.size() - at)}, kernels)) sum += section.sh_size;
    }
    return sum;
}

} // namespace

StoredBytes stored_bytes(const std::filesystem::path& cache)
{
    StoredBytes bytes;
    const auto store = checked(store::LocalStore::open(cache));
    std::map<Digest, std::set<std::string>> launched;
    for (const auto& function : checked(store->functions())) {
        for (const auto& variant : checked(store->variants(function))) {
            bytes.stored += variant.size;
            const auto entry = checked(store->entry({function, variant.guards_digest}));
            if (!entry) throw std::runtime_error("an entry is gone");
            for (const auto& node : entry->graph.nodes) {
                if (const auto* kernel = std::get_if<cachefmt::KernelNode>(&node))
                    launched[entry->graph.images.at(kernel->image).digest].insert(kernel->kernel);
            }
        }
    }
    for (const auto& [digest, size] : checked(store->images())) bytes.stored += size;
    for (const auto& [digest, kernels] : launched) {
        const auto image = checked(store->image(digest));
        if (!image) throw std::runtime_error("an image is gone");
        bytes.kernels += kernel_bytes(*image, kernels);
    }
    return bytes;
}

} // namespace warmgraph::bench
