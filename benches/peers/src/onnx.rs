//! The layer as an ONNX model.
//!
//! ONNX is a protobuf format (`onnx.proto`, version 1 of each message used here); the few messages that the layer needs
//! are written field by field.

use crate::Layer;

/// A protobuf message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, field: u8, value: usize) -> Self {
        self.0.push(field << 3);
        self.push_varint(value);
        self
    }

    fn bytes(mut self, field: u8, bytes: &[u8]) -> Self {
        self.0.push(field << 3 | 2);
        self.push_varint(bytes.len());
        self.0.extend(bytes);
        self
    }

    fn message(self, field: u8, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// Seven bits a byte, the lowest first; the eighth says that more follow.
    fn push_varint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

const FLOAT: usize = 1;

/// A model with inputs `x` and `v` and output `y`.
pub(crate) fn model<const L: usize, const W: usize>(layer: &Layer<L, W>) -> Vec<u8> {
    let Layer { w1, b1, w2, b2, .. } = layer;
    let graph = Message::default()
        .message(1, &node("MatMul", &["x", "w1"], "xw1"))
        .message(1, &node("Add", &["xw1", "b1"], "preactivation"))
        .message(1, &node("Relu", &["preactivation"], "hidden"))
        .message(1, &node("MatMul", &["hidden", "w2"], "hw2"))
        .message(1, &node("Add", &["hw2", "b2"], "scores"))
        .message(1, &node("Softmax", &["scores"], "weights")) // over the last axis, by default
        .message(1, &node("MatMul", &["weights", "v"], "y"))
        .bytes(2, b"dense_synthesizer")
        .message(5, &initializer("w1", &[W, W], w1.as_flattened()))
        .message(5, &initializer("b1", &[W], b1))
        .message(5, &initializer("w2", &[W, L], w2.as_flattened()))
        .message(5, &initializer("b2", &[L], b2))
        .message(11, &value("x", &[L, W]))
        .message(11, &value("v", &[L, W]))
        .message(12, &value("y", &[L, W]));
    let operators = Message::default().bytes(1, b"").varint(2, 17);
    Message::default().varint(1, 8).message(7, &graph).message(8, &operators).0
}

fn node(operator: &str, inputs: &[&str], output: &str) -> Message {
    let node = inputs.iter().fold(Message::default(), |node, input| node.bytes(1, input.as_bytes()));
    node.bytes(2, output.as_bytes()).bytes(4, operator.as_bytes())
}

fn initializer(name: &str, shape: &[usize], data: &[f32]) -> Message {
    let tensor = shape.iter().fold(Message::default(), |tensor, size| tensor.varint(1, *size));
    let data: Vec<u8> = data.iter().flat_map(|number| number.to_le_bytes()).collect();
    tensor.varint(2, FLOAT).bytes(8, name.as_bytes()).bytes(9, &data)
}

fn value(name: &str, shape: &[usize]) -> Message {
    let shape =
        shape.iter().fold(Message::default(), |shape, size| shape.message(1, &Message::default().varint(1, *size)));
    let tensor = Message::default().varint(1, FLOAT).message(2, &shape);
    Message::default().bytes(1, name.as_bytes()).message(2, &Message::default().message(1, &tensor))
}
