// Lets Node run the checkout's TypeScript: node --import ./bin/tsx.mjs FILE. tsx by itself keeps compiled files in a folder of the
// temporary files, where another user may have put theirs, and takes a tsconfig.json of the folders above the caller's, which may lead
// imports elsewhere.
import { fileURLToPath } from 'node:url';

// tsx reads this when it is loaded.
process.env.TSX_DISABLE_CACHE = '1';
// Otherwise programs such as prettier would have Node keep compiled code there too.
process.env.NODE_DISABLE_COMPILE_CACHE = '1';
const { register } = await import('tsx/esm/api');
register({ tsconfig: fileURLToPath(new URL('../tsconfig.json', import.meta.url)) });
