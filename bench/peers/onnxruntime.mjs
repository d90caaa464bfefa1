// onnxruntime-node running Gemm + TopK with the matrix as a constant.
import path from 'node:path';
import { k } from '../catalogue.mjs';
import { writeSearchGraph } from './onnx-graph.mjs';

export const onnxruntime = {
  name: 'onnxruntime-node',
  scales: false,
  // Its threads spin for a moment after a run, waiting for the next.
  settleMs: 3,
  needsFile: true,
  async prepare({ queries, count, dimension, threads, matrixFile }) {
    const { InferenceSession, Tensor } = await import('onnxruntime-node');
    const model = writeSearchGraph(path.dirname(matrixFile()), matrixFile(), {
      count,
      dimension,
      k,
    });
    const session = await InferenceSession.create(model, {
      executionProviders: ['cpu'],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
    });
    const feeds = new Map();
    const feed = (asked) => {
      if (!feeds.has(asked)) {
        const values = queries.slice(0, asked * dimension);
        feeds.set(asked, { queries: new Tensor('float32', values, [asked, dimension]) });
      }
      return feeds.get(asked);
    };
    return {
      ask: (asked) => session.run(feed(asked)),
      found: ({ rows, scores }) => ({ rows: rows.data, scores: scores.data }),
      close: () => session.release(),
    };
  },
};
