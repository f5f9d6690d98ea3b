// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_PREDICT_COMMAND_HPP
#define PLUMBLINE_RUN_PREDICT_COMMAND_HPP

#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "plumbline/compare/prediction.hpp"
#include "plumbline/json/prediction.hpp"
#include "plumbline/json/store.hpp"
#include "plumbline/report/options.hpp"
#include "plumbline/report/prediction.hpp"
#include "plumbline/report/terminal.hpp"
#include "plumbline/run/backend_choice.hpp"
#include "plumbline/run/context.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// `bench --predict=FILE`: what the libraries of this process would run for the baseline's convolutions on the
/// baseline's device. Opens no device and needs none. The backend is the baseline's.
[[nodiscard]] inline exit_code predict_command(const program_settings& settings, const std::vector<driver>& drivers,
                                               const options& how) {
    const std::string file = how.file.string();
    const result::baseline base = json::load(how.file);
    const driver* on = detail::find_driver(drivers, base.device.backend);
    if (on == nullptr || !on->predict) {
        throw environment_error(
            "backend", "--predict: " + file + " was measured on the backend '" + base.device.backend +
                           "', whose choices this program cannot foretell (it has: " + detail::names_of(drivers) +
                           "); convolutions of 'cuda' take a bench that was built with cuDNN");
    }
    const compare::prediction found = compare::foretell(
        base, [&](const result::result& each) { return on->predicts(each.what); },
        [&](const std::string& id) { return on->predict(base.device, id); });
    std::ostringstream text;
    if (how.format == output_format::json) {
        text << json::dump(found, file);
    } else {
        report::options look;
        report::suit(look, how.output.empty() ? STDOUT_FILENO : -1);
        look.base = report::describe(base, file);
        report::write_prediction(text, found, look);
    }
    deliver(how, settings.output, text.str());
    return found.exit;
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
