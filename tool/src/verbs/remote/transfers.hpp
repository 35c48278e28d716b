// The common parts of `warmgraph push`, `warmgraph pull` and `warmgraph doctor --remote`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "context.hpp"
#include "warmgraph/remote/settings.hpp"

namespace warmgraph::tool {

/// The remotes of --remote, or else of $WARMGRAPH_REMOTE. invalid_argument: neither names one, or a URL is wrong.
[[nodiscard]] Result<std::vector<remote::Settings>> remotes_of(const std::vector<std::string>& urls);

/// The copies to or from one remote. An object is a file: an entry, an image or an artifact.
struct RemoteTransfer {
    std::string label;
    std::uint64_t moved = 0; ///< objects that were copied
    std::uint64_t there = 0; ///< objects that the other side had already
    std::uint64_t bytes = 0; ///< that went over the connection
    double seconds = 0;
    struct Failure {
        std::uint64_t count = 0;
        std::string first; ///< the message of the first one
    };
    std::map<std::string, Failure> failed{}; ///< by the word of the error code
    std::uint64_t unsigned_entries = 0;      ///< that were sent, and that a reader uses only with allow-unsigned
    bool is_left_out = false;                ///< read-only: nothing was tried

    void add_failure(std::string_view word, std::string message, std::uint64_t count = 1);
    void add_failure(const Error& error) { add_failure(to_string(error.code), error.message); }
};

/// Prints the table or the document. Returns the exit status. `column` and `key`: the words for RemoteTransfer::moved
/// in them.
[[nodiscard]] int report_transfers(const Context& context, const std::vector<RemoteTransfer>& transfers,
                                   const std::string& column, const std::string& key);

} // namespace warmgraph::tool
