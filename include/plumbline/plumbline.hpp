// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_HPP
#define PLUMBLINE_HPP

// Everything but the backends, the JSON files, the reports and the programs: the comparator, the engine and
// what they work on. No CUDA, no nlohmann. Written by tests/headers/check.py --write-umbrella.

#include "plumbline/version.hpp"

#include "plumbline/core/error.hpp"
#include "plumbline/core/exit_code.hpp"
#include "plumbline/core/hash.hpp"
#include "plumbline/core/nearest.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/core/where.hpp"

#include "plumbline/stats/bimodality.hpp"
#include "plumbline/stats/descriptive.hpp"
#include "plumbline/stats/distributions.hpp"
#include "plumbline/stats/hierarchy.hpp"
#include "plumbline/stats/multiplicity.hpp"
#include "plumbline/stats/paired.hpp"
#include "plumbline/stats/ranks.hpp"
#include "plumbline/stats/shift_test.hpp"

#include "plumbline/workload/dataloader.hpp"
#include "plumbline/workload/description.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/gemm.hpp"
#include "plumbline/workload/id.hpp"
#include "plumbline/workload/modes.hpp"
#include "plumbline/workload/probe.hpp"
#include "plumbline/workload/suite.hpp"

#include "plumbline/result/baseline.hpp"
#include "plumbline/result/fingerprint.hpp"
#include "plumbline/result/reading.hpp"
#include "plumbline/result/result.hpp"

#include "plumbline/measure/benchmark.hpp"
#include "plumbline/measure/concepts.hpp"
#include "plumbline/measure/engine.hpp"
#include "plumbline/measure/sample.hpp"
#include "plumbline/measure/settings.hpp"

#include "plumbline/environment/check.hpp"
#include "plumbline/environment/collect.hpp"
#include "plumbline/environment/diff.hpp"
#include "plumbline/environment/epoch.hpp"
#include "plumbline/environment/host.hpp"
#include "plumbline/environment/presence.hpp"

#include "plumbline/compare/compare.hpp"
#include "plumbline/compare/comparison.hpp"
#include "plumbline/compare/merge.hpp"
#include "plumbline/compare/policy.hpp"
#include "plumbline/compare/siblings.hpp"

#endif
