// Panels that ask together. Each request costs Grafana's server more than a query in it: it looks up who asks, and what for.
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import type { Panel } from '@grafana/grafana-foundation-sdk/dashboard';

/** Grafana's data source of what another panel was answered. */
const otherPanel = { type: 'datasource', uid: '-- Dashboard --' };

/** As much of a target as is read here: a query, or an expression on the letters of others. */
type Target = Dataquery & {
  refId: string;
  query?: string;
  alias?: string;
  hide?: boolean;
  expression?: string;
};

/**
 * The same panels, of which the first asks for all, in one request, what is the same once; the others take what is theirs of
 * its answer. Their targets are queries of InfluxDB's and quotients, whose letters become others. Throws where there are more
 * targets than letters.
 */
export function askedOnce(builders: readonly Builder<Panel>[]): Builder<Panel>[] {
  const targets: Target[] = [];
  const letterOf = new Map<string, string>();
  const panels = builders.map((builder): Panel => {
    const panel = builder.build();
    const renamed = new Map<string, string>();
    for (const target of (panel.targets ?? []) as Target[]) {
      const expression = target.expression?.replace(
        /\$(\w+)/g,
        (_, letter: string) => `$${renamed.get(letter)}`,
      );
      const same = JSON.stringify({ ...target, expression, refId: '' });
      const letter = letterOf.get(same) ?? String.fromCharCode('A'.charCodeAt(0) + targets.length);
      if (!letterOf.has(same))
        targets.push({ ...target, refId: letter, ...(expression !== undefined && { expression }) });
      letterOf.set(same, letter);
      renamed.set(target.refId, letter);
    }
    if (targets.length > 26)
      throw new Error(`${panel.title}: ${targets.length} targets, and 26 letters`);
    const shown = ((panel.targets ?? []) as Target[])
      .filter(({ hide }) => hide !== true)
      .map(({ refId }) => renamed.get(refId));
    const overrides = (panel.fieldConfig?.overrides ?? []).map((one) =>
      one.matcher.id === 'byFrameRefID'
        ? {
            ...one,
            matcher: { ...one.matcher, options: renamed.get(one.matcher.options as string) },
          }
        : one,
    );
    return {
      ...panel,
      ...(panel.fieldConfig && { fieldConfig: { ...panel.fieldConfig, overrides } }),
      transformations: [
        { id: 'filterByRefId', options: { include: `/^(${shown.join('|')})$/` } },
        ...(panel.transformations ?? []),
      ],
    };
  });
  const [first] = panels;
  return panels.map((panel) => ({
    build: () =>
      panel === first
        ? { ...panel, targets }
        : {
            ...panel,
            datasource: otherPanel,
            targets: [
              { refId: 'A', datasource: otherPanel, panelId: first?.id } as unknown as Dataquery,
            ],
          },
  }));
}
