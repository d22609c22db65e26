// Third-party work in a release: licences and notices, and a bill of materials in SPDX 2.3.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { helper, onPath } from '../bin/trust.mjs';

/** Returns the output of a command, trimmed. @throws Error with the exit code */
export function written(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): string {
  const stdio = ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'];
  const options = { cwd, encoding: 'utf8', env, stdio, maxBuffer: 2 ** 28 } as const;
  const program = isAbsolute(command) ? command : (onPath(command) ?? helper(command));
  return execFileSync(program, args, options).trim();
}

/** A Go module that is linked into a program. */
interface GoModule {
  path: string;
  version: string;
  /** Licences and notices. */
  texts: [file: string, text: string][];
}

const noticeFile = /^(licen[cs]e|copying|notice|patents|unlicense)/i;

function textsIn(folder: string): [string, string][] {
  const files = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [];
  return files
    .filter((file) => file.isFile() && noticeFile.test(file.name))
    .map(({ name }) => [name, readFileSync(join(folder, name), 'utf8').trim()]);
}

/**
 * Lists the third-party modules in the programs of cmd/, Go's standard library first.
 * @param env with GOOS and GOARCH of the build
 */
export function modulesOf(go: string, sources: string, env: NodeJS.ProcessEnv): GoModule[] {
  const [root = '', version = ''] = written(go, ['env', 'GOROOT', 'GOVERSION'], sources, env).split(
    '\n',
  );
  const library = { path: 'stdlib', version: version.replace('go', ''), texts: textsIn(root) };
  // The project's own module has no version and is left out.
  const form = '{{with .Module}}{{if .Version}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}';
  const listed = written(go, ['list', '-deps', '-f', form, './cmd/...'], sources, env);
  const modules = [...new Set(listed.split('\n'))].sort().map((line) => {
    const [path = '', of = '', folder = ''] = line.split(' ');
    return { path, version: of, texts: textsIn(folder) };
  });
  return [library, ...modules];
}

/** The licences and notices of modules; anyone who redistributes the program must include them. */
export function noticesOf(modules: readonly GoModule[]): string {
  const parts = modules.flatMap(({ path, version, texts }) =>
    texts.map(([file, text]) => `==== ${path} ${version}, ${file}\n\n${text}\n`),
  );
  return `This program has the following work of others in it.\n\n${parts.join('\n')}`;
}

/** A sentence that identifies each licence, by SPDX identifier. */
const sentences: [string, RegExp][] = [
  ['AGPL-3.0-only', /GNU AFFERO GENERAL PUBLIC LICENSE\s+Version 3/i],
  ['Apache-2.0', /Apache License,?\s+Version 2\.0/i],
  ['BSD-3-Clause', /Redistributions in binary form[^]*\bneither the name/i],
  ['BSD-2-Clause', /Redistributions in binary form(?![^]*\bneither the name)/i],
  ['ISC', /Permission to use, copy, modify, and(\/or)? distribute this software/i],
  ['MIT', /Permission is hereby granted, free of charge/i],
  ['MPL-2.0', /Mozilla Public License,?\s+version 2\.0/i],
  ['Unlicense', /This is free and unencumbered software/i],
];

/** The licences whose sentences are in the module's texts, joined with AND. */
function licenceOf({ texts }: GoModule): string {
  const all = texts.map(([, text]) => text).join('\n');
  const identifiers = sentences.filter(([, sentence]) => sentence.test(all)).map(([name]) => name);
  return identifiers.length === 0 ? 'NOASSERTION' : identifiers.join(' AND ');
}

interface Bill {
  documentNamespace: string;
  creationInfo: object;
  documentDescribes: string[];
  packages: { SPDXID: string; packageFileName?: string }[];
  relationships: { spdxElementId: string; relatedSpdxElement: string; relationshipType: string }[];
}

const spdxPackage = (name: string, versionInfo: string, licenseDeclared: string, purl: string) => ({
  name,
  SPDXID: `SPDXRef-${purl.replace(/^pkg:/, '').replace(/[^A-Za-z\d.-]/g, '-')}`,
  versionInfo,
  downloadLocation: 'NOASSERTION',
  filesAnalyzed: false,
  licenseDeclared,
  externalRefs: [
    { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl },
  ],
});

/** The npm packages that an installation of the project gets, and their dependencies on each other. */
function ofNpm(project: string): Bill {
  const args = ['sbom', '--sbom-format', 'spdx', '--package-lock-only'];
  const all = JSON.parse(written('npm', args, project)) as Bill;
  const lock = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; devOptional?: true; os?: string[] }>;
  };
  // --omit=dev would also leave out packages that development packages share with others.
  const isInstalled = ({ packageFileName = '' }: Bill['packages'][0]) => {
    const { dev, devOptional, os = ['linux'] } = lock.packages[packageFileName] ?? {};
    return dev !== true && devOptional !== true && os.includes('linux');
  };
  const installed = new Set(all.packages.filter(isInstalled).map(({ SPDXID }) => SPDXID));
  const needed = new Set(all.documentDescribes);
  // Adds the dependencies of needed packages until there are no more to add.
  for (let before = 0; before !== needed.size;) {
    before = needed.size;
    for (const { spdxElementId, relatedSpdxElement } of all.relationships)
      if (needed.has(relatedSpdxElement) && installed.has(spdxElementId)) needed.add(spdxElementId);
  }
  return {
    ...all,
    packages: all.packages.filter(({ SPDXID }) => needed.has(SPDXID)),
    relationships: all.relationships.filter(
      (relationship) =>
        needed.has(relationship.relatedSpdxElement) &&
        (needed.has(relationship.spdxElementId) || relationship.relationshipType === 'DESCRIBES'),
    ),
  };
}

/**
 * Writes the bill of materials: the npm packages, and the Go modules in each program.
 * @param programs the k6 packages, with the modules linked into each
 */
export function bill(
  project: string,
  programs: readonly { name: string; version: string; modules: readonly GoModule[] }[],
  created: Date,
): string {
  const { packages, relationships, ...rest } = ofNpm(project);
  const [root = ''] = rest.documentDescribes;
  const listed = new Map(packages.map((entry) => [entry.SPDXID, entry]));
  const related = [...relationships];
  for (const { name, version, modules } of programs) {
    const k6 = spdxPackage(name, version, 'AGPL-3.0-only', `pkg:npm/${name}@${version}`);
    listed.set(k6.SPDXID, k6);
    const relate = (from: string, to: string, relationshipType: string) =>
      related.push({ spdxElementId: from, relatedSpdxElement: to, relationshipType });
    relate(k6.SPDXID, root, 'OPTIONAL_DEPENDENCY_OF');
    for (const module of modules) {
      // purl requires lower case.
      const purl = `pkg:golang/${module.path.toLowerCase()}@${encodeURIComponent(module.version)}`;
      const entry = spdxPackage(module.path, module.version, licenceOf(module), purl);
      listed.set(entry.SPDXID, entry);
      relate(k6.SPDXID, entry.SPDXID, 'STATIC_LINK');
    }
  }
  const contents = { packages: [...listed.values()], relationships: related };
  const digest = createHash('sha256').update(JSON.stringify(contents)).digest('hex');
  return `${JSON.stringify(
    {
      ...rest,
      documentNamespace: rest.documentNamespace.replace(
        /[\da-f]{8}-[\da-f-]{27}$/,
        digest.slice(0, 32),
      ),
      // SPDX has no fractions of seconds.
      creationInfo: {
        ...rest.creationInfo,
        created: created.toISOString().replace(/\.\d+/, ''),
      },
      ...contents,
    },
    null,
    2,
  )}\n`;
}
