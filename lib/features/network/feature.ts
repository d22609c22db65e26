import type { Feature } from '../../cli/feature.ts';
import { networkOf } from '../../scenario/variants.ts';
import { linkFigures } from './charts.ts';
import { enclosureWith } from './enclosure.ts';
import { link, linkTemplates } from './observer.ts';
import { linkPart, loadTables } from './report.ts';

/** Emulated networks: variants with their own delay, loss, bandwidth and kernel settings (docs/scenarios.md). */
export const network: Feature = {
  run: {
    planner: {
      enclosure: (scenario, variant) => {
        const spec = networkOf(scenario, variant);
        return spec && enclosureWith(spec);
      },
    },
    observers: [link],
  },
  templates: linkTemplates,
  report: (result) => ({
    tables: linkPart(result),
    loadTables: loadTables(result),
    figures: linkFigures(result),
  }),
};
