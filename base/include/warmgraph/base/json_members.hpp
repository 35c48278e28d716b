// Checked reading of a JSON object from an untrusted file. For folders that link nlohmann_json.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "warmgraph/base/sha256.hpp"

namespace warmgraph {

/// Reads members one after the other. first_problem() names the first bad member; after it, nothing is read.
class JsonMembers {
public:
    using Json = nlohmann::json;

    JsonMembers(const Json& json, std::size_t longest_text) : m_json(json), m_longest_text(longest_text)
    {
        if (!json.is_object()) m_wrong = "it is not an object";
    }
    /// Returns nullptr if the member is missing or has another type, or if an earlier member was wrong.
    [[nodiscard]] const Json* find(const char* name, bool (Json::*is)() const noexcept)
    {
        const auto member = m_wrong.empty() ? m_json.find(name) : m_json.end();
        if (m_wrong.empty() && (member == m_json.end() || !((*member).*is)())) wrong(name);
        return m_wrong.empty() ? &*member : nullptr;
    }
    void text(const char* name, std::string& text)
    {
        if (const Json* const member = find(name, &Json::is_string)) take(name, *member, text);
    }
    void texts(const char* name, std::vector<std::string>& list, std::size_t most)
    {
        const Json* const member = find(name, &Json::is_array);
        if (member == nullptr) return;
        if (member->size() > most) return wrong(name);
        for (const Json& item : *member) take(name, item, list.emplace_back());
    }
    void digest(const char* name, Digest& digest)
    {
        if (const Json* const member = find(name, &Json::is_string)) take(name, *member, digest);
    }
    void number(const char* name, std::uint64_t& number)
    {
        if (const Json* const member = find(name, &Json::is_number_unsigned)) number = member->get<std::uint64_t>();
    }
    void milliseconds(const char* name, double& number)
    {
        if (const Json* const member = find(name, &Json::is_number)) number = member->get<double>();
        if (!std::isfinite(number) || number < 0) wrong(name);
    }
    /// Reads one item of the member `name`.
    void take(const char* name, const Json& item, std::string& text)
    {
        if (!item.is_string() || item.get_ref<const std::string&>().size() > m_longest_text) return wrong(name);
        text = item.get<std::string>();
    }
    void take(const char* name, const Json& item, Digest& digest)
    {
        std::string hex;
        take(name, item, hex);
        const auto read = digest_from_our_hex(hex);
        if (!read) return wrong(name);
        digest = *read;
    }
    void wrong(const char* name)
    {
        if (m_wrong.empty()) m_wrong = fmt::format("'{}' is missing or of another kind", name);
    }
    [[nodiscard]] const std::string& first_problem() const noexcept { return m_wrong; }

private:
    const Json& m_json;
    std::size_t m_longest_text;
    std::string m_wrong;
};

} // namespace warmgraph
