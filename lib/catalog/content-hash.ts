import { createHash } from 'node:crypto';
import { aString } from '../check.js';
import { indexTextRecipe } from './index-text.js';
import { checkTool, type Tool } from './tool.js';

/**
 * A key that changes exactly when a tool's embedding may: SHA-256, 64 hexadecimal digits, of the model, the recipe and
 * the index text. A tool that carries the host's own `version` is judged by that (with its id) instead of by its text,
 * so a server that puts session data into its descriptions is not encoded anew each time.
 *
 * @param text what {@link indexText} gave for the tool
 * @param model identity of the encoder: name, revision, dimension
 * @param recipe what {@link indexTextRecipe} gave for the options; default: the default recipe's
 */
export function contentHash(
  tool: Tool,
  text: string,
  model = '',
  recipe: string = indexTextRecipe(),
): string {
  checkTool(tool, 'tool');
  aString(text, 'text');
  aString(model, 'model');
  aString(recipe, 'recipe');
  const judged = tool.version === undefined ? ['text', text] : ['version', tool.id, tool.version];
  // JSON keeps the parts apart whatever they contain.
  return createHash('sha256')
    .update(JSON.stringify([model, recipe, ...judged]))
    .digest('hex');
}
