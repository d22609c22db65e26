import { expect, it } from 'vitest';
import { composeConfig, parseConfig, printConfig } from '../../lib/servers/nginx-config.ts';

const compose = (...texts: string[]) =>
  printConfig(
    composeConfig(
      texts.map((text, index) => {
        const file = index === 0 ? 'base' : `knob${index}`;
        return parseConfig({ file, text, origin: file });
      }),
    ),
  );
const printed = (text: string) => compose(text).replaceAll('  # base', '');

it('replaces directives of the same name, merges blocks, adds the rest', () => {
  expect(
    compose(
      'add a; add b; location / { x 1; } location /b { x 1; }',
      'location /b { x 2; } map $x $y { default 0; } add c; add d; e 1;',
    ),
  ).toBe(
    'add c;  # knob1\nadd d;  # knob1\ne 1;  # knob1\nlocation / {  # base\n    x 1;  # base\n}\nlocation /b {  # base\n    x 2;  # knob1\n}\nmap $x $y {  # knob1\n    default 0;  # knob1\n}\n',
  );
});

it('leaves arguments unchanged', () => {
  const text = `log_format x '$a "{;}" # $b\\'';\nrewrite ^/a\\;b$ /\${c}d#e;\nx "y\\"z;";\n`;
  expect(printed(text)).toBe(text);
});

it('keeps quotes around names that need them', () => {
  const map = `map $x $y {\n    default upgrade;\n    "" close;\n    "~^[a-z]{2}$" 2;\n    "~*(google bot|bing)" 1;\n    "#top" 1;\n    ~*\\.(jpg|png)$ 3;\n    "~\\\\t" 4;\n    "~\\\\\\"" 5;\n    "\\\\" 6;\n}\n`;
  expect(printed(map)).toBe(map);
  expect(printed(`"gzip" on;\nmap $x $y {\n '' close;\n '#top' 1;\n 'a' 2;\n ~\\\\t 4; }`)).toBe(
    'gzip on;\nmap $x $y {\n    "" close;\n    "#top" 1;\n    a 2;\n    "~\\\\t" 4;\n}\n',
  );
});

it.each([
  ['a 1;\nhttp {\n  b 2;\n', 'nginx config base:3: "{" without its "}"'],
  ['http {\n a 1 }', ':2: "a" and its words do not end with ";"'],
  ['root:$6$salt 1\n2', /^nginx config base:2: "root" and its words do not end with ";"$/],
  [`${'a'.repeat(99)} 1`, /^nginx config base:1: "a{60}" and/],
  ['a "b;\n c', ':1: " without its end'],
  [';', ':1: ";" without a directive'],
])('refuses %j', (text, message) => {
  expect(() => compose(text)).toThrow(message);
});
