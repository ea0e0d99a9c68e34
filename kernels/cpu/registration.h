// How a kernel file announces its kernels: a static Registration at namespace scope, nothing else.
// The library that holds the file hands the collected list to the core when it is loaded (registration.cpp).
#pragma once
#include "kernel.h"

namespace magmadnn::cpu {

std::vector<KernelEntry>& entries();

struct Registration {
    Registration(const char* op, const char* algorithm, Preference preference,
                 bool (*supports)(const Signature&), std::unique_ptr<Kernel> (*create)(const Signature&)) {
        entries().push_back({op, algorithm, preference, supports, create});
    }
};

/// True where every input and output of the signature is of dtype T.
template <class T>
bool all_of_type(const Signature& s) {
    for (const auto* types : {&s.inputs, &s.outputs})
        for (const TensorType& type : *types)
            if (type.dtype != DTypeOf<T>::value) return false;
    return true;
}

}  // namespace magmadnn::cpu
