import { expect, test } from 'vitest';
import { commandWords } from '../../lib/scenario/load/shell-words.ts';

test.each([
  ['node server.js', ['node', 'server.js']],
  [
    '  caddy file-server\t--listen :{port} --root "my www"  ',
    ['caddy', 'file-server', '--listen', ':8080', '--root', 'my www'],
  ],
  ['node $PORT ${PORT} --a=$PORT,{port} $PORT', ['node', '8080', '8080', '--a=8080,8080', '8080']],
  [`sh -c 'a | b > c && d; $HOME \`e\` #' ''`, ['sh', '-c', 'a | b > c && d; $HOME `e` #', '']],
  ['node -e "a(\\"b\\", 5 > 3)" it\\\'s a#b', ['node', '-e', 'a("b", 5 > 3)', "it's", 'a#b']],
  ['node a \\\n  b', ['node', 'a', 'b']],
])('%s', (line, args) => {
  expect(commandWords(line, 8080)).toEqual(args);
});

test.each([
  ['node a | tee b', "| needs a shell: write sh -c '…'"],
  ['cd x && node a', '&& needs a shell'],
  ['node a # the old one', '# needs a shell'],
  ['node a\nnode b', 'a second line needs a shell'],
  ['node "${HOME}/a" $PORTS', '${ needs a shell'],
  ['node $PORTS', '$PORTS needs a shell'],
  ['node `which a`', '` needs a shell'],
  ['node $(which a)', '$( needs a shell'],
  ['~/bin/a', '~ needs a shell'],
  ['A=1 B="2" node a', 'A=… before the program needs a shell: write env A=1 B="2" node a'],
  ["node 'a", "a ' is open to the end of the line: close it"],
])('%s is refused', (line, why) => {
  expect(() => commandWords(line, 8080)).toThrow(`the command: ${why}`);
});

test.each(['  ', "'' a"])('"%s" names no program', (line) => {
  expect(() => commandWords(line, 8080)).toThrow(
    "the command names no program: write its words, such as 'node server.js'",
  );
});
