// The common parts of the actions of `warmgraph bundle`.
#pragma once

#include <memory>
#include <string>

#include "commands.hpp"
#include "verbs/this_machine.hpp"
#include "warmgraph/bundle/artifact_compatibility.hpp"
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

/// Opens a bundle whose contents will be used, here or in a new bundle.
[[nodiscard]] Result<std::unique_ptr<bundle::Bundle>> open_to_use(const std::string& file,
                                                                  const cachefmt::Trust& trust);
/// Opens a bundle only to display it; any user may have written it.
[[nodiscard]] Result<std::unique_ptr<bundle::Bundle>> open_to_inspect(const std::string& file,
                                                                      const BundleOptions& options);

/// Returns e.g. "signed with 'release', which is not accepted here".
[[nodiscard]] std::string signed_text(const bundle::Bundle& opened);
[[nodiscard]] Json bundle_json(const std::string& file, const bundle::Bundle& opened);

/// The entries and artifacts that --func, --model and --kind choose.
class BundleSelection {
public:
    [[nodiscard]] static Result<BundleSelection> of(const BundleOptions& options);
    [[nodiscard]] bool chooses(const cachefmt::FunctionKey& key) const;
    /// Whether --kind includes the kind. Without --kind: compiled programs and tuned configurations have no model, so
    /// --func leaves them out.
    [[nodiscard]] bool chooses(store::ArtifactKind kind) const;
    /// Whether --kind names this kind.
    [[nodiscard]] bool names(store::ArtifactKind kind) const noexcept { return m_kinds.contains(kind); }
    /// Compares model and function; a profile has no rank.
    [[nodiscard]] bool chooses(const profile::Profile& profile) const;
    /// The reason why an artifact is not chosen: "not chosen", or why its profile cannot be read; empty if it is
    /// chosen.
    [[nodiscard]] std::string why_not(const bundle::Bundle& opened, const bundle::Member& member) const;
    [[nodiscard]] bool is_all() const noexcept { return !m_request.chooses_functions(); }
    /// not_found: no function fits the names.
    [[nodiscard]] Result<void> check_fits(const std::vector<cachefmt::FunctionKey>& functions) const;

private:
    store::ClearRequest m_request;
    store::KindSet m_kinds; ///< empty: all
};

/// Returns "model/function 3f9a1c07" for an entry, the member's name for other kinds.
[[nodiscard]] std::string member_text(const bundle::Member& member);

/// The device of this machine for which a backend's objects are judged. `machine` must outlive the result.
[[nodiscard]] inline bundle::DeviceOf device_of(ThisMachine& machine)
{
    return [&machine](const std::string& backend) { return machine.first_device(backend); };
}

/// Returns e.g. "2 entries" or "1 PyTorch artifact".
[[nodiscard]] std::string counted_kind(store::ArtifactKind kind, std::uint64_t count);

/// Shows progress on a line of standard error that is overwritten; shows nothing when standard error is not a terminal.
[[nodiscard]] bundle::Progress progress_line(const Context& context, std::string doing);

/// Reports the moved, existing and skipped objects.
void report_transfer(const Context& context, std::string_view done, const std::string& file,
                     const bundle::Transfer& transfer);

} // namespace warmgraph::tool
