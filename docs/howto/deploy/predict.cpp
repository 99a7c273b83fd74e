// Predict two orders with onnxruntime; the second one lacks all values.
#include <onnxruntime_cxx_api.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <vector>

int main() {
    // 2026-09-14T09:30:00Z in microseconds since 1970, and a missing date.
    std::vector<int64_t> ordered{1789378200000000, std::numeric_limits<int64_t>::min()};
    std::vector<double> weight{12.5, NAN};
    const char* country[] = {"NO", ""};

    Ort::Env env;
    Ort::Session session(env, "late.onnx", Ort::SessionOptions());
    auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    Ort::AllocatorWithDefaultOptions allocator;
    const std::array<int64_t, 2> shape{2, 1};
    Ort::Value inputs[] = {
        Ort::Value::CreateTensor<int64_t>(memory, ordered.data(), 2, shape.data(), 2),
        Ort::Value::CreateTensor<double>(memory, weight.data(), 2, shape.data(), 2),
        Ort::Value::CreateTensor(allocator, shape.data(), 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)};
    inputs[2].FillStringTensor(country, 2);

    const char* names[] = {"ordered", "weight", "country"};
    const char* outputs[] = {"label", "probabilities"};
    auto results = session.Run(Ort::RunOptions(), names, inputs, 3, outputs, 2);
    const double* probabilities = results[1].GetTensorData<double>();
    for (int i = 0; i < 2; ++i)
        std::cout << results[0].GetStringTensorElement(i) << ' ' << probabilities[2 * i] << '\n';
}
