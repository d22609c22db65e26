// Draws the plots, in the page. Each takes the width that it finds and is drawn again when that changes. Colours are the
// style sheet's, so that they follow the colour scheme.
import type { PlotData } from '../figure.ts';
import { drawBars } from './bars.ts';
import { drawCurve } from './curve.ts';
import { drawPercentiles } from './percentiles.ts';
import { drawRounds } from './rounds.ts';
import { drawStreams } from './streams.ts';

const draw: {
  [Kind in PlotData['kind']]: (data: PlotData & { kind: Kind }, width: number) => Element[];
} = {
  bars: drawBars,
  percentiles: drawPercentiles,
  rounds: drawRounds,
  streams: drawStreams,
  curve: drawCurve,
};

const all = JSON.parse(document.getElementById('figures')?.textContent ?? '[]') as PlotData[];
for (const [index, data] of all.entries()) {
  const place = document.getElementById(`plot-${index}`);
  if (place === null) continue;
  let drawn = 0;
  const redraw = (): void => {
    const width = Math.floor(place.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    place.replaceChildren(...draw[data.kind](data as never, width));
  };
  redraw();
  new ResizeObserver(redraw).observe(place);
}

// Paper does not unfold.
addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details')) details.open = true;
});
