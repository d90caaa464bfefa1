// The ONNX model of an exact search: Gemm(queries, matrix transposed), then TopK. Field numbers are those of onnx.proto.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { message } from './protobuf.mjs';

const float = 1;
const int64 = 7;

/** Writes the model and, beside it, the matrix; returns the model's path. */
export function writeSearchGraph(folder, matrixFile, { count, dimension, k }) {
  const location = path.relative(folder, matrixFile);
  const bytes = count * dimension * 4;
  const matrix = [
    [1, count],
    [1, dimension],
    [2, float],
    [8, 'matrix'],
    [
      13,
      [
        [1, 'location'],
        [2, location],
      ],
    ],
    [
      13,
      [
        [1, 'offset'],
        [2, '0'],
      ],
    ],
    [
      13,
      [
        [1, 'length'],
        [2, String(bytes)],
      ],
    ],
    [14, 1],
  ];
  const depth = Buffer.alloc(8);
  depth.writeBigInt64LE(BigInt(k));
  const graph = [
    [1, node('Gemm', ['queries', 'matrix'], ['products'], [integer('transB', 1)])],
    [
      1,
      node(
        'TopK',
        ['products', 'k'],
        ['scores', 'rows'],
        [integer('largest', 1), integer('sorted', 1)],
      ),
    ],
    [2, 'search'],
    [5, matrix],
    [
      5,
      [
        [1, 1],
        [2, int64],
        [8, 'k'],
        [9, depth],
      ],
    ],
    [11, tensor('queries', float, ['batch', dimension])],
    [12, tensor('scores', float, ['batch', k])],
    [12, tensor('rows', int64, ['batch', k])],
  ];
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'search.onnx');
  writeFileSync(
    file,
    message([
      [1, 8],
      [7, graph],
      [
        8,
        [
          [1, ''],
          [2, 17],
        ],
      ],
    ]),
  );
  return file;
}

function node(type, inputs, outputs, attributes) {
  return [
    ...inputs.map((name) => [1, name]),
    ...outputs.map((name) => [2, name]),
    [4, type],
    ...attributes.map((attribute) => [5, attribute]),
  ];
}

function integer(name, value) {
  return [
    [1, name],
    [3, value],
    [20, 2],
  ];
}

function tensor(name, type, shape) {
  const dimensions = shape.map((size) => [1, [typeof size === 'number' ? [1, size] : [2, size]]]);
  return [
    [1, name],
    [
      2,
      [
        [
          1,
          [
            [1, type],
            [2, dimensions],
          ],
        ],
      ],
    ],
  ];
}
