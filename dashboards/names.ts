// What each dashboard is called. A uid stays as it is: links and the memory of people point to it.

export const dashboardNames = {
  articles: { uid: 'bakeoff-articles', title: 'Articles' },
  comparison: { uid: 'bakeoff-comparison', title: 'Comparison' },
  live: { uid: 'bakeoff-live', title: 'Live run' },
  history: { uid: 'bakeoff-history', title: 'History' },
} as const;

export type DashboardName = keyof typeof dashboardNames;

/** The committed file that Grafana reads a dashboard from, in dashboards/generated. */
export function generatedFile(name: DashboardName): string {
  return `${name}.json`;
}
