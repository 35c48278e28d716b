// `warmgraph bundle`: what its actions share.
#pragma once

#include <memory>
#include <string>

#include "commands.hpp"
#include "verbs/this_machine.hpp"
#include "warmgraph/bundle/artifact_fit.hpp"
#include "warmgraph/bundle/bundle.hpp"
#include "warmgraph/bundle/transfer.hpp"

namespace warmgraph::tool {

using BundleAction = Result<int> (*)(const Context&, const BundleOptions&);

[[nodiscard]] Result<int> bundle_create(const Context& context, const BundleOptions& options);
[[nodiscard]] Result<int> bundle_load(const Context& context, const BundleOptions& options);
[[nodiscard]] Result<int> bundle_ls(const Context& context, const BundleOptions& options);
[[nodiscard]] Result<int> bundle_show(const Context& context, const BundleOptions& options);
[[nodiscard]] Result<int> bundle_check(const Context& context, const BundleOptions& options);
[[nodiscard]] Result<int> bundle_merge(const Context& context, const BundleOptions& options);
[[nodiscard]] Result<int> bundle_diff(const Context& context, const BundleOptions& options);
[[nodiscard]] Result<int> bundle_strip(const Context& context, const BundleOptions& options);

/// A bundle whose contents are to be used, here or by those who trust a new one.
[[nodiscard]] Result<std::unique_ptr<bundle::Bundle>> open_to_use(const std::string& file,
                                                                  const cachefmt::Trust& trust);
/// To be looked at, whoever may have written it.
[[nodiscard]] Result<std::unique_ptr<bundle::Bundle>> open_to_look(const std::string& file,
                                                                   const BundleOptions& options);

/// "signed with 'release', which is not accepted here"
[[nodiscard]] std::string signed_text(const bundle::Bundle& opened);
/// What header and index say of the file.
[[nodiscard]] Json bundle_json(const std::string& file, const bundle::Bundle& opened);

/// --func, --model and --kind: which entries and other objects are meant.
class BundleSelection {
public:
    [[nodiscard]] static Result<BundleSelection> of(const BundleOptions& options);
    [[nodiscard]] bool chooses(const cachefmt::FunctionKey& key) const;
    /// Compiled programs and tuned configurations belong to no model: --func leaves them out, unless --kind names them.
    [[nodiscard]] bool chooses(store::ArtifactKind kind) const;
    /// Does --kind name it?
    [[nodiscard]] bool names(store::ArtifactKind kind) const noexcept { return m_kinds.contains(kind); }
    /// Of the model and function, whatever the rank.
    [[nodiscard]] bool chooses(const profile::Profile& profile) const;
    /// As chooses(), of a member that stands alone: "not chosen", why its profile cannot be read, or empty.
    [[nodiscard]] std::string why_not(const bundle::Bundle& opened, const bundle::Member& member) const;
    [[nodiscard]] bool is_all() const noexcept { return !m_request.chooses_functions(); }
    /// not_found: the names fit none of these.
    [[nodiscard]] Result<void> check_fits(const std::vector<cachefmt::FunctionKey>& functions) const;

private:
    store::ClearRequest m_request;
    store::KindSet m_kinds; ///< empty: all
};

/// "model/function 3f9a1c07" of an entry, the name of any other member.
[[nodiscard]] std::string member_text(const bundle::Member& member);

/// Which device of this machine a backend's objects are judged for. `machine` must outlive it.
[[nodiscard]] inline bundle::DeviceOf device_of(ThisMachine& machine)
{
    return [&machine](const std::string& backend) { return machine.first_device(backend); };
}

/// "2 entries"; "1 PyTorch artifact".
[[nodiscard]] std::string counted_kind(store::ArtifactKind kind, std::uint64_t count);

/// A line on the terminal's standard error that is written over; nothing elsewhere.
[[nodiscard]] bundle::Progress progress_line(const Context& context, std::string doing);

/// What was moved, what was there, what was skipped; k_found_wrong where anything was skipped that was wanted.
void report_transfer(const Context& context, std::string_view done, const std::string& file,
                     const bundle::Transfer& transfer);

} // namespace warmgraph::tool
