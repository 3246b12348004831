"""Pack vowels_test.safetensors, as train_vowels.py writes it, into vowels_frames.safetensors: the frames in use alone.

    python pack_vowels.py vowels_test.safetensors vowels_frames.safetensors

In:  x [370, 29, 12] (frames past an utterance's length are zero), length [370] u8, label [370] u8, logits [370, 9].
Out: frames [5687, 12], one utterance after the other; length, label and logits as they were. Half the size, the same
numbers. Needs nothing but Python.
"""
import json
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + size :][slice(*t["data_offsets"])]) for name, t in header.items()}


def write(path, tensors):
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def main():
    tensors = read(sys.argv[1])
    dtype, (count, most, width), x = tensors["x"]
    row = 4 * width
    lengths = tensors["length"][2]
    frames = b"".join(x[i * most * row :][: n * row] for i, n in enumerate(lengths))
    packed = {"frames": (dtype, [sum(lengths), width], frames)}
    packed |= {name: tensors[name] for name in ("logits", "label", "length")}
    write(sys.argv[2], packed)
    print(count, "utterances,", sum(lengths), "frames")


if __name__ == "__main__":
    main()
