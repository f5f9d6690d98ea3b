// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_GBENCH_DEVICE_HPP
#define PLUMBLINE_GBENCH_DEVICE_HPP

#include "plumbline/environment/collect.hpp"
#include "plumbline/gbench/session.hpp"
#include "plumbline/run/driver.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace gbench {

/// What a session is told about an opened device, from the entry of its backend: model and limits of the device,
/// readings through the backend's libraries, and who else works on it. `number` is that of the device `on`, which must
/// outlive the session.
///
///     cuda::backend gpu;
///     gbench::session session(gpu, gbench::about_device(entry::cuda(), gpu));
template <measure::backend B>
[[nodiscard]] about about_device(const run::backend_entry<B>& entry, B& on, int number = 0) {
    about made;
    made.machine = entry.machine ? entry.machine(number) : environment::this_machine(entry.name);
    made.device = entry.identify(*made.machine, number);
    if (entry.describe) entry.describe(on, made.device);
    if (entry.read) {
        made.read = [&on, read = entry.read, machine = *made.machine](result::fingerprint& into) {
            read(on, machine, into);
        };
    }
    if (entry.hooks) made.how.call = entry.hooks(on, *made.machine);
    return made;
}

} // namespace gbench

PLUMBLINE_NAMESPACE_END

#endif
