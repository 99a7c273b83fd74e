import ort from "onnxruntime-node";
import { orders, predict } from "./predict.mjs";

const session = await ort.InferenceSession.create("late.onnx");
console.log((await predict(ort, session, orders)).join("\n"));
