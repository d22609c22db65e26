// node server.mjs
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const page = await readFile(new URL('www/index.html', import.meta.url));
createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/html', 'content-length': page.length });
  response.end(page);
}).listen(Number(process.env.PORT), '127.0.0.1');
