// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_HPP
#define PLUMBLINE_HPP

// What a kernel of one's own is written and measured with: the engine and what it works on. Cheap to compile: the
// backends, shipped families, readers of the machine, comparator (compare/compare.hpp), files and programs are
// included by name. Written by tests/headers/check.py --write-umbrella.

#include "plumbline/version.hpp"

#include "plumbline/core/error.hpp"
#include "plumbline/core/exit_code.hpp"
#include "plumbline/core/file_descriptor.hpp"
#include "plumbline/core/hash.hpp"
#include "plumbline/core/nearest.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/core/unit.hpp"
#include "plumbline/core/utc.hpp"
#include "plumbline/core/utf8.hpp"
#include "plumbline/core/where.hpp"

#include "plumbline/stats/bimodality.hpp"
#include "plumbline/stats/descriptive.hpp"
#include "plumbline/stats/distributions.hpp"
#include "plumbline/stats/hierarchy.hpp"
#include "plumbline/stats/multiplicity.hpp"
#include "plumbline/stats/paired.hpp"
#include "plumbline/stats/ranks.hpp"
#include "plumbline/stats/shift_test.hpp"

#include "plumbline/workload/description.hpp"
#include "plumbline/workload/digest.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/id.hpp"
#include "plumbline/workload/modes.hpp"
#include "plumbline/workload/number.hpp"
#include "plumbline/workload/random.hpp"
#include "plumbline/workload/suite.hpp"
#include "plumbline/workload/verify.hpp"

#include "plumbline/result/alarm.hpp"
#include "plumbline/result/append.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/result/fingerprint.hpp"
#include "plumbline/result/limit.hpp"
#include "plumbline/result/reading.hpp"
#include "plumbline/result/result.hpp"

#include "plumbline/measure/benchmark.hpp"
#include "plumbline/measure/burst.hpp"
#include "plumbline/measure/ceilings.hpp"
#include "plumbline/measure/concepts.hpp"
#include "plumbline/measure/engine.hpp"
#include "plumbline/measure/host_wake.hpp"
#include "plumbline/measure/plan.hpp"
#include "plumbline/measure/plan_search.hpp"
#include "plumbline/measure/predict.hpp"
#include "plumbline/measure/regret.hpp"
#include "plumbline/measure/sample.hpp"
#include "plumbline/measure/self_test.hpp"
#include "plumbline/measure/settings.hpp"
#include "plumbline/measure/stop_rule.hpp"
#include "plumbline/measure/tally.hpp"

#endif
