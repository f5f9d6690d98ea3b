#include <cmath>
#include <vector>

#include <plumbline/cpu/backend.hpp>
#include <plumbline/gbench/main.hpp>

using plumbline::cpu::backend;

struct shape { std::size_t rows, cols; };
plumbline::workload::description describe(const shape& s) {
    return {"user/gelu/" + std::to_string(s.rows) + "x" + std::to_string(s.cols), "user",
            {{"rows", std::int64_t(s.rows)}, {"cols", std::int64_t(s.cols)}}};
}
struct gelu {
    using params = shape;
    gelu(backend&, const shape& s, std::size_t) : x(s.rows * s.cols, 0.5f), y(x.size()) {}
    void run(backend&, std::size_t) {
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = 0.5f * x[i] * (1 + std::erf(x[i] * 0.70710678f));
    }
    std::vector<float> x, y;
};
int main(int argc, char** argv) {
    backend cpu;
    plumbline::gbench::session session(cpu);
    for (std::size_t rows : {64, 256}) session.add<gelu>({rows, 128});
    return plumbline::gbench::main(argc, argv, session);
}
