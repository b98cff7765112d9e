// What a C++ reference of a package sees: kforge puts this header in front of it.
//
//     extern "C" void rms_norm(const kforge::Call& call) {
//         const double* x = call.floats("x");
//         const double eps = call.param("eps");
//         const int64_t rows = call.dim("rows"), cols = call.dim("cols");
//         double* y = call.out_floats("y");
//         ...
//     }
//
// Tensors lie row-major in the shape the operator sees: floats of every type as double, integers and truth values as int64_t. A tensor that is read and
// written is read by `floats` or `ints` and written by `out_floats` or `out_ints`, at another place. `scale("y")` is where the operator on absolute values
// goes, for tolerances in `scaled`; a reference that never asks for it gives none. What is written to begins without a value, not with zeros: an element that
// is left so, or added to before it is set, ends the reference with a message. So does a name that is not there.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace kforge {

class Call {
  public:
    int64_t dim(const std::string& name) const { return std::strtoll(text(dims_, "dim", name).c_str(), nullptr, 10); }
    double param(const std::string& name) const { return std::strtod(text(params_, "param", name).c_str(), nullptr); }
    const double* floats(const std::string& name) const { return as<double>(tensor(inputs_, "float input", name, 'f')); }
    const int64_t* ints(const std::string& name) const { return as<int64_t>(tensor(inputs_, "integer input", name, 'i')); }
    double* out_floats(const std::string& name) const { return as<double>(tensor(outputs_, "float output", name, 'f')); }
    int64_t* out_ints(const std::string& name) const { return as<int64_t>(tensor(outputs_, "integer output", name, 'i')); }
    double* scale(const std::string& name) const {
        const Tensor& of = tensor(outputs_, "float output", name, 'f');
        Tensor& scale = scales_[name];
        scale.file = of.file + ".scale";
        scale.kind = 'f';
        scale.words.resize(of.words.size(), UNWRITTEN);
        return as<double>(scale);
    }

    explicit Call(const char* path) {
        std::ifstream lines(path);
        std::string what, name, value;
        while (lines >> what >> name >> value) {
            if (what == "dim") dims_[name] = value;
            if (what == "param") params_[name] = value;
            if (what != "in" && what != "out") continue;
            Tensor& made = (what == "in" ? inputs_ : outputs_)[name];
            size_t count = 0;
            lines >> made.kind >> count;
            made.file = value;
            made.words.resize(count, UNWRITTEN);
            if (what == "in") {
                std::ifstream file(value, std::ios::binary);
                file.read(reinterpret_cast<char*>(made.words.data()), static_cast<std::streamsize>(count * 8));
            }
        }
    }

    void finish() const {
        for (const Tensors* all : {&outputs_, static_cast<const Tensors*>(&scales_)})
            for (const auto& [name, made] : *all) {
                check(all == &outputs_ ? name : "scale of " + name, made);
                std::ofstream file(made.file, std::ios::binary);
                file.write(reinterpret_cast<const char*>(made.words.data()), static_cast<std::streamsize>(made.words.size() * 8));
                if (!file.good()) stop("cannot write", name);
            }
    }

  private:
    // What no reference computes: as a double a signalling NaN, which arithmetic keeps but for the bit that makes it quiet.
    static constexpr uint64_t UNWRITTEN = 0x7ff46b66'6f726765, QUIET = uint64_t{1} << 51;

    struct Tensor {
        std::string file;
        char kind = 'f';
        mutable std::vector<uint64_t> words;
    };
    using Texts = std::map<std::string, std::string>;
    using Tensors = std::map<std::string, Tensor>;

    [[noreturn]] static void stop(const char* what, const std::string& name) {
        std::fprintf(stderr, "%s `%s`\n", what, name.c_str());
        std::exit(1);
    }
    // Ends where an element has no value, or one that came of adding to none.
    static void check(const std::string& name, const Tensor& made) {
        size_t unset = 0, first = 0;
        bool added = false;
        for (size_t i = made.words.size(); i-- > 0;) {
            const uint64_t word = made.words[i];
            const bool onto = made.kind == 'f' && word == (UNWRITTEN | QUIET);
            if (word != UNWRITTEN && !onto) continue;
            unset++, first = i, added = onto;
        }
        if (unset == 0) return;
        std::fprintf(stderr, "`%s` is %s: %zu of %zu elements, the first at %zu\n", name.c_str(),
                     added ? "added to before it is set (it does not begin with zeros)" : "not written", unset, made.words.size(), first);
        std::exit(1);
    }
    static const std::string& text(const Texts& texts, const char* what, const std::string& name) {
        const auto found = texts.find(name);
        if (found == texts.end()) stop((std::string("there is no ") + what).c_str(), name);
        return found->second;
    }
    static const Tensor& tensor(const Tensors& tensors, const char* what, const std::string& name, char kind) {
        const auto found = tensors.find(name);
        if (found == tensors.end() || found->second.kind != kind) stop((std::string("there is no ") + what).c_str(), name);
        return found->second;
    }
    template <class T>
    static T* as(const Tensor& made) {
        return reinterpret_cast<T*>(made.words.data());
    }

    Texts dims_, params_;
    Tensors inputs_, outputs_;
    mutable Tensors scales_;
};

}  // namespace kforge
