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
      if (!letterOf.has(same)) {
        const asked = { ...target, refId: letter };
        if (expression !== undefined) asked.expression = expression;
        targets.push(asked);
      }
      letterOf.set(same, letter);
      renamed.set(target.refId, letter);
    }
    if (targets.length > 26)
      throw new Error(`${panel.title}: ${targets.length} targets, and 26 letters`);
    const visible = ((panel.targets ?? []) as Target[]).filter(({ hide }) => hide !== true);
    const letters = visible.map(({ refId }) => renamed.get(refId));
    const { fieldConfig, transformations = [] } = panel;
    const ofThis = { id: 'filterByRefId', options: { include: `/^(${letters.join('|')})$/` } };
    const asking: Panel = { ...panel, transformations: [ofThis, ...transformations] };
    if (fieldConfig === undefined) return asking;
    const overrides = fieldConfig.overrides.map((override) => {
      const { matcher } = override;
      if (matcher.id !== 'byFrameRefID') return override;
      const options = renamed.get(matcher.options as string);
      return { ...override, matcher: { ...matcher, options } };
    });
    return { ...asking, fieldConfig: { ...fieldConfig, overrides } };
  });
  const [first] = panels;
  const answers = { refId: 'A', datasource: otherPanel, panelId: first?.id };
  const taking = { datasource: otherPanel, targets: [answers as unknown as Dataquery] };
  return panels.map((panel) => {
    const built = panel === first ? { ...panel, targets } : { ...panel, ...taking };
    return { build: () => built };
  });
}
