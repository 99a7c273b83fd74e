// `ort` is the npm package onnxruntime-node or onnxruntime-web.
export async function predict(ort, session, orders) {
  const countMicroseconds = (text) =>
    text == null ? -(2n ** 63n) : BigInt(Date.parse(text)) * 1000n;
  const ordered = BigInt64Array.from(orders, (order) => countMicroseconds(order.ordered));
  const weight = Float64Array.from(orders, (order) => order.weight ?? NaN);
  const country = orders.map((order) => order.country ?? "");
  const shape = [orders.length, 1];
  const { label, probabilities } = await session.run({
    ordered: new ort.Tensor("int64", ordered, shape),
    weight: new ort.Tensor("float64", weight, shape),
    country: new ort.Tensor("string", country, shape),
  });
  return orders.map((_, i) => `${label.data[i]} ${probabilities.data[2 * i]}`);
}

export const orders = [
  { ordered: "2026-09-14T09:30:00Z", weight: 12.5, country: "NO" },
  { ordered: null, weight: null, country: null },
];
