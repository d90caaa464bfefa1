import {
  defaultEncoder,
  type Encoder,
  FinchError,
  HttpEncoder,
  OnnxEncoder,
} from '../lib/index.js';
import type { OptionTypes } from './arguments.js';

/** Options of every command that encodes. */
export const encoderOptions = {
  model: { type: 'string' },
  'embeddings-url': { type: 'string' },
  'embeddings-model': { type: 'string' },
} as const satisfies OptionTypes;

export const encoderUsage = `  --model FOLDER             an ONNX model folder; default: the embedded toolfinch-retriever
  --embeddings-url URL       an OpenAI-compatible endpoint instead (…/v1); its key: TOOLFINCH_API_KEY
  --embeddings-model NAME    the endpoint's model`;

export async function openEncoder(values: {
  model?: string | undefined;
  'embeddings-url'?: string | undefined;
  'embeddings-model'?: string | undefined;
}): Promise<Encoder> {
  const url = values['embeddings-url'];
  const model = values['embeddings-model'];
  if (url === undefined) {
    return values.model === undefined ? defaultEncoder() : OnnxEncoder.open(values.model);
  }
  if (model === undefined) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      '--embeddings-url needs --embeddings-model, the name of the model at that endpoint.',
    );
  }
  const apiKey = process.env.TOOLFINCH_API_KEY;
  return HttpEncoder.open({
    baseUrl: url,
    model,
    ...(apiKey === undefined ? {} : { apiKey }),
  });
}
