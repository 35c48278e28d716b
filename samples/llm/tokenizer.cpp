#include "tokenizer.hpp"

namespace llm {

std::vector<std::int32_t> encode(std::string_view text)
{
    std::vector<std::int32_t> tokens;
    tokens.reserve(text.size());
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
}

std::string decode(const std::vector<std::int32_t>& tokens)
{
    std::string text;
    text.reserve(tokens.size());
    for (const std::int32_t token : tokens) {
        if (token >= 0 && token <= 255) text.push_back(static_cast<char>(token));
    }
    return text;
}

} // namespace llm
