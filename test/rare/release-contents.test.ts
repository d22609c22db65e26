// Third-party licences in a release.
import { expect, test } from 'vitest';
import { findGo, goEnvironment, k6Package } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { bill, modulesOf, noticesOf, written } from '../../packaging/contents.ts';

interface Bill {
  creationInfo: { created: string };
  documentDescribes: [string];
  packages: {
    name: string;
    SPDXID: string;
    licenseDeclared: string;
    externalRefs: [{ referenceType: string; referenceLocator: string }];
  }[];
  relationships: { spdxElementId: string; relatedSpdxElement: string; relationshipType: string }[];
}

test('the bill of materials and the notices list exactly the installed and linked packages', async () => {
  const machine = thisMachine();
  const go = (await findGo(machine)).binary;
  const env = goEnvironment(process.env);
  const modules = modulesOf(go, machine.k6Sources, env);
  const name = k6Package('x64');
  const created = new Date('2026-01-02T03:04:05.678Z');
  const text = bill(projectRoot, [{ name, version: '0.1.0', modules }], created);
  const { creationInfo, documentDescribes, packages, relationships } = JSON.parse(text) as Bill;
  expect(creationInfo.created).toBe('2026-01-02T03:04:05Z');
  const byName = new Map(packages.map((spdxPackage) => [spdxPackage.name, spdxPackage]));
  const [root] = documentDescribes;

  for (const { name: of, SPDXID, externalRefs } of packages) {
    expect(SPDXID).toMatch(/^SPDXRef-[A-Za-z\d.-]+$/);
    const [{ referenceType, referenceLocator }] = externalRefs;
    expect(referenceType).toBe('purl');
    expect(referenceLocator, of).toMatch(/^pkg:(npm|golang)\/[^@A-Z]+@[^+]+$/);
  }
  // npm's list omits packages that development needs too; the compiler is needed only in development.
  expect([...byName.keys()]).toEqual(expect.arrayContaining(['valibot', 'esbuild', 'yaml', name]));
  expect([...byName.keys()].filter((name) => /typescript|vitest|tsx/.test(name))).toEqual([]);

  const ids = new Set(['SPDXRef-DOCUMENT', ...packages.map(({ SPDXID }) => SPDXID)]);
  expect(ids.size).toBe(packages.length + 1);
  const reached = new Set(relationships.map((relationship) => relationship.spdxElementId));
  const k6 = byName.get(name)?.SPDXID ?? '';
  expect(relationships).toContainEqual({
    spdxElementId: k6,
    relatedSpdxElement: root,
    relationshipType: 'OPTIONAL_DEPENDENCY_OF',
  });
  const linked = relationships.filter(
    (relationship) => relationship.relationshipType === 'STATIC_LINK',
  );
  for (const link of linked) expect(link.spdxElementId).toBe(k6);
  for (const link of linked) reached.add(link.relatedSpdxElement);
  for (const relationship of relationships)
    expect([ids.has(relationship.spdxElementId), ids.has(relationship.relatedSpdxElement)]).toEqual(
      [true, true],
    );
  // Only the project itself has no dependent.
  expect([...ids].filter((id) => !reached.has(id))).toEqual([root]);

  const licences = Object.fromEntries(packages.map((entry) => [entry.name, entry.licenseDeclared]));
  expect(licences).toMatchObject({
    stdlib: 'BSD-3-Clause',
    'go.k6.io/k6/v2': 'AGPL-3.0-only',
    'github.com/quic-go/quic-go': 'MIT',
    'github.com/vishvananda/netlink': 'Apache-2.0',
    'github.com/gorilla/websocket': 'BSD-2-Clause',
    'gopkg.in/yaml.v3': 'Apache-2.0 AND MIT',
    esbuild: 'MIT',
  });
  // Generated from a schema, without a licence file.
  const unknown = Object.keys(licences).filter((name) => licences[name] === 'NOASSERTION');
  expect(unknown.filter((name) => !name.startsWith('buf.build/gen/'))).toEqual([]);

  const notices = noticesOf(modules);
  const needed = written(
    go,
    ['list', '-deps', '-f', '{{with .Module}}{{.Path}}{{end}}', './cmd/...'],
    machine.k6Sources,
    env,
  );
  const others = new Set(needed.split('\n'));
  others.delete(written(go, ['list', '-m'], machine.k6Sources, env));
  expect(others.size).toBeGreaterThan(80);
  expect([...others].filter((path) => !byName.has(path))).toEqual([]);
  const silent = [...others].filter((path) => !notices.includes(`\n==== ${path} `));
  expect(silent).toEqual(unknown);
  expect(notices).toMatch(/\n==== stdlib [\d.]+, LICENSE\n\nCopyright .* The Go Authors/);
}, 120_000);
